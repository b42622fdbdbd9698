"""What the error is at most after a time budget: Theorem 1 of local-update SGD at a wall-clock time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, overload

from bounds import Bound, Interval
from bounds.estimate import Estimate, through
from bounds.symbols import NONNEGATIVE
from bounds.theorems import (
    pasgd_compressed_convex_wall_clock,
    pasgd_compressed_wall_clock,
    pasgd_convex_sharp_wall_clock,
    pasgd_smooth_sharp_wall_clock,
    pasgd_wall_clock,
)

from .. import numbers
from ..cluster.cluster import Cluster, Exchange, checked_cluster
from ..numbers import read, real
from ..plans.problem import (
    LEFT_OUT,
    Curvature,
    Uncertain,
    Uncertains,
    between,
    enclose,
    gradient_limit,
    is_convex,
    read_constants,
    rho_of,
    spread,
    statement_of,
    uncertain_statement,
    vacuous,
)
from ..records import Advised, Quantities, Quantity, Statement
from .call import Call, Command, Route
from .shared import PROBLEM_EXAMPLE, command_of, message_bits, parameters_not_said

THEOREMS = {  # whether F is convex, whether changes are compressed
    (False, False): pasgd_wall_clock,
    (False, True): pasgd_compressed_wall_clock,
    (True, False): pasgd_convex_sharp_wall_clock,
    (True, True): pasgd_compressed_convex_wall_clock,
}

ARGUMENTS = ("L", "sigma2", "gap", "eta", "tau", "time_s", "bits", "omega")
MOST_HALVINGS, MOST_POWERS = 200, 40
LONG = 10**60  # of the time given: the noise is left
NO_BETTER_POWER = "No other power of two as tau has a smaller bound"
AT_A_MINIMUM = "With gap = 0 the start is a minimum, and no schedule improves on it"

VERDICT = "{{value}} after {time_s:g} s with tau = {tau}: the mean of E|grad F|^2 over the local steps."


@overload
def error_bound(
    *,
    eta: numbers.Number,
    tau: numbers.Number,
    time_s: numbers.Number,
    cluster: Cluster,
    L: Uncertain | None = None,
    sigma2: Uncertain | None = None,
    gap: Uncertain | None = None,
    bits: numbers.Number | None = None,
    d: numbers.Number | None = None,
    omega: numbers.Number = 0,
    curvature: Curvature | None = None,
) -> Quantity: ...
@overload
def error_bound(
    *,
    eta: numbers.Numbers,
    tau: numbers.Numbers,
    time_s: numbers.Numbers,
    cluster: Cluster,
    L: Uncertains | None = None,
    sigma2: Uncertains | None = None,
    gap: Uncertains | None = None,
    bits: numbers.Numbers | None = None,
    d: numbers.Numbers | None = None,
    omega: numbers.Numbers = 0,
    curvature: Curvature | None = None,
) -> Quantity | Quantities: ...
def error_bound(
    *,
    eta: numbers.Numbers,
    tau: numbers.Numbers,
    time_s: numbers.Numbers,
    cluster: Cluster,
    L: Uncertains | None = None,
    sigma2: Uncertains | None = None,
    gap: Uncertains | None = None,
    bits: numbers.Numbers | None = None,
    d: numbers.Numbers | None = None,
    omega: numbers.Numbers = 0,
    curvature: Curvature | None = None,
) -> Quantity | Quantities:
    """Return Theorem 1 of local-update SGD at a wall-clock time: ``E|grad F|^2`` at most, averaged over the rounds
    ended by then.

    Parameters
    ----------
    eta : array_like
        Learning rate.
    tau : array_like
        Local steps between averagings.
    time_s : array_like, seconds
        Wall-clock budget in seconds; the round under way at its end does not count.
    cluster : Cluster
        Workers and links.
    L : array_like, optional
        Smoothness constant of F: a number, an estimate such as 1.2:0.8:2 (value:low:high), or left out: then assumed to
        be 1.  In Python also an ``Estimate``.
    sigma2 : array_like, optional
        Variance of one worker's gradient: a number, an estimate such as 1.2:0.8:2 (value:low:high), or left out: then
        assumed to be 1.
    gap : array_like, optional
        F(x_1) - inf F: a number, an estimate such as 1.2:0.8:2 (value:low:high), or left out: then assumed to be 1.
    bits : array_like, bits, optional
        Bits of one message; 0 counts latency alone.  Either this or d, unless there is one worker.
    d : array_like, optional
        Number of parameters, sent in binary32, instead of bits.
    omega : array_like, optional
        Variance constant of an unbiased compressor of the round's change; 0 for none.  Arrays of all arguments
        broadcast.
    curvature : array_like or str, optional
        What is known of F beyond smoothness: convex, or rho with every Hessian >= -rho; a lower error is then safe.  If
        convex, local steps cost an eighth, with a compressor a quarter.  A number rho is at most L, and is taken
        without a compressor only.

    Raises
    ------
    ValueError
        For arguments outside the ranges, without the length of a message, for less than a round, or if eta L + eta^2
        L^2 tau (tau - 1) > 1 (convex: eta L > 1; with a compressor eta L + 4 omega eta L tau/m > 1).

    Notes
    -----
    Constant times count whole rounds; random ones enter by E 1/N, enclosed, which is larger than 1/E N.  The number
    shown is the upper end.  With estimated or assumed constants it is about that much, between lo and hi.

    Examples
    --------
    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="constant")
    >>> rd.error_bound(L=1, sigma2=1, eta=0.05, gap=1, tau=8, time_s=3600, cluster=cluster, bits=0)
    Quantity(0.0215161068, certified in [0.021516106754589197, 0.0215161067545892], pasgd_wall_clock)
    """
    cluster = checked_cluster(cluster)
    constants, uncertain = read_constants({"L": L, "sigma2": sigma2, "gap": gap})
    names = {"eta": eta, "tau": tau, "time_s": time_s}
    given = constants | {name: read(name, value) for name, value in names.items()}
    given["bits"] = message_bits(cluster, bits, d)
    level = read("omega", omega, NONNEGATIVE)
    compressed = not (isinstance(level, str) and Fraction(level) == 0)
    if compressed:
        given["omega"] = level
    rho = rho_of(curvature)
    bound: Bound = (
        THEOREMS[is_convex(curvature), compressed] if compressed or not rho else pasgd_smooth_sharp_wall_clock
    )
    if bound is pasgd_smooth_sharp_wall_clock:
        given["rho"] = str(rho)
    again = partial(error_bound, cluster=cluster, curvature=curvature)
    plain = ("no compression",) if isinstance(omega, int) and omega == 0 else ()
    statement = _error_statement(bound, cluster, given, uncertain, again)
    statement = replace(statement, assumed=(*statement.assumed, *parameters_not_said(d), *plain))

    def one(at: dict[str, str]) -> Quantity:
        interval = _error_interval(bound, cluster, at)

        def state(before: str = "") -> Statement:
            verdict = VERDICT.format(time_s=real("time_s", at["time_s"]), tau=at["tau"])
            advice, advised = _advice(bound, float(interval.hi), at, cluster, again if at is given else None)
            at_all = at | {"cluster": cluster}
            return replace(statement, at=at_all, verdict=verdict, advice=before + advice, advised=advised)

        if not uncertain:
            return Quantity(float(interval.hi), statement=state, interval=interval)
        propagated = through(
            lambda corner: _error_interval(bound, cluster, at | {name: repr(v) for name, v in corner.items()}),
            uncertain,
            rising=uncertain,
        )
        ends = propagated.interval
        stated = partial(state, f"{between(ends, uncertain)}.  ")
        return Quantity(propagated.value, statement=stated, interval=ends, certified=False)

    return spread(given, one, statement)


def _error_statement(
    bound: Bound,
    cluster: Cluster,
    given: dict[str, Any],
    uncertain: dict[str, Estimate],
    function: Callable[..., Any],
) -> Statement:
    """Return what the bound says about this cluster, and which constants are uncertain."""
    statement = statement_of(bound, given)
    rounds = f"rounds end as on {cluster.in_words()}"
    statement = replace(
        statement,
        assumptions=(*statement.assumptions, rounds),
        at={**given, "cluster": cluster},
        function=function,
        assumed=cluster.assumed(),
        left_out=LEFT_OUT,
    )
    return uncertain_statement(statement, uncertain)


def _advice(
    bound: Bound, error: float, at: dict[str, str], cluster: Cluster, again: partial[Any] | None
) -> tuple[str, tuple[Advised, ...]]:
    """Return what improves on the error, and the call that shows it; of one point of many, whether it says anything."""

    def changed(**names: str) -> float:
        """Return the error with these arguments changed; infinite outside the theorem."""
        try:
            return float(_error_interval(bound, cluster, at | names).hi)
        except (ValueError, OverflowError):
            return math.inf

    L, gap = real("L", at["L"]), real("gap", at["gap"])
    limit, name = gradient_limit(L, gap)
    empty = vacuous(error, limit, name)
    if again is None:
        return f"It {empty}" if empty else "", ()
    if empty:
        better = _below_the_start(changed, at, limit) if gap else {}
        text = f"It {empty}.  {_how_to_get_below(better, limit) if gap else AT_A_MINIMUM}"
    else:
        better = _best_power(changed, at)
        text = f"Of the powers of two, tau = {better['tau']} has the smallest bound" if better else NO_BETTER_POWER
    if not better:
        return text, ()
    curvature = {name: value for name, value in again.keywords.items() if name == "curvature" and value is not None}
    arguments = {name: at[name] for name in ARGUMENTS if name in at} | curvature | better
    command = command_of("error", cluster, arguments)
    return text, (Advised("error_bound", {"cluster": cluster} | arguments, command=command),)


def _below_the_start(changed: Callable[..., float], at: dict[str, str], limit: float) -> dict[str, str]:
    """Return a longer time at which the bound is below the limit, and a lower eta if no time is enough at this one."""
    for halvings in range(MOST_HALVINGS):
        eta = {"eta": f"{real('eta', at['eta']) / 2**halvings:.2g}"} if halvings else {}
        time_s = Fraction(f"{real('time_s', at['time_s']):.1g}")
        if changed(time_s=str(time_s * LONG), **eta) >= (limit / 2 if halvings else limit):
            continue
        while changed(time_s=str(time_s), **eta) >= limit:
            time_s *= 2
        return eta | {"time_s": str(time_s)}
    return {}


def _how_to_get_below(better: dict[str, str], limit: float) -> str:
    if not better:
        return f"No tried eta and time bring the bound below {limit:.4g}"
    below = f"time_s = {float(better['time_s']):.3g} the bound is below {limit:.4g}"
    if "eta" not in better:
        return f"With {below}"
    return f"No time is enough at this eta; with eta = {better['eta']} and {below}"


def _best_power(changed: Callable[..., float], at: dict[str, str]) -> dict[str, str]:
    """Return the power of two as tau with the smallest bound, if tau as it is has a larger one."""
    errors = {at["tau"]: changed()}
    for power in range(MOST_POWERS):
        errors.setdefault(str(2**power), changed(tau=str(2**power)))
        if errors[str(2**power)] == math.inf:  # the condition of the theorem, or less than a round
            break
    best = min(errors, key=lambda tau: errors[tau])
    return {} if best == at["tau"] else {"tau": best}


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


CALL = Call(
    name="error",
    summary="what the error is at most after a time budget",
    place=4,
    function=error_bound,
    command=Command(
        examples=("--workers 16 --step-s 0.08 --L 1 --sigma2 1 --eta 0.05 --gap 1 --tau 8 --time-s 3600 --d 25600000",)
    ),
    route=Route(
        about="A problem, a schedule, a cluster and a budget; "
        'L, sigma2, gap may be texts "value:low:high" or left out (1).',
        example=PROBLEM_EXAMPLE | {"tau": 8},
    ),
)
