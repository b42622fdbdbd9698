"""How many local steps: the measured best tau against what the theory advises, and what following it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from bounds import AssumptionViolated
from bounds.claims import Unbiased
from bounds.dynamics import additive, heterogeneous, multiplicative, third_order
from bounds.dynamics.fluctuation import at_workers, spread
from bounds.plan import Candidate, Smooth, plan
from bounds.runtime import Constant, RuntimeModel, count_rounds
from bounds.tau import tau_convex, tau_smooth, tau_star
from bounds.theorems import pasgd_convex, pasgd_iterations, pasgd_multiplicative
from operators import Identity

from ..judging.comparisons import exact_row, mean_row, ratio_row, unjudged_row
from ..judging.iteration_time import agreement_rows, compared
from ..judging.plotting import LINES, MARKS, PALETTE, Spread, categories, chart, error_bars, ticks_at
from ..network import Shape
from ..workloads import HeterogeneousQuadratics, Kink, LogisticRegression, MultiplicativeQuadratic, Quadratic, Workload
from ..workloads.data import Bundled
from .runs.ensemble import Rows, run_seeds
from .runs.simulation import simulate
from .runs.spec import TrainingRun
from .runs.training import run_training
from .study import Comparison, Figure, Record, Study
from .tau_star_third_order import BLOCKS as THIRD_BLOCKS
from .tau_star_third_order import measure_third, third_rows

# -- problems --------------------------------------------------------------------------------------------------------

STEP_S = 8e-3  # Y
DELAY_S = 32e-3  # D of the simulated clock


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

    @property
    def constants(self) -> dict[str, float]:
        """Arguments of the theorems."""
        c = self.workload.constants()
        return {"gap": c.gap, "eta": self.workload.eta, "L": c.L, "sigma2": c.sigma2, "m": self.m}

    def steps(self, tau: int) -> int:
        """Return local steps of all whole rounds within the budget, at least one round."""
        return tau * max(1, count_rounds(self.time_s, tau * STEP_S + DELAY_S))


PROBLEMS: dict[str, Problem] = {
    "quadratic": Problem(Quadratic(copies=5, noise=0.08, eta=0.08)),
    "multiplicative": Problem(MultiplicativeQuadratic(copies=5, noise=0.08, eta=0.08)),
    "heterogeneous": Problem(HeterogeneousQuadratics(), m=2, time_s=8.0),
    "logistic": Problem(LogisticRegression(source=Bundled("breast_cancer"), batch=8, eta=0.03)),
    "kink": Problem(Kink.hard(tau=16, d=100, noise=2.0, eta=0.08), m=16),
    "kink-4": Problem(Kink.hard(tau=16, d=100, noise=2.0, eta=0.08)),
}


@lru_cache(maxsize=16)
def advice(name: str) -> dict[str, int | None]:
    """Return the tau that each theory chooses for a problem at its own learning rate; None stands for infinity."""
    problem = PROBLEMS[name]
    w, c = problem.workload, problem.workload.constants()
    arguments: dict[str, Any] = {"gap": c.gap, "eta": w.eta, "sigma2": c.sigma2, "time_s": problem.time_s}
    classic = tau_star(L=c.L, delay_s=DELAY_S, **arguments)
    periods = {
        "theorem 2": classic.integer,
        "theorem 2, capped": classic.capped,
        "theorem 1'": tau_convex(L=c.L, delay_s=DELAY_S, m=problem.m, **arguments).integer,
        "plan": _plan(problem, eta=w.eta).tau,
    }
    if isinstance(w, LogisticRegression):
        third, sigma2 = third_derivative(w, problem.m)
        periods["third order"] = tau_smooth(
            delay_s=DELAY_S, third_derivative=third, **(arguments | {"sigma2": sigma2})
        ).integer
    elif not isinstance(w, Kink):
        periods["third order"] = None  # a quadratic has no third derivative
    return periods


def planned(name: str) -> tuple[float, int]:
    """Return (eta, tau) of the plan that chooses both."""
    best = _plan(PROBLEMS[name], eta=None)
    assert best.eta is not None  # every theorem for smooth problems takes one
    return best.eta, best.tau


def _plan(problem: Problem, *, eta: float | None) -> Any:
    c = problem.workload.constants()
    smooth = Smooth(gap=c.gap, L=c.L, sigma2=c.sigma2)
    whole = [Candidate("whole models", Unbiased(0.0), 0.0)]
    return plan(whole, runtime=problem.runtime, problem=smooth, time_s=problem.time_s, eta=eta).best


def third_derivative(workload: LogisticRegression, m: int) -> tuple[float, float]:
    """Return (Q, variance of a gradient at the minimiser) of the third-order law, two classes.

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


