"""What time buys: seconds of a local step, and the error bound at a wall-clock time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from bounds import Bound, Interval
from bounds.estimate import Estimate, through
from bounds.symbols import NONNEGATIVE
from bounds.theorems import pasgd_compressed_wall_clock, pasgd_wall_clock

from ..numbers import broadcast_shape, read, real
from ..records import Quantities, Quantity, Statement
from .cluster import Cluster, Exchange, checked_cluster
from .constants import between, read_constants, uncertain_statement
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
        return Quantity(value, statement=_runtime_statement(cluster, at, exchange, advice), interval=interval)

    return _spread(given, one, _runtime_statement(cluster, given, exchange, ""))


def _saving(value: float, synchronous: float, mean: float) -> str:
    if mean == 0:
        return "Computing takes no time here: raise tau as far as the error allows"
    return (
        f"{synchronous / value:.3g} times faster than averaging after every step; no tau gains more than "
        f"{synchronous / mean:.3g} times"
    )


def _runtime_statement(cluster: Cluster, at: dict[str, Any], exchange: Exchange, advice: str) -> Statement:
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
        function=partial(runtime, cluster, exchange=exchange),
    )


def _spread(given: dict[str, Any], one: Callable[[dict[str, str]], Quantity], statement: Statement) -> Any:
    """A Quantity at texts, or Quantities over the broadcast arrays."""
    if all(isinstance(value, str) for value in given.values()):
        return one(given)
    shape = broadcast_shape(given)
    size = int(np.prod(shape))
    if size > MOST_POINTS:
        raise ValueError(f"at most {MOST_POINTS} points a call; got {size}: split it into several calls")

    by_index = {
        index: one(
            {n: v if isinstance(v, str) else repr(float(np.broadcast_to(v, shape)[index])) for n, v in given.items()}
        )
        for index in np.ndindex(shape)
    }
    values = np.array([float(result) for result in by_index.values()]).reshape(shape)
    return Quantities(values, statement=statement, each=by_index.__getitem__)


def error_bound(
    *,
    eta: Any,
    tau: Any,
    time_s: Any,
    cluster: Cluster,
    L: Any = None,
    sigma2: Any = None,
    gap: Any = None,
    bits: Any = 0,
    omega: Any = 0,
) -> Any:
    """Theorem 1 of local-update SGD at a wall-clock time: E|grad F|^2 at most, averaged over the rounds ended by then.

    L, sigma2, gap : smoothness, variance of one worker's gradient, F(x_1) - inf F: numbers, an ``Estimate``, a text
    such as "1.2:0.8:2" (value, low, high), or left out: then assumed to be 1.  eta : learning rate.  tau : local steps
    between averagings.  time_s : budget; the round under way at its end does not count.  bits : of one message.
    omega : of an unbiased compressor of the round's change (0: none).  Arrays broadcast.
    Constant times count whole rounds; random ones enter by E 1/N, enclosed, which is larger than 1/E N.  The number
    shown is the upper end.  With estimated or assumed constants it is about that much, between lo and hi.
    Raises ValueError outside the ranges, for less than a round, or if eta L + eta^2 L^2 tau (tau - 1) > 1.

    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="constant")
    >>> rd.error_bound(L=1, sigma2=1, eta=0.05, gap=1, tau=8, time_s=3600, cluster=cluster)
    Quantity(0.0215161068, certified in [0.021516106754589197, 0.0215161067545892], pasgd_wall_clock)
    """
    cluster = checked_cluster(cluster)
    constants, uncertain = read_constants({"L": L, "sigma2": sigma2, "gap": gap})
    names = {"eta": eta, "tau": tau, "time_s": time_s, "bits": bits}
    given = constants | {name: read(name, value) for name, value in names.items()}
    level = read("omega", omega, NONNEGATIVE)
    bound: Bound = pasgd_wall_clock if isinstance(level, str) and Fraction(level) == 0 else pasgd_compressed_wall_clock
    if bound is pasgd_compressed_wall_clock:
        given["omega"] = level
    statement = _error_statement(bound, cluster, given, uncertain)

    def one(at: dict[str, str]) -> Quantity:
        stated = replace(statement, at=at | {"cluster": cluster})
        interval = _error_interval(bound, cluster, at)
        if not uncertain:
            return Quantity(float(interval.hi), statement=stated, interval=interval)
        propagated = through(
            lambda corner: _error_interval(bound, cluster, at | {name: repr(v) for name, v in corner.items()}),
            uncertain,
            rising=uncertain,
        )
        stated = replace(stated, advice=f"{between(propagated.interval, uncertain)}.  {stated.advice}")
        return Quantity(propagated.value, statement=stated, interval=propagated.interval, certified=False)

    return _spread(given, one, statement)


def _error_statement(
    bound: Bound, cluster: Cluster, given: dict[str, Any], uncertain: dict[str, Estimate]
) -> Statement:
    """What the bound says about this cluster, and which constants are uncertain."""
    statement = statement_of(bound, given, "Compare tau with rd.tau_star, which minimises this bound in the long run")
    rounds = f"rounds end as on {cluster.in_words()}"
    statement = replace(
        statement,
        assumptions=(*statement.assumptions, rounds),
        at={**given, "cluster": cluster},
        function=partial(error_bound, cluster=cluster),
    )
    return uncertain_statement(statement, uncertain)


def _error_interval(bound: Bound, cluster: Cluster, at: dict[str, str]) -> Interval:
    """Between the values at both ends of E 1/N."""
    exchange: Exchange = "gather" if "omega" in at else "sum"
    time_s, tau = Fraction(at["time_s"]), int(Fraction(at["tau"]))
    inverse = cluster.inverse_rounds(time_s, tau, real("bits", at["bits"]), exchange)
    fixed = {name: at[name] for name in at if name in {s.name for s in bound.parameters}} | {"m": str(cluster.workers)}
    best, worst = (enclose(bound, fixed | {"inverse_rounds": _text(end)}) for end in (inverse.lo, inverse.hi))
    return Interval(best.lo, worst.hi)


def _text(value: float | Fraction) -> str:
    return str(value) if isinstance(value, Fraction) else repr(float(value))
