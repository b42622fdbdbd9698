"""A cluster in five numbers, and the seconds of a local step on it as a certified interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

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
    inverse_rounds,
    whole_rounds,
)

from ..numbers import real, refusal, whole

if TYPE_CHECKING:
    from flint import acb

Exchange = Literal["sum", "gather", "two_shot"]
BITS_PER_BYTE = 8
RANDOM_SHARE = {"constant": Fraction(0), "exponential": Fraction(1), "half_exponential": Fraction(1, 2)}
TOPOLOGIES = ("ring", "tree", "parameter_server")
MOST_TAU = 128  # local steps up to which the slowest worker's mean is enclosed by integration
MOST_WORKERS = 10**6
PRECISION = 96
ROUNDING = 2.0**-45  # relative, of the few float operations behind the seconds of one averaging
NARROW = 1e-9


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Equal workers, equal full-duplex links.

    Parameters
    ----------
    workers : int
        >= 1.
    bandwidth_bit_per_s : float, bit/s, optional
        Of one link, > 0.
    latency_s : float, seconds, optional
        Of one hop, >= 0.
    step_s : float, seconds, optional
        mean seconds of one local step, > 0.
    compute : str or StepTime, optional
        "constant", "exponential" (every step, independently), "half_exponential" (half of the mean is fixed), or any
        ``bounds.runtime.StepTime``, whose mean then replaces step_s.
    topology : str, optional
        "ring" or "tree" (all-reduce of messages that can be summed, all-gather of others; two shots step by step in a
        ring, and between all pairs at once in a tree of switches), "parameter_server", the owner of all shards.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Examples
    --------
    >>> import ratedist as rd
    >>> rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential").workers
    16
    """

    workers: int
    bandwidth_bit_per_s: float = 1e10
    latency_s: float = 50e-6
    step_s: float = 0.1
    compute: str | StepTime = "exponential"
    topology: str = "ring"

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", whole("workers", self.workers))
        if self.workers > MOST_WORKERS:
            raise refusal("workers", f"workers <= {MOST_WORKERS}", self.workers)
        for name in ("bandwidth_bit_per_s", "latency_s", "step_s"):
            object.__setattr__(self, name, real(name, getattr(self, name)))
        if isinstance(self.compute, str) and self.compute not in RANDOM_SHARE:
            raise _unknown("compute", self.compute, tuple(RANDOM_SHARE))
        if isinstance(self.compute, StepTime):
            object.__setattr__(self, "step_s", self.compute.mean_s)
        elif self.step_s == 0 and self.compute != "constant":
            raise refusal("step_s", "0 < step_s where compute is random", self.step_s)
        if self.topology not in TOPOLOGIES:
            raise _unknown("topology", self.topology, TOPOLOGIES)

    def step(self) -> StepTime:
        """Return the law of one local step's time."""
        if isinstance(self.compute, StepTime):
            return self.compute
        if self.compute == "constant":
            return Constant(self.step_s)
        if self.compute == "exponential":
            return Exponential(self.step_s)
        return ShiftedExponential(self.step_s / 2, self.step_s / 2)

    def communication(self, exchange: Exchange = "sum", *, result_bits: float | None = None) -> Communication:
        """Return how messages travel: summed on their way, gathered one by one, or in two shots.

        Parameters
        ----------
        exchange : Exchange, optional
            Whether messages are summed on their way, gathered, or go in two shots.
        result_bits : float or None, bits, optional
            Length of what a parameter server, or all owners together, send back; by default that of a message.
        """
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

    def averaging_s(self, bits: float, exchange: Exchange = "sum", *, result_bits: float | None = None) -> Interval:
        """Return seconds of one averaging of messages of so many bits; result_bits as in ``communication``.

        Parameters
        ----------
        bits : float, bits
            Length of one worker's message.
        exchange : Exchange, optional
            Whether messages are summed on their way, gathered, or go in two shots.
        result_bits : float or None, bits, optional
            Length of what a parameter server, or all owners together, send back; by default that of a message.
        """
        seconds = _averaging_s(self.communication(exchange, result_bits=result_bits), self.workers, bits)
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
        lo, hi = _slowest_exponential(self.workers, min(tau, MOST_TAU))
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
            enough = ends[0] > 0 and time_s >= ends[0]
        else:
            runtime = RuntimeModel(self.step(), float(averaging.hi), m=self.workers)
            mean_s = tau * runtime.seconds_per_iteration(tau=tau)
            enough = 0 < mean_s <= time_s
        if not enough or math.isinf(mean_s):
            raise ValueError(
                f"time_s must hold at least one round of {tau} steps and an averaging, {mean_s:.6g} s > 0; "
                f"got time_s = {float(time_s):g}: give more time"
            )
        if self.compute == "constant":
            most, fewest = (whole_rounds(time_s, tau, end).inverse for end in ends)
            return Interval(most.lo, fewest.hi)
        return inverse_rounds(runtime, time_s=float(time_s), tau=tau)

    def in_words(self) -> str:
        """Return one line for the assumptions of a result."""
        law = self.compute if isinstance(self.compute, str) else type(self.compute).__name__
        return (
            f"{self.workers} equal workers, {law} steps of mean {self.step_s:g} s, {self.topology}, "
            f"{self.latency_s:g} s a hop, {self.bandwidth_bit_per_s:g} bit/s a link"
        )


def _unknown(name: str, value: Any, known: tuple[str, ...]) -> ValueError:
    return ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}: choose one of them")


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
def _averaging_s(communication: Communication, workers: int, bits: float) -> float:
    if isinstance(communication, RingGather):  # equal lengths: m - 1 equal hops, without m^2 work
        return (workers - 1) * communication.seconds(m=2, bits=bits)
    return communication.seconds(m=workers, bits=bits)


def _around(value: float, relative: float) -> Interval:
    exact = Fraction(value)
    return Interval.outwards(exact * (1 - Fraction(relative)), exact * (1 + Fraction(relative)))


@lru_cache(maxsize=4096)
def _slowest_exponential(workers: int, tau: int) -> tuple[Fraction, Fraction]:
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
