"""The number of local steps whose worst case is least, certified: for a short horizon, or by the floor of a round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import sympy as sp

from ..bound import ROUNDING_SLACK
from ..interval import Interval
from ..runtime.rounds import count_rounds, no_round
from ..special.growth import MeanGrowth
from ..theorems.local_sgd import pasgd_iterations
from .certificate import NotProved
from .certify import certify
from .different_data import different_data
from .one_round import one_round
from .solve import solve
from .table import row_of
from .witness import worst_case

MOST_STEPS = 24  # local steps of a horizon that the solver is asked for
VALUES = ("published", "sharp", "certified", "least")
RATES = tuple(map(Fraction, ("0.05", "0.1", "0.2", "0.35", "0.6", "1", "1.5")))


@dataclass(frozen=True)
class Worst:
    """The worst case of a period and a learning rate.

    Parameters
    ----------
    tau : int
        Local steps of a round.
    rounds : int
        Rounds in the horizon.
    x : Fraction
        eta L.
    gap : Interval
        Contains the largest F(last) - F* over the class, in units of L R0^2.
    """

    tau: int
    rounds: int
    x: Fraction
    gap: Interval


@dataclass(frozen=True)
class ShortHorizon:
    """Every period at its best rate, and which is proved the best.

    Parameters
    ----------
    best : Worst
        The period and the rate with the least certified worst case.
    periods : tuple of Worst
        Every period at its best rate.
    is_proved : bool
        Whether no other period and rate that was asked for has a worst case as small: the least value of every other
        one lies above the best one's largest.
    """

    best: Worst
    periods: tuple[Worst, ...]
    is_proved: bool


def short_horizon(
    *,
    time_s: Fraction,
    step_s: Fraction,
    delay_s: Fraction,
    zeta2: Fraction,
    taus: Sequence[int],
    rates: Sequence[Fraction] = RATES,
) -> ShortHorizon:
    """Return the period that is minimax optimal on convex smooth F_i that differ, without noise.

    Parameters
    ----------
    time_s : Fraction, seconds
        The horizon; only whole rounds count.
    step_s : Fraction, seconds
        Of a local step.
    delay_s : Fraction, seconds
        Of an averaging.
    zeta2 : Fraction
        Mean of ``|grad F_i(x*)|^2`` over (L R0)^2.
    taus : sequence of int
        Periods to compare.
    rates : sequence of Fraction, optional
        Values of eta L to choose from.

    Raises
    ------
    ValueError
        If no period has a whole round in the horizon, or one has more than ``MOST_STEPS`` local steps.
    """
    every: list[Worst] = []
    best: list[Worst] = []
    for tau in taus:
        rounds = count_rounds(time_s, tau * step_s + delay_s)
        if rounds < 1:
            continue
        if tau * rounds > MOST_STEPS:
            raise ValueError(f"a short horizon has at most {MOST_STEPS} local steps; got tau = {tau}, {rounds} rounds")
        programs = {x: different_data(x=x, tau=tau, rounds=rounds, zeta2=zeta2) for x in rates}
        solutions = {x: solve(program) for x, program in programs.items()}
        rate = min(rates, key=lambda x: solutions[x].value)
        lows = {x: worst_case(programs[x], solutions[x])[1] for x in rates}
        every += [Worst(tau, rounds, x, Interval(lows[x].lo, math.inf)) for x in rates if x != rate]
        best.append(Worst(tau, rounds, rate, Interval(lows[rate].lo, certify(programs[rate])[1].hi)))
    if not best:
        raise ValueError(no_round(time_s, min(taus), min(taus) * step_s + delay_s))
    winner = min(best, key=lambda worst: worst.gap.hi)
    others = [worst for worst in best + every if worst.tau != winner.tau]
    return ShortHorizon(winner, tuple(best), all(worst.gap.lo > winner.gap.hi for worst in others))


@dataclass(frozen=True)
class FloorPeriod:
    """A period with what is proved of its error after the whole rounds of a budget.

    Parameters
    ----------
    tau : int
        Local steps of a round.
    rounds : int
        Whole rounds in the budget.
    published : float or None
        Theorem 1; None outside its condition on eta and tau.
    sharp : float or None
        The bound of ``pasgd_smooth_sharp``.
    certified : float or None
        The bound with the certified floor of one round; None where no certificate was found.
    least : float or None
        No bound of this form is below: one round on a quadratic attains it.  All four are None without a whole round.
    missing : mapping of str to str, optional
        For each value that is None the condition that fails, with its value.
    """

    tau: int
    rounds: int
    published: float | None
    sharp: float | None
    certified: float | None
    least: float | None
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def proved(self) -> float:
        """The least upper bound that is proved; infinite without one."""
        values = (self.certified, self.sharp, self.published)
        return min((value for value in values if value is not None), default=math.inf)


def floor_periods(
    *,
    gap: Fraction,
    delay_s: Fraction,
    step_s: Fraction,
    eta: Fraction,
    L: Fraction,
    sigma2: Fraction,
    time_s: Fraction,
    m: int,
    rho: Fraction,
    taus: Sequence[int],
) -> tuple[FloorPeriod, ...]:
    """Return every period's bounds on the averaged squared gradient, with noise and the same data.

    Parameters
    ----------
    gap : Fraction
        F(x_1) - inf F.
    delay_s : Fraction, seconds
        Of an averaging.
    step_s : Fraction, seconds
        Of a local step.
    eta : Fraction
        Learning rate.
    L : Fraction
        Smoothness constant of F.
    sigma2 : Fraction
        Variance of one worker's gradient.
    time_s : Fraction, seconds
        The budget.
    m : int
        Number of workers.
    rho : Fraction
        Every Hessian is >= -rho; 0 where F is convex.
    taus : sequence of int
        Periods to compare.

    Raises
    ------
    ValueError
        If eta L > 1 or rho > L, and if no period has a whole round in the budget.
    """
    x, relative = eta * L, rho / L
    if not (0 < x <= 1 and 0 <= relative <= 1):
        raise ValueError(
            f"a floor needs 0 < eta L <= 1 and 0 <= rho <= L; got eta L = {float(x)}, rho/L = {float(relative)}"
        )
    spread = float(1 - Fraction(1, m)) * float(x) ** 2 * float((1 + relative) / 2) ** 2
    growth = float(x * relative * (2 + x * relative))
    noise, periods = float(sigma2), []
    for tau in taus:
        round_s = tau * step_s + delay_s
        rounds = count_rounds(time_s, round_s)
        if rounds < 1:
            late = f"one round takes {float(round_s):.6g} s > time_s = {float(time_s):.6g}"
            periods.append(FloorPeriod(tau, 0, *(None,) * 4, dict.fromkeys(VALUES, late)))
            continue
        start = float(2 * gap / (eta * tau * rounds))
        missing: dict[str, str] = {}
        published = start + noise * (float(x) / m + float(x) ** 2 * (tau - 1))
        if load := _not_covered(x, tau):
            missing["published"] = load
        certified = None
        try:
            certified = start + noise * floor_of(x, m, tau, relative)
        except NotProved:
            missing["certified"] = f"no certificate found at eta L = {float(x):.6g}, tau = {tau}"
        sharp = start + noise * (float(x) / m + spread * float(MeanGrowth.kernel(growth, tau)))
        least = start + noise * least_floor(float(x), m, tau)
        if not math.isfinite(sharp):
            missing["sharp"] = f"larger than a float can hold at tau = {tau}"
        values = {"published": None if load else published, "sharp": sharp if math.isfinite(sharp) else None}
        periods.append(FloorPeriod(tau, rounds, **values, certified=certified, least=least, missing=missing))
    if not any(period.rounds for period in periods):
        raise ValueError(no_round(time_s, min(taus), min(taus) * step_s + delay_s))
    return tuple(periods)


def _not_covered(x: Fraction, tau: int) -> str:
    """Return Theorem 1's condition with its value where it fails at eta L = x; empty where it holds."""
    (condition,) = pasgd_iterations.assuming
    rate = {"eta": sp.Rational(x.numerator, x.denominator), "L": sp.Integer(1), "tau": sp.Integer(tau)}
    load = Fraction(str(condition.lhs.subs({s: rate[s.name] for s in condition.lhs.free_symbols})))
    if load <= (1 + Fraction(ROUNDING_SLACK)) * Fraction(str(condition.rhs)):
        return ""
    return f"{pasgd_iterations.name}: {sp.sstr(condition)} fails, the left side is {float(load):.6g}"


