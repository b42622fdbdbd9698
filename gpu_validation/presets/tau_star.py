"""How many local steps: the measured best tau against what the theory advises, and what following it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from bounds import AssumptionViolated
from bounds.claims import Unbiased
from bounds.dynamics import additive, heterogeneous, multiplicative, third_order
from bounds.plan import Candidate, Smooth, plan
from bounds.runtime import Constant, RuntimeModel
from bounds.tau import tau_convex, tau_smooth, tau_star
from bounds.theorems import pasgd_convex, pasgd_iterations, pasgd_multiplicative

from ..network import Shape
from ..pace import near
from ..page import LINES, MARKS, PALETTE, canvas, plain_ticks
from ..race import Race, run_races
from ..records import Comparison
from ..rehearsal import rehearse
from ..rows import exact_row, mean_row, unjudged_row
from ..study import Figure, Record, Study
from ..workloads import HeterogeneousQuadratics, Kink, LogisticRegression, MultiplicativeQuadratic, Quadratic, Workload
from ..workloads.data import Bundled

STEP_S = 8e-3  # Y
DELAY_S = 32e-3  # D of the simulated clock
SHAPE = Shape(rate_bit_per_s=1e8, delay_s=12e-3)  # D comes near DELAY_S
PLANNED = "plan with its own eta"
JUDGED = ("theorem 2, capped", "theorem 1'")  # beside the smallest and the largest tau
CLAIMED = "tau* minimises a worst-case bound and the third-order law is an expansion: neither claims the best tau"
SETTLED = 1e-9  # of the gap at the start: what a thousand steps leave of it, and rounding
SOLVED = 1e-8  # a value below which ratios are those of rounding and of how long the run was
GRID_SHOWN = (1, 4, 16, 64)


@dataclass(frozen=True)
class Problem:
    """A workload, its number of workers and its budget in seconds."""

    workload: Workload
    m: int = 4
    time_s: float = 4.0

    @property
    def runtime(self) -> RuntimeModel:
        """Constant times."""
        return RuntimeModel(step=Constant(STEP_S), delay_s=DELAY_S, m=self.m)

    def steps(self, tau: int) -> int:
        """Local steps of all whole rounds within the budget, at least one round."""
        return tau * max(1, math.floor(self.time_s / (tau * STEP_S + DELAY_S) + 1e-9))


PROBLEMS: dict[str, Problem] = {
    "quadratic": Problem(Quadratic(copies=5, noise=0.08, eta=0.08)),
    "multiplicative": Problem(MultiplicativeQuadratic(copies=5, noise=0.08, eta=0.08)),
    "heterogeneous": Problem(HeterogeneousQuadratics(), m=2, time_s=12.0),
    "logistic": Problem(LogisticRegression(source=Bundled("breast_cancer"), batch=8, eta=0.03)),
    "kink": Problem(Kink.hard(tau=16, d=100, noise=2.0, eta=0.08), m=16),
    "kink-4": Problem(Kink.hard(tau=16, d=100, noise=2.0, eta=0.08)),
}


@dataclass(frozen=True)
class TauStarStudy(Study):
    """Every tau of a grid, and every advised one, for a budget of seconds on virtual workers and a simulated clock.

    The values are means over the local steps of |grad F|^2 at the mean model, which the theorems bound, and F - inf F
    at the end.  confirmed : problems run again by real processes, with ``real_taus`` and the advised tau, for
    ``real_s`` seconds on a network of the stated shape; the losses must agree with virtual workers bit for bit.
    """

    problems: tuple[str, ...] = tuple(PROBLEMS)
    grid: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    confirmed: tuple[str, ...] = ("quadratic", "logistic", "kink-4")
    real_taus: tuple[int, ...] = (1, 64)
    real_s: float = 4.0
    shape: Shape = SHAPE

    name = "tau-star"
    description = "measured best tau against Theorem 2, 1', the third-order law and the plan, with regrets"
    minutes = 10
    processes = 4

    def units(self) -> Sequence[str]:
        """grid:PROBLEM:SEED on virtual workers, real:PROBLEM:TAU on processes."""
        return [
            *(f"grid:{name}:{seed}" for name in self.problems for seed in self._seeds(name)),
            *(f"real:{name}:{tau}" for name in self.confirmed for tau in self._real(name)),
        ]

    def _seeds(self, name: str) -> tuple[int, ...]:
        """Two, if nothing is random."""
        return self.seeds if PROBLEMS[name].workload.constants().sigma2 else self.seeds[:2]

    def _real(self, name: str) -> list[int]:
        return sorted({*self.real_taus, self.advised(name)["theorem 2, capped"]})

    def advised(self, name: str) -> dict[str, int]:
        """The choices for a problem; what is infinite, or beyond the grid, is taken as the largest tau of the grid."""
        found = advice(name)
        return {choice: min(tau or self.grid[-1], self.grid[-1]) for choice, tau in found.items()}

    def measure(self, unit: str) -> Record:
        """By the kind of unit."""
        kind, name, number = unit.split(":")
        if kind == "grid":
            return self._swept(name, int(number))
        return self._real_race(PROBLEMS[name], int(number))

    def _swept(self, name: str, seed: int) -> Record:
        problem, advised = PROBLEMS[name], self.advised(name)
        taus = sorted({*self.grid, *advised.values()})
        runs = [rehearsed(problem, tau, seed) for tau in taus]
        eta, tau = planned(name)
        own = replace(problem, workload=replace(problem.workload, eta=eta))  # type: ignore[type-var]  # dataclasses
        return {"advised": advised, "taus": taus, "runs": runs, "planned": {"eta": eta, **rehearsed(own, tau, seed)}}

    def _real_race(self, problem: Problem, tau: int) -> Record:
        race = Race(problem.workload, tau, Constant(STEP_S), self.seeds[0], budget_s=self.real_s, trace=True)
        (real,) = run_races([race], m=problem.m, shape=self.shape)
        again = replace(race, budget_s=None, steps=real["steps_done"])
        twin = rehearse(again, problem.runtime)
        ends = dict(zip(twin["step"], twin["losses"], strict=True))
        shared = [(loss, ends[k]) for k, loss in zip(real["step"], real["losses"], strict=True) if k in ends]
        return {
            "tau": tau,
            "m": problem.m,
            "steps": real["steps_done"],
            "raced_s": real["took_s"],
            "fenced_s": real["fenced_s"],
            "mean_step_s": real["mean_step_s"],
            "gradient2": float(np.mean(real["gradient2"])),
            "twin_gradient2": float(np.mean(twin["gradient2"])),
            "compared": len(shared),
            "largest_difference": max(abs(a - b) for a, b in shared),
            "method": real["method"],
            "scheduling": real["scheduling"],
        }

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Theorems and exact laws decide; regrets and seconds are for comparison."""
        level = self.false_alarm / (len(self.problems) * 3 * (len(JUDGED) + 2))
        rows: list[Comparison] = []
        for name in self.problems:
            mine = [r for r in records if r["unit"].startswith(f"grid:{name}:")]
            if len(mine) > 1:
                rows += [*_theorem_rows(name, mine, level), *_regret_rows(name, mine)]
        for record in records:
            if record["unit"].startswith("real:"):
                rows += _real_rows(record)
        return rows

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """The value against tau, and the regrets."""
        swept = {name: [r for r in records if r["unit"].startswith(f"grid:{name}:")] for name in self.problems}
        swept = {name: mine for name, mine in swept.items() if mine}
        real = [r for r in records if r["unit"].startswith("real:")]
        if not swept:
            return []
        words = (
            f"Simulated clock, Y = {STEP_S * 1e3:g} ms, D = {DELAY_S * 1e3:g} ms; virtual workers, which compute bit "
            "for bit what real processes do; crosses: real processes on a shaped network, which have another D."
        )
        return [
            Figure(
                lambda: _draw_values(swept, real),
                "Measured (dots, range of the seeds): mean of |grad F|^2 over the local steps within the budget. "
                f"Theory: the bound of Theorem 1' (dashed), exact laws (solid), advised tau (vertical). {words}",
            ),
            Figure(
                lambda: _draw_regrets(swept),
                "Measured: value at the advised tau over that at the best tau measured, mean and range of the seeds, "
                f"for the mean of |grad F|^2 and for F - inf F at the end of the budget. {words}",
            ),
        ]


