"""Seconds of a planned run as a function of the cluster, its rhythm, and what limits it.

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
from functools import lru_cache
from typing import Any

from ..cluster.cluster import Cluster
from ..cluster.links import Link
from ..cluster.travel import Travel
from ..numbers import refusal, whole
from ..records import plain

# -- rhythm --------------------------------------------------------------------------------------------

BACKWARD_SHARE = 2 / 3  # of a step: two of its three matrix products a layer
FIRST_BUCKET_BYTES, BUCKET_BYTES = 2**20, 25 * 2**20  # of torch's DistributedDataParallel
DENSE_BYTES = 4


@dataclass(frozen=True)
class Rhythm:
    """When the workers average.

    Parameters
    ----------
    tau : int
        Local steps between two averages of the same parameter.
    in_flight : int, optional
        Steps made while a message travels, at most tau/parts; 0: the workers wait.
    parts : int, optional
        Fragments of the model, sent one after the other, every tau/parts steps.
    buckets : int, optional
        Messages of a gradient, of which all but the last travel during the backward pass; only where workers average
        after every step and wait.
    """

    tau: int = 1
    in_flight: int = 0
    parts: int = 1
    buckets: int = 1

    @property
    def messages(self) -> int:
        """Into how many the model is cut."""
        return self.parts * self.buckets

    @property
    def steps(self) -> int:
        """Local steps between two messages of a worker, whatever their fragments."""
        return self.tau // self.parts

    @property
    def oldest(self) -> int:
        """How many steps old the oldest gradient is that an average adds up."""
        return self.tau + self.in_flight

    def in_words(self) -> str:
        """Return what follows the name of operator and exchange; nothing where workers average after every step."""
        buckets = f", in {self.buckets} buckets during the backward pass" if self.buckets > 1 else ""
        steps = "" if self.tau == 1 else f", averaging every {self.tau} steps"
        parts = f" in {self.parts} fragments" if self.parts > 1 else ""
        flight = "" if self.in_flight == self.steps else f" for {self.in_flight} of {self.steps} steps"
        return buckets + steps + parts + (f", overlapped with computing{flight}" if self.in_flight else "")


def rhythm_of(*, tau: Any, overlap: bool, parts: Any = 1, in_flight: Any = None, buckets: Any = 1) -> Rhythm:
    """Return the rhythm that a user has described.

    Parameters
    ----------
    tau : int
        Local steps between two averages of the same parameter.
    overlap : bool
        Whether averages travel while the workers go on.
    parts : int, optional
        Fragments of the model.
    in_flight : int or None, optional
        Steps made while a message travels; None: all between two messages.
    buckets : int, optional
        Messages of a gradient.

    Raises
    ------
    ValueError
        For numbers that do not fit together.
    """
    steps, fragments, messages = whole("tau", tau), whole("parts", parts), whole("buckets", buckets)
    if not overlap and (fragments > 1 or in_flight is not None):
        given = f"parts = {parts}" if fragments > 1 else f"in_flight = {in_flight}"
        raise ValueError(f"{given} is of averages in flight; got no overlap: give overlap too, or leave it out")
    if steps % fragments:
        raise ValueError(f"tau must be a multiple of parts; got tau = {tau}, parts = {parts}: fragments take turns")
    if messages > 1 and (steps > 1 or overlap):
        raise ValueError(
            f"buckets travel during the backward pass of every step; got buckets = {buckets} beside tau = {tau}"
            f"{' in flight' * overlap}: leave one of them out"
        )
    between = steps // fragments
    flight = between if in_flight is None else whole("in_flight", in_flight)
    if not 1 <= flight <= between:
        raise refusal("in_flight", f"1 <= in_flight <= tau/parts = {between}", in_flight)
    return Rhythm(steps, flight if overlap else 0, fragments, messages)


def buckets_of(d: int) -> int:
    """Return into how many equal messages a gradient is cut for the backward pass.

    Parameters
    ----------
    d : int
        Trained parameters.

    Notes
    -----
    As many as DistributedDataParallel makes by default, of 25 MiB; two for what is shorter than that and
    longer than its first bucket of 1 MiB.
    """
    length = DENSE_BYTES * d
    return 1 if length <= FIRST_BUCKET_BYTES else max(2, -(-length // BUCKET_BYTES))


def rhythms(*, longest: int, d: int, workers: int) -> Iterator[Rhythm]:
    """Yield the rhythms that a plan looks at.

    Powers of two of local steps, fragments and steps in flight, and the most that the pilot has looked at; in flight
    only while no gradient is older than that.  Fragments and buckets have a coordinate for every worker.

    Parameters
    ----------
    longest : int
        The most local steps that the pilot has looked at.
    d : int
        Trained parameters.
    workers : int
        That train.
    """
    buckets = buckets_of(d)
    if 1 < buckets <= d // workers:
        yield Rhythm(buckets=buckets)
    for tau in rounds_of(longest):
        yield Rhythm(tau)
        for parts in rounds_of(tau):
            if tau % parts == 0 and (parts == 1 or (parts & (parts - 1) == 0 and parts <= d // workers)):
                between = tau // parts
                for in_flight in rounds_of(between):
                    if tau + in_flight <= longest:
                        yield Rhythm(tau, in_flight, parts)


def rounds_of(longest: int) -> list[int]:
    """Return the powers of two up to a number, and the number.

    Parameters
    ----------
    longest : int
        The number, >= 1.
    """
    return sorted({1 << k for k in range(longest.bit_length())} | {longest})


# -- limits --------------------------------------------------------------------------------------------

FASTER = 2
LEAST_SHARE = 0.01  # of a round, that is worth a word
SHARES = {"compute": "computing", "stragglers": "waiting for stragglers"}


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

    def shares_in_words(self) -> str:
        """Return all shares of a round of at least 1 %, the largest first, and which change saves most."""
        shares = sorted(self.shares.items(), key=lambda each: -each[1])
        parts = ", ".join(f"{share:.0%} {SHARES.get(name, name)}" for name, share in shares if share >= LEAST_SHARE)
        saved = [f"; {each.part} twice as good would save {each.saved_share:.0%}" for each in self.changes[:1]]
        return parts + "".join(saved)

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


# -- seconds of a run ----------------------------------------------------------------------------------


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
