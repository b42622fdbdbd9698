"""What follows from the records of the ``tau-star`` study: theorems, exact laws, regrets, seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bounds import AssumptionViolated
from bounds.dynamics import heterogeneous
from bounds.theorems import pasgd_convex, pasgd_iterations, pasgd_multiplicative

from ...records.storage import Record
from ...verdicts.comparisons import exact_row, mean_row, unjudged_row
from ...verdicts.simulation_agreement import agreement_rows
from ...verdicts.verdict import Comparison
from ...workloads import HeterogeneousQuadratics, MultiplicativeQuadratic
from .problems import PROBLEMS, STEP_S, exact_value

PLANNED = "plan with its own eta"
JUDGED = ("theorem 2, capped", "theorem 1'")  # beside the smallest and the largest tau
CLAIMED = "tau* minimises a worst-case bound and the third-order law is an expansion: neither claims the best tau"
SETTLED = 1e-9  # of the gap at the start: what a thousand steps leave of it, and rounding
SOLVED = 1e-8  # a value below which ratios are those of rounding and of how long the run was


def values_at(records: Sequence[Record], tau: int, field: str) -> list[float]:
    """Return one of the two values at a tau, seed by seed."""
    return [run[field] for record in records for run in record["runs"] if run["tau"] == tau]


def best_tau(records: Sequence[Record], field: str) -> int:
    """Return the tau of the least mean over the seeds."""
    return min(records[0]["taus"], key=lambda tau: float(np.mean(values_at(records, tau, field))))


def theorem_rows(name: str, records: Sequence[Record], level: float) -> list[Comparison]:
    """Judge at the smallest, the advised and the largest tau."""
    advised, taus = records[0]["advised"], records[0]["taus"]
    rows: list[Comparison] = []
    for tau in sorted({taus[0], taus[-1], *(advised[choice] for choice in JUDGED)}):
        if name == "heterogeneous":
            rows.append(_limit_row(name, records, tau))
        else:
            rows += _bounded_rows(name, records, tau, level)
    return rows


def _bounded_rows(name: str, records: Sequence[Record], tau: int, level: float) -> list[Comparison]:
    problem = PROBLEMS[name]
    w, c, values = problem.workload, problem.workload.constants(), values_at(records, tau, "gradient2")
    about: dict[str, Any] = {
        "operator": "whole models",
        "workload": f"{name}, m = {problem.m}",
        "quantity": "mean of |grad F|^2 over the steps",
        "tau": tau,
    }
    arguments = {
        "gap": c.gap,
        "eta": w.eta,
        "L": c.L,
        "sigma2": c.sigma2,
        "tau": tau,
        "m": problem.m,
        "K": problem.steps(tau),
    }
    growing = isinstance(w, MultiplicativeQuadratic)
    if isinstance(w, MultiplicativeQuadratic):
        arguments["noise_growth"] = w.noise_growth
    rows = []
    for bound in (pasgd_multiplicative,) if growing else (pasgd_iterations, pasgd_convex):
        try:
            value = float(bound(**arguments))
        except AssumptionViolated as error:
            rows.append(unjudged_row(values, str(error), theorem=bound.name, **about))
        else:
            rows.append(mean_row(values, value, "upper", level=level, theorem=bound.name, **about))
    exact = exact_value(problem, tau)
    if exact is not None:
        rows.append(mean_row(values, exact, "tight", level=level, theorem="exact dynamics", **about))
    return rows


def _limit_row(name: str, records: Sequence[Record], tau: int) -> Comparison:
    """Return different quadratics without noise: where the averaged models tend to."""
    w = PROBLEMS[name].workload
    assert isinstance(w, HeterogeneousQuadratics)  # the only problem of this kind
    limit = heterogeneous.fixed_point(w.H, w.c, eta=w.eta, tau=tau) - heterogeneous.minimiser(w.H, w.c)
    value = float(0.5 * limit @ w.H.mean(axis=0) @ limit)
    (measured,) = set(values_at(records, tau, "gap"))
    return exact_row(
        measured,
        value,
        abs(measured - value) <= SETTLED * w.constants().gap,
        operator="whole models",
        workload=f"{name}, m = {w.workers}",
        quantity="F - inf F at the end",
        theorem="fixed point of a round",
        tau=tau,
    )


def regrets(records: Sequence[Record], choice: str, field: str) -> np.ndarray | None:
    """Return value at a choice over that at the best tau of the grid, seed by seed.

    None where there is no such choice, or the problem is solved up to rounding, so that ratios say nothing.
    """
    advised = records[0]["advised"]
    if choice not in advised and choice != PLANNED:
        return None
    least = np.array(values_at(records, best_tau(records, field), field))
    if least.min() <= SOLVED:
        return None
    planned = [record["planned"][field] for record in records]
    return np.array(planned if choice == PLANNED else values_at(records, advised[choice], field)) / least


def regret_rows(name: str, records: Sequence[Record]) -> list[Comparison]:
    """Return what every choice costs; nothing is claimed of it."""
    advised, planned = records[0]["advised"], records[0]["planned"]
    rows = []
    for field, words in (("gradient2", "mean of |grad F|^2"), ("gap", "F - inf F at the end")):
        about: dict[str, Any] = {
            "operator": "whole models",
            "workload": f"{name}, m = {PROBLEMS[name].m}",
            "quantity": f"{words}, over that at the best tau, {best_tau(records, field)}",
        }
        for choice, tau in {**advised, PLANNED: planned["tau"]}.items():
            ratios = regrets(records, choice, field)
            if ratios is not None:
                theorem = f"{choice}, {planned['eta']:.3g}" if choice == PLANNED else choice
                rows.append(unjudged_row(ratios.tolist(), CLAIMED, theorem=theorem, tau=tau, **about))
    return rows


def real_rows(name: str, record: Record) -> list[Comparison]:
    """Return equal losses decide; seconds do not."""
    about = {"operator": "whole models", "workload": f"{name}, m = {record['m']}", "tau": record["tau"]}
    return agreement_rows(record, steps=record["steps"], step_s=STEP_S, **about)
