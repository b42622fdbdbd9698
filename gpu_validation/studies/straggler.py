"""Stragglers made to order: seconds per iteration against tau and m, with delays drawn from the laws of the model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from bounds import runtime
from bounds.estimate import batch_means
from bounds.runtime import Constant, Gamma, Law, Pareto, StepTime
from operators import Identity, Key, Operator, specification

from ..judging.comparisons import mean_row, out_of_scope
from ..judging.iteration_time import barrier_timed_delay, iteration, iteration_time_rows
from ..judging.plotting import LINES, LINES_A_PANEL, MARKS, PALETTE, Spread, chart, error_bars, plain_ticks, ticks_at
from ..judging.verdict import MARGIN, Comparison, tight_verdict
from ..network import Network, Shape
from ..processes.collectives import barrier, gather_arrays
from ..processes.launch import RankContext, run_ranks
from ..records.seeds import derived
from ..timing import PaddedSteps, predicted_seconds_per_iteration, slowest_seconds, step_seconds
from ..workloads import LogisticRegression, Quadratic, SmallNetwork, Workload
from .runs.local_steps import training_rounds
from .runs.spec import STEP_TIMES, TrainingRun
from .runs.training import joined, timed_alone
from .study import Figure, Record, Study


# Padding keeps ranks that share cores from contending; the delay of an averaging is measured by itself, each time right
# after a barrier, so that the wait for stragglers is not in it.  The prediction then uses nothing from the timed run.
@dataclass(frozen=True)
class IterationTimePlan:
    """One workload at one tau.

    Parameters
    ----------
    law : StepTime
        Of a local step's duration, whatever it computes.
    steps : int, optional
        A multiple of tau.
    repeats : int, optional
        Timed runs.
    delays : int, optional
        Averagings timed by themselves before each of them.
    seed : int, optional
        Of the run.
    """

    workload: Workload
    operator: Operator
    law: StepTime
    tau: int
    steps: int = 64
    repeats: int = 5
    delays: int = 6
    seed: int = 0

    def run(self, seed: int) -> TrainingRun:
        """Return the run that is timed with this seed."""
        return TrainingRun(self.workload, self.tau, self.law, seed, steps=self.steps, operator=self.operator)


def measure_iteration_time(place: RankContext, plan: IterationTimePlan) -> Record:
    """Time the runs; all ranks return the same record."""
    delays: list[float] = []
    seconds, rounds, steps, overruns = [], [], [], 0
    for repeat in range(plan.repeats):
        run = plan.run(derived(plan.seed, repeat))
        delays += timed_alone(place, run, plan.delays)
        drawn = step_seconds(plan.law, key=Key(run.seed).fold_in(STEP_TIMES), worker=place.rank, steps=plan.steps)
        pacing = PaddedSteps(0.0, drawn.tolist())
        ends = _timed_run(place, run, pacing)
        seconds.append(ends[-1] / plan.steps)
        rounds.append(np.diff([0.0, *ends]).tolist())
        steps.append(pacing.durations)
        overruns += pacing.overruns
    everyone = gather_arrays(torch.tensor(steps, dtype=torch.float64))
    every_delay = torch.stack(gather_arrays(torch.tensor(delays, dtype=torch.float64))).mean(dim=0)
    return {
        "kind": "pace",
        "workload": plan.workload.name,
        "operator": specification(plan.operator),
        "m": place.size,
        "tau": plan.tau,
        "steps": plan.steps,
        "law": repr(plan.law),
        "mean_step_s": plan.law.mean_s,
        "predicted_compute_s": predicted_seconds_per_iteration(plan.law, 0.0, tau=plan.tau, m=place.size),
        "seconds_per_iteration": [_agreed(value) for value in seconds],
        "round_s": rounds,
        "step_s": [part.tolist() for part in everyone],
        "delay_s": every_delay.tolist(),
        "overruns": int(sum(int(part) for part in gather_arrays(torch.tensor([overruns])))),
        "scheduling": place.scheduling,
        "method": place.port.method,
    }


def _agreed(own: float) -> float:
    """Return the mean over ranks, which differ by how they left the last collective."""
    return float(torch.stack(gather_arrays(torch.tensor([own], dtype=torch.float64))).mean())


def _timed_run(place: RankContext, run: TrainingRun, pacing: PaddedSteps) -> list[float]:
    """Return when every round ended, in seconds since the start."""
    averaging, replica = joined(place, run)
    ends = []
    barrier()
    began = time.perf_counter()
    for _ in training_rounds(averaging.engine, [replica], pacing=pacing):
        ends.append(time.perf_counter() - began)
        if run.is_over(ends[-1], averaging.total_steps):
            break
    return ends


HANG_TIMEOUT_S = 60.0
SHAPE = Shape(rate_bit_per_s=1e8, delay_s=1e-3)
STEP_S = 8e-3  # mean of every law
APPROXIMATE = {"autoregressive": 0.006}  # relative error of E max that the law states
WITHOUT_VARIANCE = (
    "Student's interval needs a variance, and this law has none; the mean of the maximum converges slowly"
)


def laws() -> dict[str, StepTime]:
    """Name -> law of a step's time, all of mean STEP_S; one worker in four is always 1.5 times slower in the last."""
    y = STEP_S
    return {
        "exponential": runtime.Exponential(y),
        "shifted": runtime.ShiftedExponential(0.75 * y, 0.25 * y),
        "pareto": Pareto(2 * y / 3, 3.0),
        "uniform": runtime.Uniform(0.4 * y, 1.6 * y),
        "weibull": runtime.Weibull(y / 1.2658234, 0.7),  # Gamma(1 + 1/.7) = 1.26582
        "gamma": Gamma(2.5, y / 2.5),
        "lognormal": runtime.LogNormal.from_moments(y, 0.5 * y),
        "heavy": Pareto(y / 3, 1.5),
        "autoregressive": runtime.AutoregressiveLogNormal(y, 0.3, 0.9),
        "persistent": runtime.PersistentStragglers(Gamma(4.0, y / 4.5), (1.0, 1.0, 1.0, 1.5)),
    }


