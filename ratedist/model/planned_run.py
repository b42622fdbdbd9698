"""Seconds of a planned run as a function of the cluster: what computes, what travels, and what does both at once.

A round of tau steps in P fragments is P times the same: workers compute alone, then compute while a message travels,
then wait for what travels alone.  With S_i(k) the seconds of k steps of worker i and D_n those of a message of an n-th
of the model, a round takes, but for coding,

    waiting            E max_i S_i(tau) + D_1
    in flight          P (E max_i S_i(tau/P - delta) + E max(max_i S_i(delta), D_P))
    in B buckets       E[(1 - phi) M + max(phi M + D_B, phi M/B + T_B)],  M = max_i S_i(1)

where phi is the backward pass's share of a step: the k-th of B equal buckets is ready after k/B of it, and the last
message ends where the slower of passes and links lets it.  T_B are the seconds of B messages that queue: B D_B where a
group sums one vector after the other; where it sums c at once these share the link and wait for a latency together, so
that T_B = ceil(B/c) (D_B - W_B) + B W_B with W_B those of a message without latency.  This is the waiting one for
B = 1, and E[(1 - phi) M + max(phi M, D)] for many buckets without latency.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from .cluster import Cluster
from .limits import FASTER, Change, Limits, faster_links, without_latency
from .rhythm import BACKWARD_SHARE, Rhythm
from .travel import Travel


def backward_not_said(cluster: Cluster) -> tuple[str, ...]:
    """Return the share of the backward pass that is assumed; nothing where it is known.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    """
    return () if cluster.backward_share is not None else (f"backward pass {BACKWARD_SHARE:.0%} of a step",)


@dataclass(frozen=True)
class PlannedRun:
    """Seconds of a run, as a function of the cluster.

    Parameters
    ----------
    way : Travel
        How one message travels, of as large a part of the model as the rhythm says.
    cluster : Cluster
        Workers and links.
    rounds : float
        Communication rounds.
    rhythm : Rhythm
        When they average.
    coding_s : float, seconds
        Of encoding and decoding in one round; it takes the worker's time whatever travels meanwhile.
    start_bits : float or None, optional
        Of the uncompressed averaging that stands for that of the first round; None: there is none.
    step_scale : float, optional
        By what all steps are longer than the cluster's law says.
    link_scale : float, optional
        By what the links take longer than their formula says.
    """

    way: Travel
    cluster: Cluster
    rounds: float
    rhythm: Rhythm
    coding_s: float
    start_bits: float | None = None
    step_scale: float = 1.0
    link_scale: float = 1.0

    @property
    def tau(self) -> int:
        """Local steps of a round."""
        return self.rhythm.tau

    @property
    def message_s(self) -> float:
        """What the links take for one message."""
        return self.link_scale * self.way.communicate_s(self.cluster)

    @property
    def communicate_s(self) -> float:
        """What the links take in one round."""
        return self.rhythm.messages * self.message_s

    @property
    def compute_s(self) -> float:
        """Of one round, the slowest worker's."""
        return self._alone_s() + self._meanwhile_s()

    @property
    def seconds(self) -> float:
        """Of the run."""
        rounds = self.rounds - (self.start_bits is not None)
        start_s = 0.0 if self.start_bits is None else self.cluster.averaging_s(self.start_bits).midpoint
        computed_s = self.rounds * (self._alone_s() + self._longer_s())
        return computed_s + rounds * (self._after_s() + self.coding_s) + start_s

    @property
    def even(self) -> float:
        """By what steps would have to be longer for passes and links to take equally long; infinite if never."""
        computed_s = self._meanwhile_s()
        return self._hidden_s() / computed_s if computed_s else float("inf")

    # -- one round -------------------------------------------------------------------------------------------
    @property
    def _share(self) -> float:
        """Of the steps that are computed while something travels, the part in which it does."""
        if self.rhythm.in_flight:
            return 1.0
        backward = BACKWARD_SHARE if self.cluster.backward_share is None else self.cluster.backward_share
        return backward * (1 - 1 / self.rhythm.buckets)

    @property
    def _flight(self) -> int:
        """Steps that are computed, in part or as a whole, while something travels."""
        return self.rhythm.in_flight or (1 if self.rhythm.buckets > 1 else 0)

    def _slowest_s(self, steps: int) -> float:
        law, workers = self.cluster.step(), self.cluster.workers
        return self.step_scale * steps * law.expected_max(m=workers, tau=steps) if steps else 0.0

    def _alone_s(self) -> float:
        """Return seconds in which workers compute and nothing travels."""
        if self.rhythm.buckets > 1:
            return (1 - self._share) * self._slowest_s(1)
        return self.rhythm.parts * self._slowest_s(self.rhythm.steps - self.rhythm.in_flight)

    def _meanwhile_s(self) -> float:
        """Return seconds in which workers compute while something may travel."""
        return self.rhythm.parts * self._share * self._slowest_s(self._flight)

    def _hidden_s(self) -> float:
        """Return seconds of the links while workers may compute."""
        if self.rhythm.in_flight:
            return self.communicate_s
        at_once = self.cluster.sums_at_once if self.way.exchange == "sum" else 1  # other exchanges follow one another
        waits = -(-self.rhythm.buckets // at_once)
        latency_s = self.message_s - self._without_latency_s()
        return (self.rhythm.buckets - 1) * self._without_latency_s() + (waits - 1) * latency_s

    def _without_latency_s(self) -> float:
        """Return seconds of the links for one message whose latency has passed."""
        return self.link_scale * self.way.communicate_s(without_latency(self.cluster))

    def _after_s(self) -> float:
        """Return seconds of the links for which everybody waits."""
        return 0.0 if self.rhythm.in_flight else self.message_s

    def _longer_s(self) -> float:
        """Return the mean of the longer of the two that go on at once."""
        if not self._flight:
            return 0.0
        scale, parts = self._share * self.step_scale, self.rhythm.parts
        floor_s = self._hidden_s() / parts / scale
        return parts * scale * self.cluster.step().expected_max_above(floor_s, m=self.cluster.workers, tau=self._flight)

    # -- limits ----------------------------------------------------------------------------------------------
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
        meanwhile_s, hidden_s = self._meanwhile_s(), self._hidden_s()
        is_hidden = hidden_s <= meanwhile_s
        compute_s = self._alone_s() + (meanwhile_s if is_hidden else 0.0)
        links_s = self._after_s() + (0.0 if is_hidden else hidden_s)
        steps = self.tau if is_hidden else self.tau - self.rhythm.parts * self._share * self._flight
        mean_s = min(compute_s, self.step_scale * steps * self.cluster.step().mean_s)
        waited_for = 0 if self.rhythm.in_flight and is_hidden else 1 if is_hidden else self.rhythm.messages
        bandwidth_s = waited_for * self._without_latency_s()
        parts = {
            "compute": mean_s,
            "stragglers": compute_s - mean_s + self._longer_s() - (max(meanwhile_s, hidden_s) if self._flight else 0.0),
            "coding": self.coding_s,
            "latency": links_s - bandwidth_s,
            "bandwidth": bandwidth_s,
        }
        total = sum(parts.values())
        return {name: part / total if total else 0.0 for name, part in parts.items()}

    def _faster(self) -> Iterator[tuple[str, PlannedRun]]:
        yield "steps", replace(self, step_scale=self.step_scale / FASTER)
        if self.coding_s:
            yield "codecs", replace(self, coding_s=self.coding_s / FASTER)
        for part, cluster in faster_links(self.cluster):
            yield part, replace(self, cluster=cluster)
