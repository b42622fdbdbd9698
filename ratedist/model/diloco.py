"""Settings of DiLoCo at which an exchange is hidden, and how large an outer rate late averages bear.

The published outer step is that of Douillard et al. 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from bounds.dynamics.outer import eigenvalues, largest_lr
from bounds.provenance import Reference, Status

from .cluster import Cluster
from .links import Link
from .nodes import Exchange
from .overlap import step_in_flight_s
from .pretraining import MOST_BIT_PER_S, Round

FRAGMENTS = (1, 2, 4, 8, 16)
ADDED = 0.01  # of a step, that an exchange which counts as hidden may add
MOST_IN_FLIGHT = 2**14
LATE_MERGES = ("overwrite", "delayed", "eager", "corrected")
FLATTEST = 1e-3  # of the curvature 1/eta
FREE = Link(MOST_BIT_PER_S, 0.0)


@dataclass(frozen=True)
class PublishedOuter:
    """An outer step that a publication used, unchecked.

    Parameters
    ----------
    lr : float
        Outer learning rate.
    momentum : float
        Nesterov momentum.
    reference : Reference
        Who used it.
    """

    lr: float
    momentum: float
    reference: Reference
    status: Status = Status.RECALLED


PUBLISHED = PublishedOuter(0.7, 0.9, Reference("douillard2023", "outer optimizer: Nesterov"))


@dataclass(frozen=True)
class Messages:
    """What workers send of a model.

    Parameters
    ----------
    bits : float, bits
        Length of one worker's message of the whole model.
    dense_bits : float, bits
        Length of the uncompressed model, which is summed inside nodes.
    exchange : Exchange
        How messages travel.
    """

    bits: float
    dense_bits: float
    exchange: Exchange

    def seconds(self, tau: int, parts: int, in_flight: int) -> Callable[[Cluster], float]:
        """Return mean seconds of a step as a function of the cluster.

        Parameters
        ----------
        tau : int
            Local steps between two averages of the same fragment.
        parts : int
            Fragments.
        in_flight : int
            Steps made while a fragment travels.
        """

        def on(cluster: Cluster) -> float:
            return step_in_flight_s(
                cluster,
                tau=tau,
                bits=self.bits,
                exchange=self.exchange,
                in_flight=in_flight,
                parts=parts,
                dense_bits=self.dense_bits,
            )

        return on


def hidden_settings(messages: Messages, cluster: Cluster, tau: int) -> tuple[dict[str, Any], ...]:
    """Return for each number of fragments the rarest need to average at which the cluster hides the exchange.

    An exchange is hidden where it adds at most 1 % to a step.  A step must also take at most 1 % more than in the
    fastest rhythm with the wanted tau: averaging too often waits for the slowest worker too often.

    Parameters
    ----------
    messages : Messages
        What is sent.
    cluster : Cluster
        Workers and links.
    tau : int
        Local steps that are wanted at most.

    Returns
    -------
    tuple of dict
        "parts", the least "tau" and "in_flight" at which the exchange is hidden, "step_s", the least bandwidth
        "bit_per_s" of a link that hides it there, "lr_below" (for each merge rule the outer rate below which quadratics
        stay stable at the published momentum; None where every step is dropped), and whether it is "suggested": of
        those with at most the wanted tau that are within 1 % of the fastest the one with fewest steps in flight, else
        the one with the least tau.  Empty where there is nobody to exchange with; a number of
        fragments that never hides is left out.
    """
    if cluster.workers == 1:
        return ()
    wanted_s = min(messages.seconds(n * (tau // n), n, tau // n)(cluster) for n in FRAGMENTS if n <= tau)
    rows = [row for parts in FRAGMENTS if (row := _setting(messages, cluster, parts, wanted_s)) is not None]
    within = [row for row in rows if row["tau"] <= tau]
    fastest_s = min((row["step_s"] for row in within), default=0.0)
    within = [row for row in within if row["step_s"] <= (1 + ADDED) * fastest_s]
    best = min(within or rows, key=lambda row: (row["in_flight"] if within else row["tau"], row["parts"]), default=None)
    return tuple(row | {"suggested": row is best} for row in rows)


def _setting(messages: Messages, cluster: Cluster, parts: int, wanted_s: float) -> dict[str, Any] | None:
    link = None if cluster.nodes is None else FREE
    free = replace(
        cluster, bandwidth_bit_per_s=FREE.bandwidth_bit_per_s, latency_s=FREE.latency_s, inside=link, between=link
    )

    def hides(steps: int) -> bool:
        seconds = messages.seconds(parts * steps, parts, steps)
        step_s = seconds(cluster)
        return step_s <= (1 + ADDED) * min(seconds(free), wanted_s)

    steps = _least(hides)
    if steps is None:
        return None
    tau = parts * steps
    seconds = messages.seconds(tau, parts, steps)
    share = Round("in flight", tau, seconds).utilisation(free) / (1 + ADDED)
    return {
        "parts": parts,
        "tau": tau,
        "in_flight": steps,
        "step_s": seconds(cluster),
        "bit_per_s": Round("in flight", tau, seconds).bandwidth_for(share, cluster),
        "lr_below": {merge: _limit(merge, tau, steps, cluster.workers) for merge in LATE_MERGES},
    }


def _least(holds: Callable[[int], bool]) -> int | None:
    """Return the least count from which something that does not cease again holds; None if it is too far."""
    high = 1
    while not holds(high):
        high *= 2
        if high > MOST_IN_FLIGHT:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@lru_cache(maxsize=1024)
def _limit(merge: str, tau: int, delay: int, workers: int) -> float | None:
    if merge == "overwrite" and delay >= tau:
        return None  # every step is dropped, as rd.outer says
    x = eigenvalues(1.0, FLATTEST)
    with np.errstate(divide="ignore"):  # where nothing moves, any rate is stable
        return float(np.min(largest_lr(merge, x=x, tau=tau, delay=delay, m=workers, momentum=PUBLISHED.momentum)))