def cases() -> dict[str, tuple[Workload, StepTime]]:
    """Return two workloads with steps of one length, and a light one with every law."""
    steady = {"logistic": LogisticRegression(), "network": SmallNetwork()}
    return {
        **{name: (workload, Constant(STEP_S)) for name, workload in steady.items()},
        **{name: (Quadratic(), law) for name, law in laws().items()},
    }


@dataclass(frozen=True)
class StragglerStudy(Study):
    """Real ranks on a network of a stated shape (if the machine allows it) take steps padded to drawn durations.

    Parameters
    ----------
    cases : dict of int to tuple of str, optional
        By the number of ranks m.
    steps : int, optional
        Of a run, a multiple of every tau.
    repeats : int, optional
        Runs.
    delays : int, optional
        Averagings timed by themselves before each.
    batches : int, optional
        Means that the interval of the order statistics rests on.
    rounds : int, optional
        Drawn rounds of each of them.
    """

    cases: dict[int, tuple[str, ...]] = field(
        default_factory=lambda: {
            2: ("logistic", "network", "exponential", "pareto"),
            4: tuple(cases()),
            8: ("exponential", "pareto", "lognormal"),
        }
    )
    taus: tuple[int, ...] = (1, 4, 16)
    shape: Shape = SHAPE
    steps: int = 80
    repeats: int = 2
    delays: int = 5
    batches: int = 64
    rounds: int = 256

    name = "straggler"
    description = "seconds per iteration against tau and m with injected delays of ten laws"
    minutes = 4
    processes = 8
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the cases of each number of ranks: the law alone, then real ranks."""
        for m, names in self.cases.items():
            for case in names:
                if case in laws():
                    yield "drawn", m, case
                yield "pace", m, case

    def measure_drawn(self, m: int, case: str) -> Record:
        """Draw the steps of m workers from a law."""
        _, law = cases()[case]
        return {"m": m, "law": repr(law), "taus": [self._drawn(law, m, tau) for tau in self.taus]}

    def measure_pace(self, m: int, case: str) -> Record:
        """Time m real ranks that take such steps, at every tau; return rank 0's records."""
        workload, law = cases()[case]
        settings = (self.steps, self.repeats, self.delays, self.seed)
        plans = [IterationTimePlan(workload, Identity(), law, tau, *settings) for tau in self.taus]
        workload.objective(workload.model())  # loads the data before the processes fork

        def work(place: RankContext, emit: Any) -> None:
            for plan in plans:
                record = measure_iteration_time(place, plan)
                if place.rank == 0:
                    emit(record)

        with Network.of(self.shape, m) as network:
            running = run_ranks(
                work, processes=m, hang_timeout_s=HANG_TIMEOUT_S, network=network, scheduling="realtime"
            )
            records = list(running)
            return {"method": network.description, "refusals": list(network.refusals), "records": records}

    def _drawn(self, law: StepTime, m: int, tau: int) -> Record:
        """Return the slowest worker's mean of tau drawn steps, averaged in batches of rounds."""
        steps = self.batches * self.rounds * tau
        drawn = np.stack([step_seconds(law, key=Key(derived(self.seed, tau)), worker=i, steps=steps) for i in range(m)])
        return {
            "tau": tau,
            "slowest_s": (batch_means(slowest_seconds(drawn, tau), self.rounds) / tau).tolist(),
            "predicted_s": law.expected_max(m=m, tau=tau),
        }

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Judge order statistics of the drawn steps; seconds of the machine decide nothing."""
        level = self.false_alarm / (len(self.taus) * sum(kind == "drawn" for kind, *_ in self.plan()))
        drawn = self.table(records, "drawn")
        rows = [_drawn_row(unit.case, r, of_tau, level, self.rounds) for unit, r in drawn for of_tau in r["taus"]]
        return [*rows, *iteration_time_rows(self._paced(records))]

    def _paced(self, records: Sequence[Record]) -> list[Record]:
        return [{"case": unit.case, **r} for unit, record in self.table(records, "pace") for r in record["records"]]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return seconds per iteration against tau, and against m."""
        paced = self._paced(records)
        if not paced:
            return []
        words = (
            "Measured (marks): mean seconds per iteration of real ranks with padded steps, bars 95 % intervals over "
            "the rounds. Theory (lines): E max over workers of the mean of tau steps + D/tau, D timed after a barrier. "
            f"{paced[0]['method']}; {paced[0]['scheduling']}."
        )
        against_m = [r for r in paced if len({q["m"] for q in paced if q["law"] == r["law"]}) > 1]
        away = float(np.median([abs(iteration(r).value / predicted(r) - 1) for r in paced]))
        finding = f"Seconds per iteration are within {away:.1%} of the runtime model in the median"
        drawn = [Figure(lambda: _draw_tau(paced), words, finding=finding)]
        if against_m:
            drawn.append(Figure(lambda: _draw_m(against_m), f"The same against the number of workers. {words}"))
        return drawn


