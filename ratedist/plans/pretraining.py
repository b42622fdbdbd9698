"""Seconds and losses of a language model's training, and settings of DiLoCo.

The scaling laws are recalled from Hoffmann et al. 2022, and from Besiroglu et al. 2024, who fitted the same runs again.
The outer step is that of Douillard et al. 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from bounds.bibliography import bibtex
from bounds.dynamics.outer import eigenvalues, largest_lr
from bounds.provenance import Reference, Status

from ..cluster.cluster import Cluster
from ..cluster.links import Exchange, Link
from ..cluster.travel import step_in_flight_s, step_overlapped_s
from .run import BACKWARD_SHARE

# -- scaling laws --------------------------------------------------------------------------------------

TOKENS_PER_PARAMETER = 20
RULE = Reference("hoffmann2022", "about 20 tokens a parameter")


@dataclass(frozen=True)
class ScalingLaw:
    """A fit L = E + A/N^alpha + B/D^beta of final losses, in nats a token, to runs on its authors' data.

    Parameters
    ----------
    reference : Reference
        Where it is stated.
    E : float
        Loss that no model and no data lower.
    A : float
        Factor of the model's size.
    B : float
        Factor of the tokens.
    alpha : float
        Exponent of the model's size.
    beta : float
        Exponent of the tokens.
    """

    reference: Reference
    E: float
    A: float
    B: float
    alpha: float
    beta: float

    def loss(self, parameters: float, tokens: float) -> float:
        """Return the fitted loss of a model after so many tokens.

        Parameters
        ----------
        parameters : float
            N, of the model.
        tokens : float
            D, that it was trained on.
        """
        return self.E + self.A / parameters**self.alpha + self.B / tokens**self.beta

    def tokens_for(self, parameters: float) -> float:
        """Return the tokens D at which no other N, D with the same product has a lower fitted loss.

        There alpha A/N^alpha = beta B/D^beta.

        Parameters
        ----------
        parameters : float
            N, of the model.
        """
        return float((self.beta * self.B / (self.alpha * self.A) * parameters**self.alpha) ** (1 / self.beta))


LAWS = (
    ScalingLaw(Reference("hoffmann2022", "approach 3, parametric fit"), 1.69, 406.4, 410.7, 0.34, 0.28),
    ScalingLaw(Reference("besiroglu2024", "approach 3, fitted again"), 1.8172, 482.01, 2085.43, 0.3478, 0.3658),
)


def recalled(parameters: float, tokens: float) -> tuple[dict[str, Any], ...]:
    """Return what published laws say of a model, each with its status, its source and the source's BibTeX entry.

    Parameters
    ----------
    parameters : float
        N, of the model.
    tokens : float
        D, of the training.

    Returns
    -------
    tuple of dict
        "status", "source", "where", "bibtex", the "tokens" that such a model deserves, and the fitted "loss" at N and
        D in nats a token (None where a source's rule states none).
    """
    rule = _row(RULE, TOKENS_PER_PARAMETER * parameters, None)
    return rule, *(_row(law.reference, law.tokens_for(parameters), law.loss(parameters, tokens)) for law in LAWS)


def _row(reference: Reference, tokens: float, loss: float | None) -> dict[str, Any]:
    place = {"source": reference.key, "where": reference.where, "bibtex": bibtex(reference)}
    return {"status": Status.RECALLED.value, **place, "tokens": tokens, "loss": loss}


# -- seconds of a training -----------------------------------------------------------------------------

FLOP_PER_PARAMETER_AND_TOKEN = 6  # 2 forward, 4 backward
LEAST_BIT_PER_S, MOST_BIT_PER_S = 1.0, 1e18
HALVINGS = 60
HIDDEN = 1 - 1e-9  # of the most that any bandwidth gives, where averages can be hidden


@dataclass(frozen=True)
class Round:
    """One way to average: how often, and what waits for it.

    Parameters
    ----------
    name : str
        In words.
    tau : int
        Local steps between two averages of the same parameter.
    seconds_per_step : callable
        From a cluster to mean seconds of a step, waiting included.
    """

    name: str
    tau: int
    seconds_per_step: Callable[[Cluster], float]

    def utilisation(self, cluster: Cluster) -> float:
        """Return the share of a step in which a worker computes, on average."""
        return cluster.step().mean_s / self.seconds_per_step(cluster)

    def bandwidth_for(self, share: float, cluster: Cluster) -> float:
        """Return the least bandwidth of a link at which workers compute for this share of the time; inf if none does.

        Parameters
        ----------
        share : float
            Wanted, 0 < share <= 1; 1 is what averages in flight can reach where nothing waits for stragglers.
        cluster : Cluster
            Whose link, between nodes where there are any, is varied.
        """
        least = share * HIDDEN

        def reached(bit_per_s: float) -> bool:
            return self.utilisation(with_bandwidth(cluster, bit_per_s)) >= least

        if not reached(MOST_BIT_PER_S):
            return math.inf
        low, high = math.log2(LEAST_BIT_PER_S), math.log2(MOST_BIT_PER_S)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if reached(2.0**middle) else (middle, high)
        return 2.0**high


def with_bandwidth(cluster: Cluster, bit_per_s: float) -> Cluster:
    """Return the same cluster with another link, between nodes where there are any.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    bit_per_s : float, bit/s
        Of the link.
    """
    between = None if cluster.between is None else replace(cluster.links[1], bandwidth_bit_per_s=bit_per_s)
    return replace(cluster, bandwidth_bit_per_s=bit_per_s, between=between)


def rounds(*, bits: float, dense_bits: float, exchange: Exchange, tau: int, in_flight: int, parts: int) -> list[Round]:
    """Return four ways to average: after every step, during the backward pass, after tau steps, and in flight.

    Parameters
    ----------
    bits : float, bits
        Length of one worker's message after tau steps.
    dense_bits : float, bits
        Length of an uncompressed gradient, which the first two sum.
    exchange : Exchange
        How messages of the last two travel.
    tau : int
        Local steps of a round.
    in_flight : int
        Steps that are made while an average travels.
    parts : int
        Fragments of the model.
    """

    def every_step(cluster: Cluster) -> float:
        return step_in_flight_s(cluster, tau=1, bits=dense_bits, in_flight=0)

    def while_going_back(cluster: Cluster) -> float:
        return step_overlapped_s(cluster, bits=dense_bits, backward_fraction=BACKWARD_SHARE)

    def waiting(cluster: Cluster) -> float:
        return step_in_flight_s(cluster, tau=tau, bits=bits, exchange=exchange, in_flight=0, dense_bits=dense_bits)

    def flying(cluster: Cluster) -> float:
        return step_in_flight_s(
            cluster, tau=tau, bits=bits, exchange=exchange, in_flight=in_flight, parts=parts, dense_bits=dense_bits
        )

    return [
        Round("every step", 1, every_step),
        Round("every step, during the backward pass", 1, while_going_back),
        Round(f"every {tau} steps, waiting", tau, waiting),
        Round(f"every {tau} steps, in flight", tau, flying),
    ]


# -- DiLoCo --------------------------------------------------------------------------------------------

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
    """Return each number of fragments' least tau at which the cluster hides the exchange.

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