def floor_of(x: Fraction, m: int, tau: int, rho: Fraction) -> float:
    """Return the certified floor of the gradient (L = sigma2 = 1), from the table where it has the row, else solved.

    One local step needs no program: by the descent lemma its floor is x/m where x <= 1.

    Parameters
    ----------
    x : Fraction
        eta L.
    m : int
        Number of workers.
    tau : int
        Local steps.
    rho : Fraction
        Every Hessian is >= -rho L.

    Raises
    ------
    NotProved
        If the solver finds no certificate.
    """
    if tau == 1 and x <= 1:
        return float(Interval.outwards(x / m, x / m).hi)
    kept = row_of(about="gradient", x=x, m=m, tau=tau, rho=rho)
    if kept is not None:
        return float(kept.floor.hi)
    return float(certify(one_round(about="gradient", x=x, m=m, tau=tau, rho=rho))[1].hi)


def least_floor(x: float, m: int, tau: int) -> float:
    """Return the floor of a round that a quadratic of curvature L, started at its minimiser, attains (L = sigma2 = 1).

    Parameters
    ----------
    x : float
        eta L.
    m : int
        Number of workers.
    tau : int
        Local steps.
    """
    moment = total = 0.0
    for _ in range(tau):
        total += moment
        moment = (1 - x) ** 2 * moment + x**2 / m
    return total / tau + moment / (x * tau)