# -- theory ------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=16)
def advice(name: str) -> dict[str, int | None]:
    """What each theory chooses for a problem at its own learning rate; None stands for infinity."""
    problem = PROBLEMS[name]
    w, c = problem.workload, problem.workload.constants()
    at: dict[str, Any] = {"gap": c.gap, "eta": w.eta, "sigma2": c.sigma2, "time_s": problem.time_s}
    classic = tau_star(L=c.L, delay_s=DELAY_S, **at)
    found = {
        "theorem 2": classic.integer,
        "theorem 2, capped": classic.capped,
        "theorem 1'": tau_convex(L=c.L, delay_s=DELAY_S, m=problem.m, **at).integer,
        "plan": _plan(problem, eta=w.eta).tau,
    }
    if isinstance(w, LogisticRegression):
        third, sigma2 = third_derivative(w, problem.m)
        found["third order"] = tau_smooth(delay_s=DELAY_S, third_derivative=third, **(at | {"sigma2": sigma2})).integer
    elif not isinstance(w, Kink):
        found["third order"] = None  # a quadratic has no third derivative
    return found


def planned(name: str) -> tuple[float, int]:
    """(eta, tau) of the plan that chooses both."""
    best = _plan(PROBLEMS[name], eta=None)
    assert best.eta is not None  # every theorem for smooth problems takes one
    return best.eta, best.tau


