"""A cluster in five numbers, and the seconds of a local step on it as a certified interval."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from inspect import signature
from typing import TYPE_CHECKING, Any, get_args

from bounds import Interval
from bounds.runtime import (
    Communication,
    Constant,
    Exponential,
    ParameterServer,
    Ring,
    RingGather,
    RuntimeModel,
    ShiftedExponential,
    StepTime,
    Tree,
    TreeGather,
    TwoShot,
    TwoShotRing,
    count_rounds,
    inverse_rounds,
    no_round,
    whole_rounds,
)

from ..numbers import real, refusal, whole
from .links import BITS_PER_BYTE, Exchange, Link, node_fields, on_nodes

if TYPE_CHECKING:
    from flint import acb


# -- the slowest of exponential steps ------------------------------------------------------------------

PRECISION = 96


@lru_cache(maxsize=4096)
def slowest_exponential(workers: int, tau: int) -> tuple[Fraction, Fraction]:
    """Return E max over m workers of the mean of tau standard exponential steps, in ball arithmetic.

    It is (1/tau) int_0^inf 1 - (1 - Q(t))^m dt with Q(t) = e^-t sum_{k < tau} t^k/k!, an entire integrand.  Beyond T
    the integrand is at most m Q, and int_T^inf Q = tau Q_{tau+1}(T) - T Q_tau(T).
    """
    from flint import acb, arb, ctx

    from bounds.enclosure import ball_interval

    with ctx.workprec(PRECISION):
        if tau == 1:
            ball = arb(workers + 1).digamma() + arb.const_euler()
        else:
            end = arb(math.ceil(tau + 12 * math.sqrt(tau * math.log(2 + workers)) + 12 * math.log(2 + workers) + 90))
            body = acb.integral(lambda z, _: _missing_mass(z, workers, tau), acb(0), acb(end)).real
            q = _gamma_tail(acb(end), tau).real
            tail = workers * (tau * (q + (-end).exp() * end**tau / arb(tau).gamma() / tau) - end * q)
            ball = (body + tail.union(arb(0))) / tau
        interval = ball_interval(ball)
    return Fraction(interval.lo), Fraction(interval.hi)


def _missing_mass(z: acb, workers: int, tau: int) -> acb:
    return 1 - (1 - _gamma_tail(z, tau)) ** workers


def _gamma_tail(z: acb, tau: int) -> acb:
    """Return e^-z sum_{k < tau} z^k/k! by Horner's rule."""
    total = z * 0 + 1
    for k in range(tau - 1, 0, -1):
        total = total * z / k + 1
    return (-z).exp() * total


# -- cluster -------------------------------------------------------------------------------------------