# -- judgements --------------------------------------------------------------------------------------------------
def _variance(law: StepTime, m: int, steps: int) -> float | None:
    """Of the mean over rounds of the slowest worker's mean of tau steps, at most; None where it is not known.

    Parameters
    ----------
    steps : int
        tau times the rounds.  The largest of independent numbers varies no more than all of them together.
    """
    return m * law.sd_s**2 / steps if isinstance(law, Law) and np.isfinite(law.sd_s) else None


def _drawn_row(case: str, record: Record, at: Record, level: float, rounds: int) -> Comparison:
    about: dict[str, Any] = {
        "operator": "",
        "workload": f"m = {record['m']}, steps {record['law']}",
        "quantity": "slowest worker's mean of tau drawn steps",
        "theorem": "E max over m workers",
        "tau": at["tau"],
        "unit": "s",
    }
    variance = _variance(laws()[case], record["m"], at["tau"] * rounds)
    row = mean_row(at["slowest_s"], at["predicted_s"], "tight", level=level, variance=variance, **about)
    if case == "heavy":
        return out_of_scope(row, WITHOUT_VARIANCE)
    if case in APPROXIMATE:
        slack = APPROXIMATE[case] * at["predicted_s"]
        wider = (row.interval[0] - slack, row.interval[1] + slack)
        words = f"E max over m workers, within the stated {APPROXIMATE[case]:.1%}"
        verdict = tight_verdict(wider, at["predicted_s"], MARGIN * at["predicted_s"])
        return replace(row, interval=wider, verdict=verdict, theorem=words)
    return row


# -- drawings ----------------------------------------------------------------------------------------------------
def predicted(record: Record) -> float:
    """Return E max + D/tau, in seconds."""
    return float(record["predicted_compute_s"] + barrier_timed_delay(record).value / record["tau"])


def _draw_tau(records: Sequence[Record]) -> Any:
    """Draw one panel a number of workers and a few laws."""
    panels = []
    for m in sorted({r["m"] for r in records}):
        cases = list(dict.fromkeys(r["case"] for r in records if r["m"] == m))
        panels += [(m, cases[i : i + LINES_A_PANEL]) for i in range(0, len(cases), LINES_A_PANEL)]
    styles = _styles(records)

    def draw(ax: Any, panel: tuple[int, list[str]]) -> None:
        m, cases = panel
        _draw_curves(ax, [r for r in records if r["m"] == m and r["case"] in cases], "tau", styles)

    title, y = lambda panel: f"m = {panel[0]}", "seconds per iteration"
    return chart(panels, draw, columns=2, height=3.4, title=title, x="tau", y=y)


def _draw_m(records: Sequence[Record]) -> Any:
    taus, styles = sorted({r["tau"] for r in records}), _styles(records)

    def draw(ax: Any, tau: int) -> None:
        _draw_curves(ax, [r for r in records if r["tau"] == tau], "m", styles)

    return chart(taus, draw, height=3.6, title="tau = {}".format, x="m", y="seconds per iteration")


def _styles(records: Sequence[Record]) -> dict[str, tuple[str, str, str]]:
    names = dict.fromkeys(r["case"] for r in records)
    turns = [i + i // len(PALETTE) for i in range(len(names))]  # no colour comes twice with the same mark
    styles = [(PALETTE[i % len(PALETTE)], MARKS[t % len(MARKS)], LINES[t % len(LINES)]) for i, t in enumerate(turns)]
    return dict(zip(names, styles, strict=True))


def _draw_curves(ax: Any, records: Sequence[Record], key: str, styles: dict[str, tuple[str, str, str]]) -> None:
    for case in dict.fromkeys(r["case"] for r in records):
        of_case = sorted((r for r in records if r["case"] == case), key=lambda r: r[key])
        colour, mark, line = styles[case]
        x, estimates = [r[key] for r in of_case], [iteration(r) for r in of_case]
        spreads = [Spread(e.value, (float(e.interval.lo), float(e.interval.hi))) for e in estimates]
        error_bars(ax, x, spreads, fmt=mark, color=colour, markersize=5, capsize=3, label=case)
        ax.plot(x, [predicted(r) for r in of_case], line, color=colour, linewidth=1)
    ax.set(xscale="log", yscale="log")
    ticks_at(ax, sorted({r[key] for r in records}))
    plain_ticks(ax.yaxis)


PRESET = StragglerStudy()