def _plan(problem: Problem, *, eta: float | None) -> Any:
    c = problem.workload.constants()
    smooth = Smooth(gap=c.gap, L=c.L, sigma2=c.sigma2)
    whole = [Candidate("whole models", Unbiased(0.0), 0.0)]
    return plan(whole, runtime=problem.runtime, problem=smooth, time_s=problem.time_s, eta=eta).best


def third_derivative(workload: LogisticRegression, m: int) -> tuple[float, float]:
    """(Q, variance of a gradient at the minimiser) of the third-order law, two classes.

    Q is the size of the third derivative along the noise: the law's bias at tau = 2, where nothing saturates, is
    Q eta^2 sigma2/4, the factor 1 - 1/m of a few workers included.
    """
    A, x = workload.features(), workload.optimum().x
    p = 1 / (1 + np.exp(-A @ x))
    wrong = A * (p - workload.data().train.targets.numpy())[:, None]
    noise = np.cov(wrong.T, bias=True) / (workload.batch or 1)
    hessian = (A * (p * (1 - p))[:, None]).T @ A / len(A) + workload.decay * np.eye(A.shape[1])
    spread = third_order.round_covariance(hessian, noise, eta=workload.eta, m=m, tau=2)
    sigma2 = float(np.trace(noise))
    size = float(np.linalg.norm(third_order.logistic_bias(A, p, spread)))
    return 4 * size / (workload.eta**2 * sigma2), sigma2


def rehearsed(problem: Problem, tau: int, seed: int) -> Record:
    """One run on virtual workers: the mean squared gradient over the steps, and F - inf F at the end."""
    race = Race(problem.workload, tau, Constant(STEP_S), seed, steps=problem.steps(tau), trace=True, points=1)
    run = rehearse(race, problem.runtime)
    infimum = run["losses"][0] - problem.workload.constants().gap
    return {
        "tau": tau,
        "steps": run["steps_done"],
        "gradient2": float(np.mean(run["gradient2"])),
        "gap": run["losses"][-1] - infimum,
    }


