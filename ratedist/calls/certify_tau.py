"""How good a number of local steps can be proved to be: worst cases by semidefinite programs, with certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .. import numbers
from ..numbers import read, whole
from ..plans.problem import LEFT_OUT, Curvature, gradient_limit, vacuous
from ..records import Answer, Answered, Table, number_text
from .call import Call, Command, Route

TAUS = (1, 2, 4, 8, 12, 16)
SHORT_TAUS = (1, 2, 4, 8, 20)
LONGEST = 64  # the program of a longer round is out of reach
NOISY_ROW = ("tau", "rounds", "published", "sharp", "certified", "least")
NEEDS = {"eta", "gap", "sigma2", "workers"}


@dataclass(frozen=True)
class CertifiedTau(Answered):
    """The number of local steps with the least certified worst case.

    Parameters
    ----------
    tau : int
        Local steps between two averagings.
    eta : float
        Learning rate: that given, or the best of those tried.
    is_minimax : bool
        Whether no other tau and rate tried has as small a worst case; only proved for a short horizon without noise.
    taus : tuple of int
        Those that a better proof could still make the best.
    rows : tuple of dict
        Every tau with its whole "rounds" and its values: "lo" and "hi" enclose the worst case of a short horizon;
        "published", "sharp" and "certified" are upper bounds, "least" is below every bound of their form.  A value that
        does not exist is None.
    about : str
        What the values are.
    missing : tuple of dict, optional
        For every value that is None its "tau", its name as "value", and as "why" the condition that fails, with its
        value.  The same for every value that says nothing, because the start is as good.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    """

    tau: int
    eta: float
    is_minimax: bool
    taus: tuple[int, ...]
    rows: tuple[dict[str, Any], ...]
    about: str
    missing: tuple[dict[str, Any], ...] = ()
    assumed: tuple[str, ...] = ()

    def answer(self) -> Answer:
        """Return the number of local steps with the least certified worst case."""
        every = "every step" if self.tau == 1 else f"every {self.tau} steps"
        proved = "proved minimax optimal" if self.is_minimax else "least certified bound"
        best = next(row for row in self.rows if row["tau"] == self.tau)
        empty = {row["value"] for row in self.missing if row["tau"] == self.tau}
        if not self.is_minimax and "least" in best and {"published", "sharp", "certified"} <= empty:
            verdict = f"No tau has a rank at eta = {self.eta:g}: no upper bound is better than the start."
        else:
            verdict = f"Average {every} at eta = {self.eta:g}: {proved} of those tried."
        names = tuple(self.rows[0])
        rows = tuple(tuple(_cell(name, row[name]) for name in names) for row in self.rows)
        others = ", ".join(map(str, self.taus))
        lost = [f"{row['value']} at tau = {row['tau']}: {row['why']}" for row in self.missing]
        return Answer(
            verdict,
            {
                "may turn": f"a better proof could choose among tau = {others}" if len(self.taus) > 1 else "",
                "values": self.about,
                "no value": f"{lost[0]}{f' (and {len(lost) - 1} more)' * (len(lost) > 1)}" if lost else "",
            },
            (Table(names, rows),),
            left_out=LEFT_OUT,
            assumed=self.assumed,
            evidence={"no value": lost},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        listed = {name: [dict(row) for row in fields[name]] for name in ("rows", "missing")}
        return fields | {"taus": list(self.taus), "assumed": list(self.assumed)} | listed


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "none"
    return number_text(value) if name in ("tau", "rounds") else f"{value:.6g}"


def certify_tau(
    *,
    time_s: numbers.Number,
    delay_s: numbers.Number,
    step_s: numbers.Number = 1,
    L: numbers.Number = 1,
    R0: numbers.Number = 1,
    zeta2: numbers.Number | None = None,
    eta: numbers.Number | None = None,
    gap: numbers.Number | None = None,
    sigma2: numbers.Number | None = None,
    workers: numbers.Number | None = None,
    curvature: Curvature = "convex",
    taus: Sequence[int] | None = None,
) -> CertifiedTau:
    """Return the number of local steps whose certified worst case is least, and what a better proof could change.

    With ``zeta2`` the data differ, F is convex, and there is no noise and at most 24 local steps.  Every rate of a grid
    is tried.  The worst cases are enclosed from both sides, which proves that the best tau is minimax optimal over the
    class.  Without ``zeta2`` the data are the same, with noise at a fixed rate, and the certified floor of one round is
    used.

    Parameters
    ----------
    time_s : array_like, seconds
        Wall-clock budget in seconds.
    delay_s : array_like, seconds
        Seconds of one averaging.
    step_s : array_like, seconds, optional
        Seconds of one local step.
    L : array_like, optional
        Smoothness constant.
    R0 : array_like, optional
        Distance from the start to a minimiser; only with zeta2.
    zeta2 : array_like, optional
        Mean over the workers of ``|grad F_i(x*)|^2``: different data, no noise, a short horizon.
    eta : array_like, optional
        Learning rate; without zeta2, where a grid of eta L is tried.
    gap : array_like, optional
        F(x_1) - inf F; without zeta2.
    sigma2 : array_like, optional
        Variance of one worker's gradient; without zeta2.
    workers : array_like, optional
        Number of workers; without zeta2, with which every number >= 2 has the same worst case.
    curvature : array_like or str, optional
        What is assumed of F beyond smoothness: convex, or rho with every Hessian >= -rho; without zeta2.
    taus : sequence of int, optional
        Periods to compare; more than 16 steps a round take minutes.

    Raises
    ------
    ValueError
        For arguments outside the ranges, where one is missing or too many, and if no period has a whole round in the
        budget.
    ImportError
        Where a program must be solved and Clarabel (extra ``pep``) is not there.

    Examples
    --------
    >>> import ratedist as rd
    >>> best = rd.certify_tau(gap=1, delay_s=10, eta=0.05, sigma2=1, time_s=1e4, workers=4, taus=(4, 8, 12, 16))
    >>> best.tau, best.is_minimax
    (16, False)
    """
    if taus is not None and not all(1 <= tau <= LONGEST for tau in taus):
        raise ValueError(f"taus must be integers from 1 to {LONGEST}; got {', '.join(map(str, taus))}")
    given = {"eta": eta, "gap": gap, "sigma2": sigma2, "workers": workers}
    present = {name for name, value in given.items() if value is not None}
    common = {
        name: _exact(name, value) for name, value in (("time_s", time_s), ("delay_s", delay_s), ("step_s", step_s))
    }
    if zeta2 is not None:
        if present:
            raise ValueError(
                f"with zeta2 there is no noise and a grid of rates; got {', '.join(sorted(present))} as well"
            )
        scale = _exact("L", L) * _exact("R0", R0)
        certified = _short(common, _exact("heterogeneity", zeta2) / scale**2, scale, taus or SHORT_TAUS, L, R0)
        default = (*_defaults(step_s=step_s, L=L, R0=R0), "convex F_i")
        return replace(certified, assumed=default if taus is not None else (*default, f"tau in {SHORT_TAUS}"))
    if present != NEEDS:
        missing = ", ".join(sorted(NEEDS - present))
        raise ValueError(f"certify_tau needs zeta2, or all of eta, gap, sigma2, workers; missing: {missing}")
    problem = common | {name: _exact(name, given[name]) for name in ("eta", "gap", "sigma2")} | {"L": _exact("L", L)}
    certified = _noisy(problem, whole("m", workers), _rho(curvature), taus or TAUS)
    default = (*_defaults(step_s=step_s, L=L), *(("convex F",) if curvature == "convex" else ()))
    return replace(certified, assumed=default if taus is not None else (*default, f"tau in {TAUS}"))


def _defaults(**given: Any) -> tuple[str, ...]:
    """Return the arguments that are 1, which is their default."""
    return tuple(f"{name} = 1" for name, value in given.items() if value == 1)


def _exact(name: str, value: Any) -> Fraction:
    text = read(name, value)
    if not isinstance(text, str):
        raise ValueError(f"{name} must be one number here; got {value}: call certify_tau once for each")
    return Fraction(text)


def _rho(curvature: Any) -> Fraction:
    return Fraction(0) if curvature == "convex" else _exact("rho", curvature)


def _short(
    clock: dict[str, Fraction], zeta2: Fraction, scale: Fraction, taus: Sequence[int], L: Any, R0: Any
) -> CertifiedTau:
    from bounds.pep import short_horizon

    horizon = short_horizon(
        time_s=clock["time_s"], step_s=clock["step_s"], delay_s=clock["delay_s"], zeta2=zeta2, taus=taus
    )
    unit = float(scale * _exact("R0", R0))  # gaps are in L R0^2
    rate = float(_exact("L", L))
    rows = tuple(
        {"tau": worst.tau, "rounds": worst.rounds, "eta": float(worst.x) / rate}
        | {"lo": float(worst.gap.lo) * unit, "hi": float(worst.gap.hi) * unit}
        for worst in horizon.periods
    )
    best = horizon.best
    near = tuple(worst.tau for worst in horizon.periods if worst.gap.lo <= best.gap.hi)
    return CertifiedTau(
        tau=best.tau,
        eta=float(best.x) / rate,
        is_minimax=horizon.is_proved,
        taus=near,
        rows=rows,
        about="largest F(last) - F* over convex L-smooth F_i, no noise, at the best rate of each tau",
    )


def _noisy(problem: dict[str, Fraction], m: int, rho: Fraction, taus: Sequence[int]) -> CertifiedTau:
    from bounds.pep import floor_periods

    periods = floor_periods(**problem, m=m, rho=rho, taus=taus)
    best = min(periods, key=lambda period: period.proved)
    limit = gradient_limit(float(problem["L"]), float(problem["gap"]))
    lost = [(p.tau, name, why) for p in periods for name, why in p.missing.items()]
    for period in periods:
        values = {name: getattr(period, name) for name in ("published", "sharp", "certified")}
        words = {name: vacuous(value, *limit) for name, value in values.items() if value is not None}
        lost += [(period.tau, name, empty) for name, empty in words.items() if empty]
    return CertifiedTau(
        tau=best.tau,
        eta=float(problem["eta"]),
        is_minimax=False,
        taus=tuple(p.tau for p in periods if p.least is not None and p.least <= best.proved),
        rows=tuple({name: getattr(period, name) for name in NOISY_ROW} for period in periods),
        about="upper bounds of the average of E|grad F|^2 over the steps of the whole rounds in the budget",
        missing=tuple({"tau": tau, "value": name, "why": why} for tau, name, why in lost),
    )


def _run(*, taus: float | Sequence[int] | None = None, **given: Any) -> CertifiedTau:
    return certify_tau(taus=None if taus is None else [whole("tau", tau) for tau in np.atleast_1d(taus)], **given)


def _answer(**given: Any) -> CertifiedTau:
    """Return what the command does; a solver that is not there is said in words."""
    try:
        return _run(**given)
    except ImportError as missing:
        raise ValueError(f"this needs more than the kept certificates: {missing}") from None


CALL = Call(
    name="certify_tau",
    summary="the local steps whose worst case is least, with certificates (extra pep)",
    place=6,
    function=certify_tau,
    command=Command(
        examples=("--time-s 1e4 --delay-s 10 --gap 1 --eta 0.05 --sigma2 1 --workers 4 --taus 4 8 12 16",), run=_run
    ),
    route=Route(
        about="A problem and a budget: with zeta2 different data without noise, else the same data with noise.",
        example={
            "time_s": 1e4,
            "delay_s": 10,
            "gap": 1,
            "eta": 0.05,
            "sigma2": 1,
            "workers": 4,
            "taus": [4, 8, 12, 16],
        },
        run=_answer,
        stated=False,
    ),
)
