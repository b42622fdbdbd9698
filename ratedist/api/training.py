"""How often to synchronise: seconds of a step, the error bound in seconds, and the best number of local steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from bounds import Bound, Interval
from bounds.symbols import NONNEGATIVE
from bounds.tau import Derivation, tau_smooth, tau_straggler
from bounds.tau import tau_star as published_tau_star
from bounds.theorems import pasgd_compressed, pasgd_iterations

from ..numbers import broadcast_shape, read, real
from ..records import Quantities, Quantity, Statement
from .cluster import Cluster, Exchange, checked_cluster
from .evaluation import enclose, statement_of

MOST_POINTS = 10_000  # of an array of tau or bits: each needs an integral
FINITE_COMPUTE = "steps are independent between workers and over time"


def runtime(cluster: Cluster, *, tau: Any, bits: Any = 0, exchange: Exchange = "sum") -> Any:
    """Mean seconds of one local step, its share of an averaging included.

    tau : local steps between averagings.  bits : of one worker's message.  Arrays broadcast.
    exchange : "sum" for messages that can be added on their way (dense ones), "gather" for compressed ones.
    c(tau) = E max over workers of the mean of tau steps + D(bits)/tau.  Raises ValueError outside the ranges.

    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
    >>> rd.runtime(cluster, tau=8, bits=32 * 25_600_000)
    Quantity(0.156797471 s, certified in [0.15679747127180324, 0.1567974712718044], runtime_model)
    """
    cluster = checked_cluster(cluster)
    if exchange not in ("sum", "gather"):
        raise ValueError(f"exchange must be sum or gather; got {exchange!r}: choose one of them")
    given = {"tau": read("tau", tau), "bits": read("bits", bits)}

    def one(at: dict[str, str]) -> Quantity:
        bits_each = real("bits", at["bits"])
        value, interval = cluster.step_seconds_value(int(Fraction(at["tau"])), bits_each, exchange)
        synchronous = cluster.step_seconds(1, bits_each, exchange).midpoint
        advice = _saving(value, synchronous, cluster.step().mean_s)
        return Quantity(value, statement=_runtime_statement(cluster, at, advice), interval=interval)

    return _spread(given, one, _runtime_statement(cluster, given, ""))


def _saving(value: float, synchronous: float, mean: float) -> str:
    if mean == 0:
        return "Computing takes no time here: raise tau as far as the error allows"
    return (
        f"{synchronous / value:.3g} times faster than averaging after every step; no tau gains more than "
        f"{synchronous / mean:.3g} times"
    )


def _runtime_statement(cluster: Cluster, at: dict[str, Any], advice: str) -> Statement:
    return Statement(
        quantity="mean seconds of one local step, its share of the averaging included",
        unit="s",
        side="tight",
        theorem="runtime_model",
        reference="wang2018, Section 3, arXiv:1810.08313",
        status="proved",
        assumptions=(cluster.in_words(), FINITE_COMPUTE),
        advice=advice,
        formula=r"c(\tau) = E\max_{i\le m}\frac1\tau\sum_{k\le\tau} Y_{i,k} + \frac D\tau",
        at={**at, "cluster": cluster},
    )


def _spread(given: dict[str, Any], one: Callable[[dict[str, str]], Quantity], statement: Statement) -> Any:
    """A Quantity at texts, or Quantities over the broadcast arrays."""
    if all(isinstance(value, str) for value in given.values()):
        return one(given)
    shape = broadcast_shape(given)
    size = int(np.prod(shape))
    if size > MOST_POINTS:
        raise ValueError(f"at most {MOST_POINTS} points a call; got {size}: split it into several calls")

    found = {
        index: one(
            {n: v if isinstance(v, str) else repr(float(np.broadcast_to(v, shape)[index])) for n, v in given.items()}
        )
        for index in np.ndindex(shape)
    }
    values = np.array([float(result) for result in found.values()]).reshape(shape)
    return Quantities(values, statement=statement, each=found.__getitem__)


def error_bound(
    *, L: Any, sigma2: Any, eta: Any, gap: Any, tau: Any, time_s: Any, cluster: Cluster, bits: Any = 0, omega: Any = 0
) -> Any:
    """Theorem 1 of local-update SGD in seconds: what E|grad F|^2 is at most, on average over the run.

    L, sigma2, gap : smoothness, variance of one worker's gradient, F(x_1) - inf F.  eta : learning rate.  tau : local
    steps between averagings.  time_s : budget; K = time_s/c(tau) local steps fit in.  bits : of one message.
    omega : of an unbiased compressor of the round's change (0: none).  Arrays broadcast.
    Raises ValueError outside the ranges, or if eta L + eta^2 L^2 tau (tau - 1) > 1.

    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="constant")
    >>> rd.error_bound(L=1, sigma2=1, eta=0.05, gap=1, tau=8, time_s=3600, cluster=cluster)
    Quantity(0.0215159722, certified in [0.02151597222222222, 0.021515972222222225], pasgd_iterations)
    """
    cluster = checked_cluster(cluster)
    names = {"L": L, "sigma2": sigma2, "eta": eta, "gap": gap, "tau": tau, "time_s": time_s, "bits": bits}
    given = {name: read(name, value) for name, value in names.items()}
    level = read("omega", omega, NONNEGATIVE)
    bound: Bound = pasgd_iterations if isinstance(level, str) and Fraction(level) == 0 else pasgd_compressed
    if bound is pasgd_compressed:
        given["omega"] = level
    statement = replace(
        statement_of(bound, given, "Compare tau with rd.tau_star, which minimises this bound"),
        assumptions=(*statement_of(bound, given).assumptions, f"K = time_s/c(tau) on {cluster.in_words()}"),
        at={**given, "cluster": cluster},
    )

    def one(at: dict[str, str]) -> Quantity:
        interval = _error_interval(bound, cluster, at)
        return Quantity(
            interval.midpoint, statement=replace(statement, at=at | {"cluster": cluster}), interval=interval
        )

    return _spread(given, one, statement)


def _error_interval(bound: Bound, cluster: Cluster, at: dict[str, str]) -> Interval:
    """Between the values at the most and the fewest steps that may fit into the time."""
    exchange: Exchange = "gather" if "omega" in at else "sum"
    step = cluster.step_seconds(int(Fraction(at["tau"])), real("bits", at["bits"]), exchange)
    if step.hi == 0 or math.isinf(step.hi):
        raise ValueError(f"a local step must take a finite time > 0; got {step.hi} s: change step_s or bits")
    fixed = {name: at[name] for name in at if name in {s.name for s in bound.parameters}} | {"m": str(cluster.workers)}
    steps = Interval.outwards(*(Fraction(at["time_s"]) / Fraction(end) for end in (step.hi, step.lo or step.hi)))
    if steps.lo < 1:
        raise ValueError(
            f"time_s must hold at least one local step of {step.hi:.6g} s; got time_s = {at['time_s']}: give more time"
        )
    worst, best = (enclose(bound, fixed | {"K": repr(k)}) for k in (steps.lo, steps.hi))
    return Interval(best.lo, worst.hi)


class TauResult(Quantity):
    """The number of local steps to use, as a float, with the values around it.

    tau : the best integer by Theorem 2 (equal to the float itself).  tau_real : its real minimiser.  cap : the largest
    tau that the learning rate allows, None if eta L > 1.  safe : tau within that cap: the worst case is covered.
    sharp : the best integer within the cap when stragglers count too, so at least as good.  smooth : of the third-order
    law, where ``third_derivative`` was given: smooth problems bear that many, kinked ones do not; else None.
    """

    tau: int
    tau_real: float
    cap: int | None
    safe: int | None
    sharp: int | None
    smooth: int | None

    def derivation(self) -> Derivation:
        """The proof, by sympy, that tau_real is the only positive minimiser of the bound."""
        from bounds.tau.tau_star import derivation

        return derivation()

    def to_dict(self) -> dict[str, Any]:
        """With the values around it."""
        names = ("tau", "tau_real", "safe", "sharp", "smooth", "cap")
        return super().to_dict() | {name: getattr(self, name) for name in names}


def tau_star(
    *,
    L: Any,
    sigma2: Any,
    eta: Any,
    gap: Any,
    time_s: Any,
    cluster: Cluster,
    bits: Any = 0,
    third_derivative: Any = None,
) -> TauResult:
    """How many local steps between two averagings minimise the error bound at this learning rate.

    Arguments as in ``error_bound``, scalars.  bits : of one message; 0 counts latency alone.  Theorem 2 of Wang & Joshi
    (2018): tau* = sqrt(2 gap D/(eta^3 L^2 sigma2 T)) with D the seconds of one averaging.  third_derivative : size of
    the third derivative of F along the noise, if known; adds ``smooth``.
    Raises ValueError outside the ranges, or for sigma2 = 0, where every tau is as good as the cap.

    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
    >>> best = rd.tau_star(L=1, sigma2=1, eta=0.01, gap=1, time_s=600, cluster=cluster, bits=32 * 25_600_000)
    >>> best.tau, round(best.tau_real, 3), best.safe, best.sharp
    (23, 22.738, 23, 49)
    """
    cluster = checked_cluster(cluster)
    names = {"L": L, "sigma2": sigma2, "eta": eta, "gap": gap, "time_s": time_s, "bits": bits}
    given = {name: _scalar(name, value) for name, value in names.items()}
    delay_s = cluster.model().seconds_per_averaging(bits=real("bits", given["bits"]))
    problem = {name: given[name] for name in ("gap", "eta", "time_s", "L", "sigma2")}
    found = published_tau_star(**problem, delay_s=delay_s)
    if found.integer is None:
        raise ValueError(
            f"sigma2 must be > 0 for a best tau; got sigma2 = {given['sigma2']}: without noise take the largest tau "
            f"that the learning rate allows, {found.cap}"
        )
    numbers = {name: float(Fraction(text)) for name, text in problem.items()}
    sharp = tau_straggler(runtime=cluster.model(), bits=real("bits", given["bits"]), **numbers).capped
    smooth = None
    if third_derivative is not None:
        third = _scalar("third_derivative", third_derivative)
        rest = {name: given[name] for name in ("gap", "eta", "time_s", "sigma2")}
        smooth = tau_smooth(**rest, delay_s=delay_s, third_derivative=third).integer
    statement = _tau_statement(cluster, given, delay_s, found.cap, found.capped, sharp)
    exact = Interval(found.integer, found.integer)
    result = TauResult(found.integer, statement=statement, interval=exact)
    assert isinstance(result, TauResult)
    result.__dict__.update(
        tau=found.integer, tau_real=found.real, cap=found.cap, safe=found.capped, sharp=sharp, smooth=smooth
    )
    return result


def _tau_statement(
    cluster: Cluster, given: dict[str, str], delay_s: float, cap: int | None, safe: int | None, sharp: int | None
) -> Statement:
    from bounds.tau.tau_star import latex

    if cap is None:
        advice = f"eta L > 1 is outside Theorem 1: lower eta from {given['eta']} before trusting any tau"
    else:
        waiting = "" if sharp == safe else f", every {sharp} if stragglers count too"
        advice = (
            f"Average every {'step' if safe == 1 else f'{safe} steps'} to be safe in the worst case{waiting}; "
            "on smooth losses more pays: schedule='auto' measures how many while training"
        )
    return Statement(
        quantity="local steps between two averagings that minimise the error bound",
        unit="step",
        side="tight",
        theorem="tau_star",
        reference="wang2018, Theorem 2, arXiv:1810.08313",
        status="proved",
        assumptions=(
            "the assumptions of pasgd_runtime: L-smooth F, unbiased gradients, all workers sample the same F",
            f"one averaging takes D = {delay_s:.6g} s on {cluster.in_words()}",
            f"eta*L + (eta*L)**2*tau*(tau - 1) <= 1 holds up to tau = {cap}",
        ),
        advice=advice,
        formula=latex(),
        at={**given, "cluster": cluster},
    )


def _scalar(name: str, value: Any) -> str:
    text = read(name, value)
    if not isinstance(text, str):
        raise ValueError(f"{name} must be one number here; got {np.size(value)}: call tau_star once for each")
    return text