def exact_value(problem: Problem, tau: int) -> float | None:
    """The mean of E|grad F|^2 over the steps, where its law is known."""
    w, K = problem.workload, problem.steps(tau)
    if isinstance(w, Quadratic):
        return float(additive.mean_squared_gradient(w.problem, eta=w.eta, m=problem.m, K=K))
    if isinstance(w, MultiplicativeQuadratic):
        at = {"eta": w.eta, "m": problem.m, "tau": tau, "rounds": K // tau, "noise_growth": w.noise_growth}
        return float(multiplicative.mean_squared_gradient(w.problem, **at))
    return None


# -- judgements --------------------------------------------------------------------------------------------------
def _values(records: Sequence[Record], tau: int, field: str) -> list[float]:
    return [run[field] for record in records for run in record["runs"] if run["tau"] == tau]


def best_tau(records: Sequence[Record], field: str) -> int:
    """The tau of the least mean over the seeds."""
    return min(records[0]["taus"], key=lambda tau: float(np.mean(_values(records, tau, field))))


def _theorem_rows(name: str, records: Sequence[Record], level: float) -> list[Comparison]:
    """At the smallest, the advised and the largest tau."""
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
    w, c, values = problem.workload, problem.workload.constants(), _values(records, tau, "gradient2")
    about: dict[str, Any] = {
        "operator": "whole models",
        "workload": f"{name}, m = {problem.m}",
        "quantity": "mean of |grad F|^2 over the steps",
        "tau": tau,
    }
    at = {"gap": c.gap, "eta": w.eta, "L": c.L, "sigma2": c.sigma2, "tau": tau, "m": problem.m, "K": problem.steps(tau)}
    growing = isinstance(w, MultiplicativeQuadratic)
    if isinstance(w, MultiplicativeQuadratic):
        at["noise_growth"] = w.noise_growth
    rows = []
    for bound in (pasgd_multiplicative,) if growing else (pasgd_iterations, pasgd_convex):
        try:
            value = float(bound(**at))
        except AssumptionViolated as error:
            rows.append(unjudged_row(values, str(error), theorem=bound.name, **about))
        else:
            rows.append(mean_row(values, value, "upper", level=level, theorem=bound.name, **about))
    exact = exact_value(problem, tau)
    if exact is not None:
        rows.append(mean_row(values, exact, "tight", level=level, theorem="exact dynamics", **about))
    return rows


def _limit_row(name: str, records: Sequence[Record], tau: int) -> Comparison:
    """Different quadratics without noise: where the averaged models tend to."""
    w = PROBLEMS[name].workload
    assert isinstance(w, HeterogeneousQuadratics)  # the only problem of this kind
    limit = heterogeneous.fixed_point(w.H, w.c, eta=w.eta, tau=tau) - heterogeneous.minimiser(w.H, w.c)
    value = float(0.5 * limit @ w.H.mean(axis=0) @ limit)
    (measured,) = set(_values(records, tau, "gap"))
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
    """Value at a choice over that at the best tau of the grid, seed by seed.

    None where there is no such choice, or the problem is solved up to rounding, so that ratios say nothing.
    """
    advised = records[0]["advised"]
    if choice not in advised and choice != PLANNED:
        return None
    least = np.array(_values(records, best_tau(records, field), field))
    if least.min() <= SOLVED:
        return None
    own = [record["planned"][field] for record in records]
    return np.array(own if choice == PLANNED else _values(records, advised[choice], field)) / least


def _regret_rows(name: str, records: Sequence[Record]) -> list[Comparison]:
    advised, own = records[0]["advised"], records[0]["planned"]
    rows = []
    for field, words in (("gradient2", "mean of |grad F|^2"), ("gap", "F - inf F at the end")):
        about: dict[str, Any] = {
            "operator": "whole models",
            "workload": f"{name}, m = {PROBLEMS[name].m}",
            "quantity": f"{words}, over that at the best tau, {best_tau(records, field)}",
        }
        for choice, tau in {**advised, PLANNED: own["tau"]}.items():
            ratios = regrets(records, choice, field)
            if ratios is not None:
                theorem = f"{choice}, {own['eta']:.3g}" if choice == PLANNED else choice
                rows.append(unjudged_row(ratios.tolist(), CLAIMED, theorem=theorem, tau=tau, **about))
    return rows


def _real_rows(record: Record) -> list[Comparison]:
    """Equal losses decide; seconds do not."""
    name, tau = record["unit"].split(":")[1], record["tau"]
    about: dict[str, Any] = {"operator": "whole models", "workload": f"{name}, m = {record['m']}", "tau": tau}
    equal = exact_row(
        record["largest_difference"],
        0.0,
        record["largest_difference"] == 0 and record["compared"] > 1,
        quantity=f"real against virtual workers: largest difference of {record['compared']} losses",
        theorem="the same steps, bit for bit",
        **about,
    )
    delay_s = float(np.mean(record["fenced_s"]))
    measured, predicted = record["raced_s"] / record["steps"], STEP_S + delay_s / tau
    verdict, reason = near(measured, predicted)
    seconds = Comparison(
        quantity="seconds per iteration of real processes",
        measured=measured,
        interval=(measured, measured),
        bound=predicted,
        side="tight",
        verdict=verdict,
        reason=reason,
        theorem=f"Y + D/tau, D = {1e3 * delay_s:.3g} ms timed by itself; {record['scheduling']}; {record['method']}",
        decides=False,
        unit="s",
        **about,
    )
    return [equal, seconds]


# -- drawings ----------------------------------------------------------------------------------------------------
def _draw_values(swept: dict[str, list[Record]], real: Sequence[Record]) -> Any:
    rows = -(-len(swept) // 3)
    figure, axes = canvas(rows, 3, height=3.4)
    for ax in axes.flat[len(swept) :]:
        ax.set_axis_off()
    for ax, (name, records) in zip(axes.flat, swept.items(), strict=False):
        taus = records[0]["taus"]
        values = np.array([_values(records, tau, "gradient2") for tau in taus])
        middle = values.mean(axis=1)
        spread = [middle - values.min(axis=1), values.max(axis=1) - middle]
        ax.errorbar(taus, middle, yerr=spread, fmt="o", color="black", markersize=4, capsize=2)
        _draw_theory(ax, PROBLEMS[name], taus)
        mine = [r for r in real if r["unit"].startswith(f"real:{name}:")]
        ax.plot([r["tau"] for r in mine], [r["gradient2"] for r in mine], "x", color=PALETTE[1], markersize=8)
        for tau, names in _by_tau(records[0]["advised"]).items():
            ax.axvline(tau, color=PALETTE[0], linewidth=0.8, alpha=0.6)
            place = ax.get_xaxis_transform()
            ax.text(tau, 0.98, ", ".join(names), rotation=90, va="top", ha="right", fontsize=6, transform=place)
        ax.set(title=f"{name}, m = {PROBLEMS[name].m}", xscale="log", yscale="log", xlabel="tau")
        ax.set_xticks(GRID_SHOWN, [str(tau) for tau in GRID_SHOWN])
        ax.set_xticks([], minor=True)
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3)
    for ax in axes[:, 0]:
        ax.set(ylabel="mean of |grad F|^2")
    return figure


def _draw_theory(ax: Any, problem: Problem, taus: Sequence[int]) -> None:
    w, c = problem.workload, problem.workload.constants()
    if not isinstance(w, HeterogeneousQuadratics | MultiplicativeQuadratic):
        at = {"gap": c.gap, "eta": w.eta, "L": c.L, "sigma2": c.sigma2, "m": problem.m}
        bounds = [float(pasgd_convex(**at, tau=tau, K=problem.steps(tau))) for tau in taus]
        ax.plot(taus, bounds, LINES[1], color=PALETTE[2], linewidth=1)
    exact = [exact_value(problem, tau) for tau in taus]
    if None not in exact:
        ax.plot(taus, exact, LINES[0], color=PALETTE[2], linewidth=1)


def _by_tau(advised: dict[str, int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for choice, tau in advised.items():
        found.setdefault(tau, []).append(choice)
    return found


def _draw_regrets(swept: dict[str, list[Record]]) -> Any:
    figure, axes = canvas(1, 2, height=3.8)
    choices = list(dict.fromkeys(choice for records in swept.values() for choice in records[0]["advised"]))
    words = {"gradient2": "mean of |grad F|^2", "gap": "F - inf F at the end"}
    for ax, (field, title) in zip(axes[0], words.items(), strict=True):
        for i, choice in enumerate((*choices, PLANNED)):
            for j, records in enumerate(swept.values()):
                ratios = regrets(records, choice, field)
                if ratios is not None:
                    x = j + 0.12 * (i - len(choices) / 2)
                    middle = float(ratios.mean())
                    bars = [[middle - ratios.min()], [ratios.max() - middle]]
                    ax.errorbar([x], [middle], yerr=bars, fmt=MARKS[i], color=PALETTE[i], markersize=5, capsize=2)
            ax.plot([], [], MARKS[i], color=PALETTE[i], label=choice)
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set(title=title, yscale="log", ylabel="over the best tau measured")
        ax.set_xticks(range(len(swept)), list(swept), rotation=20, ha="right")
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3, axis="y")
    axes[0, 1].legend(fontsize=7)
    return figure


PRESET = TauStarStudy()