def exact_value(problem: Problem, tau: int) -> float | None:
    """Return the mean of ``E|grad F|^2`` over the steps, where its law is known."""
    w, K = problem.workload, problem.steps(tau)
    if isinstance(w, Quadratic):
        return float(additive.mean_squared_gradient(w.problem, eta=w.eta, m=problem.m, K=K))
    if isinstance(w, MultiplicativeQuadratic):
        arguments = {"eta": w.eta, "m": problem.m, "tau": tau, "rounds": K // tau, "noise_growth": w.noise_growth}
        return float(multiplicative.mean_squared_gradient(w.problem, **arguments))
    return None


# -- best period -----------------------------------------------------------------------------------------------------

BEST = Problem(Quadratic(d=80, smallest=1.0, noise=62.5, eta=0.02), m=16)
AROUND = (1, 2, 4, 8, 16)  # so that half and double of a claim that is wrong by two are there as well
SEEDS, BLOCKS = 8, 4  # of one unit, and how many units there are


def claimed() -> int:
    """Return Theorem 2's choice."""
    arguments = {name: value for name, value in BEST.constants.items() if name != "m"}
    best = tau_star(**arguments, delay_s=DELAY_S, time_s=BEST.time_s).integer
    assert best is not None  # there is noise
    return best


def exact_value_at_workers(tau: int) -> float:
    """Return the mean over workers and steps of ``E|grad F|^2`` at the workers' own models."""
    w, K = BEST.workload, BEST.steps(tau)
    assert isinstance(w, Quadratic)
    arguments: dict[str, Any] = {"eta": w.eta, "m": BEST.m}
    mean = additive.mean_squared_gradient(w.problem, K=K, **arguments)
    return float(mean + additive.mean_gradient_discrepancy(w.problem, tau=tau, **arguments))


@lru_cache(maxsize=8)
def variance_at_workers(tau: int) -> float:
    """Return the variance of one seed's value."""
    w, m = BEST.workload, BEST.m
    assert isinstance(w, Quadratic)
    return spread(w.problem, eta=w.eta, m=m, taus=(tau,), K=BEST.steps(tau), weights=at_workers(m)).variance


def measure_around(block: int) -> Record:
    """Return the value of some seeds at every tau of ``AROUND``, by simulated workers."""
    rows, seeds = Rows(BEST.workload), tuple(range(SEEDS * block, SEEDS * (block + 1)))
    values: dict[str, list[float]] = {}
    for tau in AROUND:
        steps = BEST.steps(tau)
        ensemble = run_seeds(BEST.workload, Identity(), tau=tau, steps=steps, seeds=seeds, m=BEST.m)
        _, squares = rows.evaluate(ensemble.points.reshape(-1, ensemble.points.shape[-1]))
        values[str(tau)] = squares.reshape(len(seeds), -1).mean(dim=1).tolist()
    variances = {str(tau): variance_at_workers(tau) for tau in AROUND}
    return {"claimed": claimed(), "values": values, "variances": variances}


def best_rows(records: Sequence[Record], level: float) -> list[Comparison]:
    """Return half and double the claimed tau against it: each ratio must be above 1."""
    claim = records[0]["claimed"] if records else 0
    about = {"operator": "whole models", "workload": f"equal eigenvalues, m = {BEST.m}", "theorem": "theorem 2"}
    rows = []
    for other, words in ((claim // 2, "half"), (2 * claim, "double")) if records else ():
        if all(str(tau) in records[0]["values"] for tau in (other, claim)):
            theirs, ours = ([v for r in records for v in r["values"][str(tau)]] for tau in (other, claim))
            variances = tuple(records[0]["variances"][str(tau)] for tau in (other, claim))
            quantity = f"mean of |grad F|^2 at the workers: {words} the tau of theorem 2 over that tau"
            rows.append(ratio_row(theirs, ours, variances, level=level, quantity=quantity, tau=other, **about))
    return rows


# -- rows ------------------------------------------------------------------------------------------------------------

PLANNED = "plan with its own eta"
JUDGED = ("theorem 2, capped", "theorem 1'")  # beside the smallest and the largest tau
CLAIMED = "tau* minimises a worst-case bound and the third-order law is an expansion: neither claims the best tau"
SETTLED = 1e-9  # of the gap at the start: what a thousand steps leave of it, and rounding
SOLVED = 1e-8  # a value below which ratios are those of rounding and of how long the run was


def values_at(records: Sequence[Record], tau: int, field: str) -> list[float]:
    """Return the gradient or the gap at a tau, one value per seed."""
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
    w, values = problem.workload, values_at(records, tau, "gradient2")
    about: dict[str, Any] = {"operator": "whole models", "workload": f"{name}, m = {problem.m}", "tau": tau}
    about["quantity"] = "mean of |grad F|^2 over the steps"
    arguments = {**problem.constants, "tau": tau, "K": problem.steps(tau)}
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
    about: dict[str, Any] = {"operator": "whole models", "workload": f"{name}, m = {w.workers}", "tau": tau}
    about |= {"quantity": "F - inf F at the end", "theorem": "fixed point of a round"}
    return exact_row(measured, value, abs(measured - value) <= SETTLED * w.constants().gap, **about)


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
    """Return rows of the regret of every choice; no theorem speaks of it."""
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


# -- drawings --------------------------------------------------------------------------------------------------------

GRID_SHOWN = (1, 4, 16, 64)


def draw_values(swept: dict[str, list[Record]], real: Sequence[tuple[Any, Record]]) -> Any:
    """Return a panel for every problem: the value at every tau, theory, and the advised tau."""

    def draw(ax: Any, name: str) -> None:
        records, problem = swept[name], PROBLEMS[name]
        taus = records[0]["taus"]
        spreads = [Spread.of(values_at(records, tau, "gradient2")) for tau in taus]
        error_bars(ax, taus, spreads, fmt="o", color="black", markersize=4, capsize=2)
        _draw_theory(ax, problem, taus)
        points = [(r["tau"], r["gradient2"]) for unit, r in real if unit.problem == name]
        ax.plot([x for x, _ in points], [y for _, y in points], "kx", markersize=8)
        for i, choice in enumerate(choices):  # each has a part of the height, so that equal taus show
            if choice in records[0]["advised"]:
                part = i / len(choices), (i + 1) / len(choices)
                ax.axvline(records[0]["advised"][choice], *part, color=PALETTE[i], linewidth=2.5, label=choice)
        ax.set(xscale="log")
        ticks_at(ax, GRID_SHOWN)

    choices = _choices(swept)
    settings: dict[str, Any] = {"title": lambda name: f"{name}, m = {PROBLEMS[name].m}"}
    settings |= {"x": "tau", "y": "mean of |grad F|^2", "logs": "y", "plain": "y"}
    return chart(list(swept), draw, columns=3, height=3.4, **settings)


def _draw_theory(ax: Any, problem: Problem, taus: Sequence[int]) -> None:
    if not isinstance(problem.workload, HeterogeneousQuadratics | MultiplicativeQuadratic):
        bounds = [float(pasgd_convex(**problem.constants, tau=tau, K=problem.steps(tau))) for tau in taus]
        ax.plot(taus, bounds, LINES[1], color="#444444", linewidth=1)
    exact = [exact_value(problem, tau) for tau in taus]
    if None not in exact:
        ax.plot(taus, exact, LINES[0], color="#444444", linewidth=1)


def _choices(swept: dict[str, list[Record]]) -> list[str]:
    return list(dict.fromkeys(choice for records in swept.values() for choice in records[0]["advised"]))


def draw_regrets(swept: dict[str, list[Record]]) -> Any:
    """Return every choice's value over the best one, problem by problem."""
    choices = _choices(swept)
    words = {"mean of |grad F|^2": "gradient2", "F - inf F at the end": "gap"}

    def draw(ax: Any, title: str) -> None:
        for i, choice in enumerate((*choices, PLANNED)):
            for j, records in enumerate(swept.values()):
                ratios = regrets(records, choice, words[title])
                if ratios is not None:
                    x, how = j + 0.12 * (i - len(choices) / 2), {"fmt": MARKS[i], "color": PALETTE[i]}
                    error_bars(ax, [x], [Spread.of(ratios)], markersize=5, capsize=2, **how)
            ax.plot([], [], MARKS[i], color=PALETTE[i], label=choice)
        ax.axhline(1, color="black", linewidth=0.8)
        categories(ax, list(swept), rotation=20, ha="right")

    return chart(list(words), draw, height=3.8, logs="y", plain="y", ylabel="over the best tau measured")


# -- the study -------------------------------------------------------------------------------------------------------

SHAPE = Shape(rate_bit_per_s=1e8, delay_s=14.5e-3)  # D comes near DELAY_S


@dataclass(frozen=True)
class TauStarStudy(Study):
    """Every tau of a grid, and every advised one, for a budget of seconds on simulated workers and a simulated clock.

    The values are means over the local steps of ``|grad F|^2`` at the mean model, which the theorems bound, and F - inf
    F at the end.

    Parameters
    ----------
    confirmed : tuple of str, optional
        Problems run again by real processes, with ``real_taus`` and the advised tau, for ``real_s`` seconds on a
        network of the stated shape; the losses must agree with simulated workers bit for bit.
    """

    problems: tuple[str, ...] = tuple(PROBLEMS)
    grid: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    confirmed: tuple[str, ...] = ("quadratic", "logistic", "kink-4")
    real_taus: tuple[int, ...] = (1, 64)
    real_s: float = 4.0
    shape: Shape = SHAPE

    without_noise = ("grid:heterogeneous:",)
    name = "tau-star"
    description = "measured best tau against Theorem 2, 1', the third-order bound and law and the plan, with regrets"
    minutes = 12
    processes = 4
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield blocks of seeds around the best tau and of third order, grids on simulated workers, real processes."""
        yield from (("best", "equal", block) for block in range(BLOCKS))
        yield from (("third", "bent", block) for block in range(THIRD_BLOCKS))
        yield from (("grid", name, seed) for name in self.problems for seed in self._seeds(name))
        yield from (("real", name, tau) for name in self.confirmed for tau in self._real(name))

    def _seeds(self, name: str) -> tuple[int, ...]:
        """Return two, if nothing is random."""
        return self.seeds if PROBLEMS[name].workload.constants().sigma2 else self.seeds[:2]

    def _real(self, name: str) -> list[int]:
        return sorted({*self.real_taus, self.advised(name)["theorem 2, capped"]})

    def advised(self, name: str) -> dict[str, int]:
        """Return the choices for a problem; what is infinite, or beyond the grid, is taken as the largest tau of the
        grid.
        """
        advised_taus = advice(name)
        return {choice: min(tau or self.grid[-1], self.grid[-1]) for choice, tau in advised_taus.items()}

    def measure_best(self, problem: str, block: int) -> Record:
        """Measure a block of seeds on the problem where Theorem 2's tau is the best one."""
        return measure_around(block)

    def measure_third(self, problem: str, block: int) -> Record:
        """Measure a block of seeds on the problem of known Q."""
        return measure_third(block)

    def measure_grid(self, problem: str, seed: int) -> Record:
        """Measure every tau on simulated workers with one seed."""
        chosen, advised = PROBLEMS[problem], self.advised(problem)
        taus = sorted({*self.grid, *advised.values()})
        runs = [simulated(chosen, tau, seed) for tau in taus]
        eta, tau = planned(problem)
        retuned = replace(chosen, workload=replace(chosen.workload, eta=eta))  # type: ignore[type-var]  # dataclasses
        return {
            "advised": advised,
            "taus": taus,
            "runs": runs,
            "planned": {"eta": eta, **simulated(retuned, tau, seed)},
        }

    def measure_real(self, problem: str, tau: int) -> Record:
        """Run real processes at one tau."""
        chosen = PROBLEMS[problem]
        race = TrainingRun(chosen.workload, tau, Constant(STEP_S), self.seeds[0], budget_s=self.real_s, trace=True)
        (real,) = run_training([race], m=chosen.m, shape=self.shape)
        again = replace(race, budget_s=None, steps=real["steps_done"])
        simulated_run = simulate(again, chosen.runtime)
        return {
            "tau": tau,
            "m": chosen.m,
            "steps": real["steps_done"],
            "raced_s": real["took_s"],
            "fenced_s": real["fenced_s"],
            "mean_step_s": real["mean_step_s"],
            "gradient2": float(np.mean(real["gradient2"])),
            "twin_gradient2": float(np.mean(simulated_run["gradient2"])),
            **compared(real, simulated_run),
            "method": real["method"],
            "scheduling": real["scheduling"],
        }

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Judge by theorems and exact laws; regrets and seconds are for comparison."""
        # the exact rows of "heterogeneous" leave their share of the false alarms to the four rows of the third order
        level = self.false_alarm / (2 + len(self.problems) * 3 * (len(JUDGED) + 2))
        rows = best_rows([r for _, r in self.table(records, "best")], level)
        rows += third_rows([r for _, r in self.table(records, "third")], level)
        for name in self.problems:
            of_problem = [r for _, r in self.table(records, "grid", problem=name)]
            if len(of_problem) > 1:
                rows += [*theorem_rows(name, of_problem, level), *regret_rows(name, of_problem)]
        for unit, record in self.table(records, "real"):
            rows += real_rows(unit.problem, record)
        return rows

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return the value against tau, and the regrets."""
        swept = {name: [r for _, r in self.table(records, "grid", problem=name)] for name in self.problems}
        swept = {name: of_problem for name, of_problem in swept.items() if of_problem}
        real = self.table(records, "real")
        if not swept:
            return []
        words = (
            f"Simulated clock, Y = {STEP_S * 1e3:g} ms, D = {DELAY_S * 1e3:g} ms; simulated workers, which compute bit "
            "for bit what real processes do; crosses: real processes on a shaped network, which have another D."
        )
        costs = [regrets(of_problem, "plan", "gradient2") for of_problem in swept.values()]
        means = [float(ratios.mean()) for ratios in costs if ratios is not None]
        cost = f"The plan's tau costs {min(means):.2g} to {max(means):.2g} times the least value" if means else ""
        longer = sum(best_tau(r, "gradient2") > r[0]["advised"]["theorem 2"] for r in swept.values())
        return [
            Figure(
                lambda: draw_values(swept, real),
                "Measured (dots, range of the seeds): mean of |grad F|^2 over the local steps within the budget. "
                f"Theory: the bound of Theorem 1' (dashed), exact laws (solid), advised tau (coloured). {words}",
                finding=f"The best tau is larger than that of Theorem 2 on {longer} of {len(swept)} problems",
            ),
            Figure(
                lambda: draw_regrets(swept),
                "Measured: value at the advised tau over that at the best tau measured, mean and range of the seeds, "
                f"for the mean of |grad F|^2 and for F - inf F at the end of the budget. {words}",
                finding=cost,
            ),
        ]


def simulated(problem: Problem, tau: int, seed: int) -> Record:
    """Return one run on simulated workers: the mean squared gradient over the steps, and F - inf F at the end."""
    race = TrainingRun(problem.workload, tau, Constant(STEP_S), seed, steps=problem.steps(tau), trace=True, points=1)
    run = simulate(race, problem.runtime)
    infimum = run["losses"][0] - problem.workload.constants().gap
    return {
        "tau": tau,
        "steps": run["steps_done"],
        "gradient2": float(np.mean(run["gradient2"])),
        "gap": run["losses"][-1] - infimum,
    }


PRESET = TauStarStudy()
