"""How many local steps: the measured best tau against what the theory advises, and what following it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bounds.runtime import Constant

from ...measurement.simulation import simulate
from ...measurement.spec import TrainingRun
from ...measurement.training import run_training
from ...network import Shape
from ...records.storage import Record
from ...verdicts.simulation_agreement import compared
from ...verdicts.verdict import Comparison
from ..study import Figure, Study
from ..unit import of_kind, read_unit
from .analysis import JUDGED, real_rows, regret_rows, theorem_rows
from .best_period import BLOCKS, best_rows, measure_around
from .figures import draw_regrets, draw_values
from .problems import DELAY_S, KINDS, PROBLEMS, STEP_S, Best, Problem, Real, Sweep, Third, advice, planned
from .third_order import BLOCKS as THIRD_BLOCKS
from .third_order import measure_third, third_rows

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

    def units(self) -> Sequence[str]:
        """Return grid:PROBLEM:SEED, best:equal:BLOCK and third:bent:BLOCK on simulated workers, real:PROBLEM:TAU on
        processes."""
        return [
            *(str(Best("equal", block)) for block in range(BLOCKS)),
            *(str(Third("bent", block)) for block in range(THIRD_BLOCKS)),
            *(str(Sweep(name, seed)) for name in self.problems for seed in self._seeds(name)),
            *(str(Real(name, tau)) for name in self.confirmed for tau in self._real(name)),
        ]

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

    def measure(self, unit: str) -> Record:
        """Measure around the best tau, sweep tau on simulated workers, or run real processes."""
        match read_unit(unit, KINDS):
            case Best(block=block):
                return measure_around(block)
            case Third(block=block):
                return measure_third(block)
            case Sweep(name, seed):
                return self._swept(name, seed)
            case Real(name, tau):
                return self._on_real_processes(PROBLEMS[name], tau)

    def _swept(self, name: str, seed: int) -> Record:
        problem, advised = PROBLEMS[name], self.advised(name)
        taus = sorted({*self.grid, *advised.values()})
        runs = [simulated(problem, tau, seed) for tau in taus]
        eta, tau = planned(name)
        retuned = replace(problem, workload=replace(problem.workload, eta=eta))  # type: ignore[type-var]  # dataclasses
        return {
            "advised": advised,
            "taus": taus,
            "runs": runs,
            "planned": {"eta": eta, **simulated(retuned, tau, seed)},
        }

    def _on_real_processes(self, problem: Problem, tau: int) -> Record:
        race = TrainingRun(problem.workload, tau, Constant(STEP_S), self.seeds[0], budget_s=self.real_s, trace=True)
        (real,) = run_training([race], m=problem.m, shape=self.shape)
        again = replace(race, budget_s=None, steps=real["steps_done"])
        simulated_run = simulate(again, problem.runtime)
        return {
            "tau": tau,
            "m": problem.m,
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
        rows = best_rows([r for _, r in of_kind(records, Best)], level)
        rows += third_rows([r for _, r in of_kind(records, Third)], level)
        swept = of_kind(records, Sweep)
        for name in self.problems:
            of_problem = [r for unit, r in swept if unit.problem == name]
            if len(of_problem) > 1:
                rows += [*theorem_rows(name, of_problem, level), *regret_rows(name, of_problem)]
        for unit, record in of_kind(records, Real):
            rows += real_rows(unit.problem, record)
        return rows

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return the value against tau, and the regrets."""
        units = of_kind(records, Sweep)
        swept = {name: [r for unit, r in units if unit.problem == name] for name in self.problems}
        swept = {name: of_problem for name, of_problem in swept.items() if of_problem}
        real = of_kind(records, Real)
        if not swept:
            return []
        words = (
            f"Simulated clock, Y = {STEP_S * 1e3:g} ms, D = {DELAY_S * 1e3:g} ms; simulated workers, which compute bit "
            "for bit what real processes do; crosses: real processes on a shaped network, which have another D."
        )
        return [
            Figure(
                lambda: draw_values(swept, real),
                "Measured (dots, range of the seeds): mean of |grad F|^2 over the local steps within the budget. "
                f"Theory: the bound of Theorem 1' (dashed), exact laws (solid), advised tau (vertical). {words}",
            ),
            Figure(
                lambda: draw_regrets(swept),
                "Measured: value at the advised tau over that at the best tau measured, mean and range of the seeds, "
                f"for the mean of |grad F|^2 and for F - inf F at the end of the budget. {words}",
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
