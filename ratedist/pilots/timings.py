"""Times and trials of a pilot: sums over links, averagings, operators on real gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bounds.estimate import DelayFit, Estimate, delay_by_fenced_regression, mean_estimate

from ..cluster.cluster import Cluster
from ..cluster.codec import Codec
from ..cluster.links import Link

# -- timings and trials --------------------------------------------------------------------------------

LEVEL = 0.95
ROUNDING = 1e-12  # relative, of a fitted line: equal seconds may differ by it
ALL, INSIDE, BETWEEN = "all ranks", "inside a node", "between nodes"


@dataclass(frozen=True)
class LinkTimings:
    """Timed sums of vectors over a group of ranks.

    Parameters
    ----------
    level : str
        "all ranks", "inside a node" or "between nodes".
    ranks : int
        Of the group.
    payload_bytes : tuple of int, bytes
        Lengths of one rank's vector, shape (n,).
    seconds : tuple of float, seconds
        What the sum of each took, by the slowest rank, shape (n,).
    """

    level: str
    ranks: int
    payload_bytes: tuple[int, ...]
    seconds: tuple[float, ...]

    def fit(self) -> DelayFit:
        """Return latency and seconds a byte, fitted."""
        return delay_by_fenced_regression(self.payload_bytes, self.seconds, level=LEVEL)

    def link(self) -> Link:
        """Return the link that a ring of these ranks would have, if it took these seconds.

        Raises
        ------
        ValueError
            If longer vectors took no more time, so that no bandwidth is seen.
        """
        fit, hops = self.fit(), 2 * (self.ranks - 1)
        per_byte = fit.seconds_per_byte.value
        if per_byte * max(self.payload_bytes) <= ROUNDING * max(self.seconds):
            raise ValueError(
                f"sums over {self.level} took no longer for longer vectors ({per_byte:.3g} s a byte): no bandwidth can "
                "be estimated; make a pilot with larger most_bytes, or give the link"
            )
        latency_s = max(fit.latency_s.value, 0.0) / hops
        return Link(8 * hops / self.ranks / per_byte, latency_s, f"measured over {self.level}, as a ring")


@dataclass(frozen=True)
class ExchangeTimings:
    """Timed averagings over all ranks, with coding.

    Parameters
    ----------
    operator : str
        Its specification; "" without compression.
    exchange : str
        "sum", "gather" or "two_shot".
    seconds : tuple of float, seconds
        Of one averaging each, by rank 0, shape (n,).
    """

    operator: str
    exchange: str
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class OperatorTrial:
    """What one operator did to real gradients.

    Parameters
    ----------
    operator : str
        Its specification.
    bits : tuple of float, bits
        A coordinate of a message, for each gradient, shape (n,).
    nmse : tuple of float
        ``|C(g) - g|^2/|g|^2`` of each, shape (n,).
    residuals : tuple of float
        ``|e|/|g|`` of the residual that error feedback carries, after each of consecutive steps, shape (k,); empty for
        an operator whose error feedback would diverge or is its own.
    codec : Codec
        Seconds a coordinate.
    """

    operator: str
    bits: tuple[float, ...]
    nmse: tuple[float, ...]
    residuals: tuple[float, ...]
    codec: Codec


# -- the group of the pilot ----------------------------------------------------------------------------

LINKS = {"bandwidth_bit_per_s", "latency_s", "inside", "between"}


def cluster_of(
    shape: Mapping[str, Any], steps: Mapping[str, Any], link: Callable[[str], Link], at_once: int
) -> Cluster:
    """Return the cluster of a shape with what was measured of steps, and of links where none are given.

    Parameters
    ----------
    shape : mapping
        Fields of ``Cluster``: ``workers``, or ``nodes`` and ``gpus_per_node``, and whatever is to be different.
    steps : mapping
        Its fields about steps.
    link : callable
        From a level to the measured link.
    at_once : int
        Sums that the group makes at the same time.
    """
    given = dict(steps)
    if shape.get("nodes") is not None:
        levels = {"inside": INSIDE, "between": BETWEEN}
        given |= {name: link(level) for name, level in levels.items() if name not in shape}
    elif not {"bandwidth_bit_per_s", "latency_s"} & shape.keys():
        given |= {"bandwidth_bit_per_s": link(ALL).bandwidth_bit_per_s, "latency_s": link(ALL).latency_s}
    if not LINKS & shape.keys():
        given["sums_at_once"] = at_once
    return Cluster(**{**given, **shape})


def timed_on(
    cluster: Cluster, exchanges: Sequence[ExchangeTimings], ranks: int, link: Callable[[], Link]
) -> dict[tuple[str, str], Estimate]:
    """Return seconds of whole averagings by operator and exchange, where the cluster is the group that was timed.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    exchanges : sequence of ExchangeTimings
        Of the group; none for a single process.
    ranks : int
        Of the group.
    link : callable
        Returns the group's measured link.
    """
    if not exchanges or cluster.workers != ranks or cluster.nodes is not None:
        return {}
    if (cluster.bandwidth_bit_per_s, cluster.latency_s) != (link().bandwidth_bit_per_s, link().latency_s):
        return {}
    return {(each.operator, each.exchange): mean_estimate(each.seconds, LEVEL, lower=0.0) for each in exchanges}
