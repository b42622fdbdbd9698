"""What limits a planned run, and what a faster part of the cluster would save."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ..records import plain
from .cluster import Cluster
from .links import Link
from .travel import Travel

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


@dataclass(frozen=True)
class PlannedRun:
    """Seconds of a run, as a function of the cluster.

    Parameters
    ----------
    way : Travel
        How messages travel.
    cluster : Cluster
        Workers and links.
    rounds : float
        Communication rounds.
    tau : int
        Local steps a round.
    coding_s : float, seconds
        Of encoding and decoding in one round.
    start_bits : float or None, optional
        Of the uncompressed averaging that stands for that of the first round; None: there is none.
    overlap : bool, optional
        Whether messages travel while the next round is computed; coding takes the worker's time all the same.
    step_scale : float, optional
        By what all steps are longer than the cluster's law says.
    link_scale : float, optional
        By what the links take longer than their formula says.
    """

    way: Travel
    cluster: Cluster
    rounds: float
    tau: int
    coding_s: float
    start_bits: float | None = None
    overlap: bool = False
    step_scale: float = 1.0
    link_scale: float = 1.0

    @property
    def communicate_s(self) -> float:
        """What the links take in one round."""
        return self.link_scale * self.way.communicate_s(self.cluster)

    @property
    def compute_s(self) -> float:
        """Of one round, the slowest worker's."""
        return self.step_scale * self.tau * self.cluster.step().expected_max(m=self.cluster.workers, tau=self.tau)

    @property
    def seconds(self) -> float:
        """Of the run."""
        if self.overlap:
            return self.rounds * (self._flight_s() + self.coding_s)
        rounds = self.rounds - (self.start_bits is not None)
        start_s = 0.0 if self.start_bits is None else self.cluster.averaging_s(self.start_bits).midpoint
        round_s = self.coding_s + self.communicate_s
        return self.rounds * self.compute_s + rounds * round_s + start_s

    def _flight_s(self) -> float:
        """Return the mean of the longer of computing and the links, in one round."""
        law, floor_s = self.cluster.step(), self.communicate_s / self.step_scale
        return self.step_scale * law.expected_max_above(floor_s, m=self.cluster.workers, tau=self.tau)

    def limits(self) -> Limits:
        """Return what limits a round, and what a part twice as fast would save of the run."""
        shares, seconds = self.shares(), self.seconds
        changes = [
            Change(part, seconds - faster.seconds, (seconds - faster.seconds) / seconds if seconds else 0.0)
            for part, faster in self._faster()
        ]
        useful = sorted((change for change in changes if change.saved_s > 0), key=lambda change: -change.saved_s)
        return Limits(max(shares, key=shares.__getitem__), shares, tuple(useful))

    def shares(self) -> dict[str, float]:
        """Return what a round's seconds consist of, each over all of them."""
        compute_s, communicate_s = self.compute_s, self.communicate_s
        bandwidth_s = self.link_scale * self.way.communicate_s(without_latency(self.cluster))
        mean_s = min(compute_s, self.step_scale * self.tau * self.cluster.step().mean_s)
        parts = {
            "compute": mean_s,
            "stragglers": compute_s - mean_s,
            "coding": self.coding_s,
            "latency": communicate_s - bandwidth_s,
            "bandwidth": bandwidth_s,
        }
        if self.overlap:
            hidden = ("latency", "bandwidth") if communicate_s <= compute_s else ("compute", "stragglers")
            parts |= dict.fromkeys(hidden, 0.0)
            parts["stragglers"] += self._flight_s() - max(communicate_s, compute_s)
        total = sum(parts.values())
        return {name: part / total if total else 0.0 for name, part in parts.items()}

    def _faster(self) -> Iterator[tuple[str, PlannedRun]]:
        yield "steps", replace(self, step_scale=self.step_scale / FASTER)
        if self.coding_s:
            yield "codecs", replace(self, coding_s=self.coding_s / FASTER)
        for part, cluster in faster_links(self.cluster):
            yield part, replace(self, cluster=cluster)


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
        yield f"bandwidth of {where}", _scaled(cluster, level, bandwidth=FASTER)
        yield f"latency of {where}", _scaled(cluster, level, latency=1 / FASTER)


@lru_cache(maxsize=64)
def without_latency(cluster: Cluster) -> Cluster:
    """Return the cluster with links that transmit at once.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    """
    return _scaled(cluster, latency=0.0)


def _scaled(cluster: Cluster, level: str = "", *, bandwidth: float = 1.0, latency: float = 1.0) -> Cluster:
    """Return the cluster with scaled links of one level, or of both."""
    inside, between = (Link(bandwidth * link.bandwidth_bit_per_s, latency * link.latency_s) for link in cluster.links)
    changes: dict[str, Any] = {}
    if level != "between" and cluster.inside is not None:
        changes["inside"] = inside
    if level != "inside":
        changes |= {"bandwidth_bit_per_s": between.bandwidth_bit_per_s, "latency_s": between.latency_s}
        changes["between"] = None
    return replace(cluster, **changes)
