"""What limits a planned run, and clusters with a faster part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..records import plain
from .cluster import Cluster
from .links import Link

FASTER = 2


@dataclass(frozen=True)
class Change:
    """One part made twice as good, all else and the plan being equal.

    Parameters
    ----------
    part : str
        What is made better, in words.
    saved_s : float, seconds
        What the run takes less.
    saved_share : float
        The same as a share of the run.
    """

    part: str
    saved_s: float
    saved_share: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Limits:
    """What a round's seconds consist of, and what to change first.

    Parameters
    ----------
    limit : str
        The largest share: "compute", "stragglers", "coding", "latency" or "bandwidth".
    shares : dict of str to float
        Of the seconds of a round; bandwidth is what remains with no latency at all.  What travels while the workers
        compute counts where it takes longer than they do, and they count where it does not.
    changes : tuple of Change
        The most useful first; tau, the rounds and the operator stay as planned, so that a new plan saves at least as
        much.
    """

    limit: str
    shares: dict[str, float]
    changes: tuple[Change, ...]

    def in_words(self) -> str:
        """Return one line: what limits, and which change saves most."""
        text = f"limited by {self.limit}, {self.shares[self.limit]:.0%} of a round"
        if not self.changes:
            return text
        first = self.changes[0]
        return f"{text}; {first.part} twice as good would save {first.saved_share:.1%} of the run"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        changes = [change.to_dict() for change in self.changes]
        return {"limit": self.limit, "shares": dict(self.shares), "changes": changes}


def faster_links(cluster: Cluster) -> Iterator[tuple[str, Cluster]]:
    """Yield clusters with one number of one link twice as good, and its name.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    """
    levels = ("inside", "between") if cluster.nodes is not None and cluster.inside is not None else ("between",)
    for level in levels:
        where = "the links" if cluster.nodes is None else f"the links {level} nodes"
        yield f"bandwidth of {where}", scaled(cluster, level, bandwidth=FASTER)
        yield f"latency of {where}", scaled(cluster, level, latency=1 / FASTER)


@lru_cache(maxsize=64)
def without_latency(cluster: Cluster) -> Cluster:
    """Return the cluster with links that transmit at once.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    """
    return scaled(cluster, latency=0.0)


def scaled(cluster: Cluster, level: str = "", *, bandwidth: float = 1.0, latency: float = 1.0) -> Cluster:
    """Return the cluster with scaled links of one level, or of both.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    level : {"", "inside", "between"}, optional
        Which links; empty: both.
    bandwidth : float, optional
        Factor of their bandwidth.
    latency : float, optional
        Factor of their latency.
    """
    inside, between = (Link(bandwidth * link.bandwidth_bit_per_s, latency * link.latency_s) for link in cluster.links)
    changes: dict[str, Any] = {}
    if level != "between" and cluster.inside is not None:
        changes["inside"] = inside
    if level != "inside":
        changes |= {"bandwidth_bit_per_s": between.bandwidth_bit_per_s, "latency_s": between.latency_s}
        changes["between"] = None
    return replace(cluster, **changes)