RANDOM_SHARE = {"constant": Fraction(0), "exponential": Fraction(1), "half_exponential": Fraction(1, 2)}
TOPOLOGIES = ("ring", "tree", "parameter_server")
MOST_TAU = 128  # local steps up to which the slowest worker's mean is enclosed by integration
MOST_WORKERS = 10**6
DEFAULT_BIT_PER_S, DEFAULT_LATENCY_S = 1e10, 50e-6
ROUNDING = 2.0**-45  # relative, of the few float operations behind the seconds of one averaging
NARROW = 1e-9


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Equal workers, equal full-duplex links; or equal nodes, with fast links inside and one slow link each.

    Parameters
    ----------
    workers : int, optional
        Number of workers, >= 1.  With nodes and gpus_per_node it may be left out.
    bandwidth_bit_per_s : float, bit/s, optional
        Bandwidth of one link in bit/s, > 0.  With nodes it is that of the link of a node, which its workers share.
    latency_s : float, seconds, optional
        Seconds of one hop besides its bytes, >= 0.  With nodes it is that of a hop between them.
    step_s : float, seconds, optional
        Mean seconds of one local step, > 0.
    compute : {"exponential", "constant", "half_exponential"} or StepTime, optional
        Law of the step times.  "exponential": every step independently; "half_exponential": half of the mean is fixed.
        A ``bounds.runtime.StepTime`` is taken too; its mean replaces step_s.
    topology : {"ring", "tree", "parameter_server"}, optional
        How the links are connected.  "ring" or "tree": all-reduce of messages that can be summed, all-gather of others;
        two shots step by step in a ring, and between all pairs at once in a tree of switches.  "parameter_server" is
        the owner of all shards.
    nodes : int or None, optional
        Number of nodes of equally many workers, which share the link of their node.  None: every worker has its own
        link.
    gpus_per_node : int or None, optional
        Workers of a node; workers/nodes unless given.
    inside : Link or str or None, optional
        Link of a worker inside its node: NAME,LATENCY_S or BIT_PER_S,LATENCY_S; names such as nvlink4, pcie5_x16,
        ethernet_25g, infiniband_ndr, aws_p5 (``LINE_RATES`` of ratedist.cluster.links).
    between : Link or str or None, optional
        Link of a node instead of bandwidth and latency: NAME,LATENCY_S or BIT_PER_S,LATENCY_S.
    sums_at_once : int, optional
        Sums that a process group makes at the same time, 1 for NCCL (in its one stream), 2 for gloo (its threads).
    backward_share : float or None, optional
        Of a step's seconds, those of the backward pass, 0 < backward_share <= 1; None: 2/3, which predictions say.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Examples
    --------
    >>> import ratedist as rd
    >>> rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential").workers
    16
    >>> inside, between = rd.Link.named("nvlink4", latency_s=3e-6), rd.Link.named("infiniband_ndr", latency_s=5e-6)
    >>> rd.Cluster(nodes=8, gpus_per_node=8, inside=inside, between=between, step_s=0.08).workers
    64
    """

    workers: int = 0
    bandwidth_bit_per_s: float = DEFAULT_BIT_PER_S
    latency_s: float = DEFAULT_LATENCY_S
    step_s: float = 0.1
    compute: str | StepTime = "exponential"
    topology: str = "ring"
    nodes: int | None = None
    gpus_per_node: int | None = None
    inside: Link | str | None = None
    between: Link | str | None = None
    sums_at_once: int = 1
    backward_share: float | None = None

    def __new__(cls, **stated: Any) -> Cluster:
        """Remember which arguments were stated: an answer lists the others as assumed."""
        self = object.__new__(cls)
        self.__dict__["_stated"] = frozenset(stated)
        return self

    def __post_init__(self) -> None:
        for name, value in node_fields(vars(self), latency_s=DEFAULT_LATENCY_S, bit_per_s=DEFAULT_BIT_PER_S).items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "workers", whole("workers", self.workers))
        if self.workers > MOST_WORKERS:
            raise refusal("workers", f"workers <= {MOST_WORKERS}", self.workers)
        for name in ("bandwidth_bit_per_s", "latency_s", "step_s"):
            object.__setattr__(self, name, real(name, getattr(self, name)))
        object.__setattr__(self, "sums_at_once", whole("sums_at_once", self.sums_at_once))
        if self.backward_share is not None:
            object.__setattr__(self, "backward_share", real("backward_share", self.backward_share))
        if isinstance(self.compute, str) and self.compute not in RANDOM_SHARE:
            law = ", or in Python give a law of bounds.runtime"
            raise _unknown("compute", self.compute, tuple(RANDOM_SHARE), more=law)
        if isinstance(self.compute, StepTime):
            object.__setattr__(self, "step_s", self.compute.mean_s)
        elif self.step_s == 0 and self.compute != "constant":
            raise refusal("step_s", "0 < step_s where compute is random", self.step_s)
        if self.topology not in TOPOLOGIES:
            raise _unknown("topology", self.topology, TOPOLOGIES)

    def options(self) -> dict[str, str]:
        """Return the arguments of a command that state this cluster, of those that differ from the defaults.

        Raises
        ------
        ValueError
            For a law of step times, which no option states.
        """
        if not isinstance(self.compute, str):
            raise ValueError(f"compute must be a name on the command line; got {self.compute!r}: call Python instead")
        hidden = {"gpus_per_node", "backward_share"}  # of predictions alone
        hidden |= {"bandwidth_bit_per_s", "latency_s"} if self.between else set()
        changed = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        return {name: _option_text(value) for name, value in changed.items() if name not in hidden}

    @property
    def links(self) -> tuple[Link, Link]:
        """The link inside a node and that between nodes; the same twice without nodes."""
        between = Link(self.bandwidth_bit_per_s, self.latency_s)
        if isinstance(self.between, Link):
            between = self.between
        return (self.inside if isinstance(self.inside, Link) else between), between

    def step(self) -> StepTime:
        """Return the law of one local step's time."""
        if isinstance(self.compute, StepTime):
            return self.compute
        if self.compute == "constant":
            return Constant(self.step_s)
        if self.compute == "exponential":
            return Exponential(self.step_s)
        return ShiftedExponential(self.step_s / 2, self.step_s / 2)

    def communication(
        self, exchange: Exchange = "sum", *, result_bits: float | None = None, dense_bits: float = 0.0
    ) -> Communication:
        """Return how messages travel: summed on their way, gathered one by one, or in two shots.

        Parameters
        ----------
        exchange : Exchange, optional
            Whether messages are summed on their way, gathered, or go in two shots; "node_gather" and "node_two_shot"
            do so with the messages of nodes, whose workers sum exactly.
        result_bits : float or None, bits, optional
            Length of what a parameter server, or all owners together, send back; by default that of a message.
        dense_bits : float, bits, optional
            Length of an uncompressed vector, which is summed inside nodes.

        Raises
        ------
        ValueError
            For an unknown exchange, and messages of nodes where there are none.
        """
        if exchange not in get_args(Exchange):
            raise _unknown("exchange", exchange, get_args(Exchange))
        if self.nodes is not None and self.gpus_per_node is not None:
            return on_nodes(exchange, self.links, self.gpus_per_node, result_bits=result_bits, dense_bits=dense_bits)
        if exchange in ("node_gather", "node_two_shot"):
            raise ValueError(f"{exchange} needs nodes; got nodes = None: give nodes, gpus_per_node and inside")
        link = self.latency_s, self.bandwidth_bit_per_s / BITS_PER_BYTE
        if self.topology == "parameter_server":
            return ParameterServer(*link, result_bits)
        if exchange == "two_shot":
            shots = TwoShotRing if self.topology == "ring" else TwoShot
            return shots(*link, result_bits=result_bits)
        kinds: dict[tuple[str, str], type[Communication]] = {
            ("ring", "sum"): Ring,
            ("ring", "gather"): RingGather,
            ("tree", "sum"): Tree,
            ("tree", "gather"): TreeGather,
        }
        return kinds[self.topology, exchange](*link)

    def model(self, exchange: Exchange = "sum") -> RuntimeModel:
        """Return the runtime model of ``bounds.runtime``.

        Parameters
        ----------
        exchange : Exchange, optional
            Whether messages are summed on their way, gathered, or go in two shots.
        """
        return RuntimeModel(self.step(), communication=self.communication(exchange), m=self.workers)

    def averaging_s(
        self,
        bits: float,
        exchange: Exchange = "sum",
        *,
        result_bits: float | None = None,
        dense_bits: float = 0.0,
    ) -> Interval:
        """Return seconds of one averaging of messages of so many bits; further lengths as in ``communication``.

        Parameters
        ----------
        bits : float, bits
            Length of one worker's message.
        exchange : Exchange, optional
            Whether messages are summed on their way, gathered, or go in two shots.
        result_bits : float or None, bits, optional
            Length of what a parameter server, or all owners together, send back; by default that of a message.
        dense_bits : float, bits, optional
            Length of an uncompressed vector, which is summed inside nodes.
        """
        communication = self.communication(exchange, result_bits=result_bits, dense_bits=dense_bits)
        seconds = _averaging_s(communication, self.workers, bits)
        return _around(seconds, ROUNDING)

    def slowest_s(self, tau: int) -> Interval:
        """Return expected maximum over the workers of the mean of tau steps, enclosed.

        Beyond 128 steps, and for laws that are no exponential, by Jensen and monotonicity: between the mean and the
        value at fewer steps (m times the mean where nothing better is known).

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        """
        if isinstance(self.compute, StepTime):
            mean = self.compute.mean_s
            return Interval(mean, mean * self.workers if self.workers > 1 else mean)
        whole_step = Fraction(repr(self.step_s))  # a float counts as the decimal that it prints
        random = whole_step * RANDOM_SHARE[self.compute]
        fixed = whole_step - random
        if random == 0 or self.workers == 1:
            return Interval.outwards(whole_step, whole_step)
        lo, hi = slowest_exponential(self.workers, min(tau, MOST_TAU))
        lo = Fraction(1) if tau > MOST_TAU else lo
        return Interval.outwards(fixed + random * lo, fixed + random * hi)

    def step_seconds(self, tau: int, bits: float, exchange: Exchange = "sum") -> Interval:
        """Return mean seconds of one local step with its share of an averaging, enclosed.

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        bits : float, bits
            Length of one worker's message.
        exchange : Exchange, optional
            Whether messages are summed on their way, gathered, or go in two shots.
        """
        compute, averaging = self.slowest_s(tau), self.averaging_s(bits, exchange)
        lo, hi = (Fraction(a) + Fraction(b) / tau for a, b in ((compute.lo, averaging.lo), (compute.hi, averaging.hi)))
        return Interval.outwards(lo, hi)

    def step_seconds_value(self, tau: int, bits: float, exchange: Exchange = "sum") -> tuple[float, Interval]:
        """Return the number to show and its enclosure: the middle where that is narrow, else the model's own
        quadrature.

        Parameters
        ----------
        tau : int
            Local steps between two averagings.
        bits : float, bits
            Length of one worker's message.
        exchange : Exchange, optional
            Whether messages are summed on their way, gathered, or go in two shots.
        """
        interval = self.step_seconds(tau, bits, exchange)
        if interval.relative_width < NARROW:
            return interval.midpoint, interval
        seconds = self.slowest_s(tau).lo if self.workers == 1 else self.step().expected_max(m=self.workers, tau=tau)
        value = float(seconds) + self.averaging_s(bits, exchange).midpoint / tau
        return min(max(value, float(interval.lo)), float(interval.hi)), interval

    def inverse_rounds(self, time_s: Fraction, tau: int, bits: float, exchange: Exchange = "sum") -> Interval:
        """Return E 1/max(N, 1) over the number N of rounds that end by a time, enclosed; exact for constant times.

        Parameters
        ----------
        time_s : Fraction, seconds
            Wall-clock budget.
        tau : int
            Local steps between two averagings.
        bits : float, bits
            Length of one worker's message.
        exchange : Exchange, optional
            Whether messages are summed on their way, gathered, or go in two shots.

        Raises
        ------
        ValueError
            If the time holds less than one round, or if rounds are not independent.
        """
        averaging = self.averaging_s(bits, exchange)
        if self.compute == "constant":
            step = Fraction(repr(self.step_s))
            ends = [step * tau + Fraction(end) for end in (averaging.lo, averaging.hi)]
            mean_s = float(ends[1])
            enough = ends[0] > 0 and count_rounds(time_s, ends[0]) >= 1
        else:
            runtime = RuntimeModel(self.step(), float(averaging.hi), m=self.workers)
            mean_s = tau * runtime.seconds_per_iteration(tau=tau)
            enough = 0 < mean_s <= time_s
        if not enough or math.isinf(mean_s):
            raise ValueError(no_round(time_s, tau, mean_s))
        if self.compute == "constant":
            most, fewest = (whole_rounds(time_s, tau, end).inverse for end in ends)
            return Interval(most.lo, fewest.hi)
        return inverse_rounds(runtime, time_s=float(time_s), tau=tau)

    @property
    def stated(self) -> frozenset[str]:
        """The names of the arguments that the caller stated."""
        return frozenset(self.__dict__["_stated"])

    @property
    def assumes_compute(self) -> bool:
        """Whether several workers have step times of a law that the caller did not state."""
        return self.workers > 1 and isinstance(self.compute, str) and "compute" not in self.stated

    def with_parts(self, **changes: Any) -> Cluster:
        """Return the cluster with other parts; what was not stated stays assumed.

        Parameters
        ----------
        **changes
            Arguments of ``Cluster`` that replace those of this one.
        """
        return Cluster(**{name: getattr(self, name) for name in self.stated} | changes)

    @property
    def is_random(self) -> bool:
        """Whether workers wait for stragglers, that is, there are several and their step times vary."""
        return self.workers > 1 and not isinstance(self.step(), Constant)

    def assumed(self) -> tuple[str, ...]:
        """Return what the caller did not state, with the values that were taken."""
        words = {}
        if isinstance(self.compute, str):
            words["step_s"] = f"steps of {self.step_s:g} s"
        if self.workers > 1:
            if self.assumes_compute:
                words["compute"] = f"{self.compute} step times"
            if self.nodes is None:
                words["topology"] = f"{self.topology} topology"
            if "between" not in self.stated:
                words["bandwidth_bit_per_s"] = f"{self.bandwidth_bit_per_s / 1e9:g} Gbit/s per link"
                words["latency_s"] = f"{self.latency_s * 1e6:g} us per hop"
        return tuple(text for name, text in words.items() if name not in self.stated)

    def in_words(self) -> str:
        """Return one line for the assumptions of a result."""
        law = self.compute if isinstance(self.compute, str) else type(self.compute).__name__
        steps = f"{law} steps of mean {self.step_s:g} s"
        if self.nodes is not None:
            inside, between = (link.in_words() for link in self.links)
            shape = f"{self.nodes} nodes of {self.gpus_per_node} equal workers"
            return f"{shape}, {steps}, inside a node {inside} a worker, between nodes {between} a node"
        return (
            f"{self.workers} equal workers, {steps}, {self.topology}, "
            f"{self.latency_s:g} s a hop, {self.bandwidth_bit_per_s:g} bit/s a link"
        )


