"""The group of ranks that a pilot was made by, as a cluster, and what was timed on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bounds.estimate import Estimate, mean_estimate

from .cluster import Cluster
from .links import Link
from .pilot_timings import ALL, BETWEEN, INSIDE, LEVEL, ExchangeTimings

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