_of_init = list(signature(Cluster.__init__).parameters.values())
Cluster.__signature__ = signature(Cluster).replace(parameters=_of_init[1:])  # type: ignore[attr-defined]  # not __new__


def _unknown(name: str, value: Any, known: tuple[str, ...], *, more: str = "") -> ValueError:
    return ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}: choose one of them{more}")


def checked_cluster(cluster: Any) -> Cluster:
    """Return the argument itself.

    Raises
    ------
    ValueError
        For anything but a Cluster.
    """
    if not isinstance(cluster, Cluster):
        raise ValueError(f"cluster must be a ratedist.Cluster; got {cluster!r}: write rd.Cluster(workers=16, ...)")
    return cluster


@lru_cache(maxsize=1024)
def _option_text(value: Any) -> str:
    if isinstance(value, Link):
        return ",".join(map(_option_text, (value.bandwidth_bit_per_s, value.latency_s)))
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


def _averaging_s(communication: Communication, workers: int, bits: float) -> float:
    if isinstance(communication, RingGather):  # equal lengths: m - 1 equal hops, without m^2 work
        return (workers - 1) * communication.seconds(m=2, bits=bits)
    return communication.seconds(m=workers, bits=bits)


def _around(value: float, relative: float) -> Interval:
    exact = Fraction(value)
    return Interval.outwards(exact * (1 - Fraction(relative)), exact * (1 + Fraction(relative)))
