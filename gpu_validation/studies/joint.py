"""AdaComm and compression together: loss against time and bits, and the joint bound of a varying period and omega."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from bounds import AssumptionViolated
from bounds.claims import Contractive, Unbiased
from bounds.runtime import Constant, RingGather, RuntimeModel
from bounds.schedules import AdaComm, Schedule
from bounds.theorems import pasgd_compressed_variable, pasgd_memory, pasgd_variable
from bounds.theorems.compressed_local_sgd import compressed_schedule_sums
from operators import QSGD, TCDQ, ErrorFeedback, Feedback, Identity, Operator, TopK

from ..judging.comparisons import NO_RANGE, mean_row, unjudged_row
from ..judging.iteration_time import agreement_rows, compared
from ..judging.plotting import LINES, PALETTE, Spread, categories, chart, error_bars
from ..network import Shape
from ..workloads import LogisticRegression, Quadratic, Workload
from ..workloads.data import Bundled
from .error_feedback import largest_gradient
from .runs.simulation import simulate
from .runs.spec import TrainingRun
from .runs.training import run_training
from .study import Comparison, Figure, Record, Study

# -- combinations ----------------------------------------------------------------------------------------------------

STEP_S = 8e-3  # Y
LATENCY_S = 1e-3  # of a hop of the ring in the simulated clock
DENSE_S = 8e-3  # of a hop, for a message that is not compressed
FLOAT_BITS = 32

METHODS: dict[str, Operator | Feedback] = {
    "whole": Identity(),
    "qsgd": QSGD(levels=16),
    "tcdq": TCDQ(omega=1.0),
    "ef(topk)": ErrorFeedback(TopK(fraction=0.1)),
}
WORKLOADS: dict[str, Workload] = {
    "quadratic": Quadratic(copies=20, noise=0.02),
    "logistic": LogisticRegression(source=Bundled("breast_cancer"), batch=8, eta=0.02),
}
TAU_0 = {"quadratic": 12, "logistic": 10}  # within the learning-rate condition with every compressor


class Combination(NamedTuple):
    """A problem, a schedule (a fixed tau or "adacomm") and a method."""

    problem: str
    schedule: str
    method: str

    @property
    def tau(self) -> int | None:
        """The fixed one."""
        return None if self.schedule == "adacomm" else int(self.schedule)

    @property
    def title(self) -> str:
        """Of the schedule, in words."""
        return "AdaComm" if self.tau is None else f"tau = {self.tau}"


def schedule(kind: str, workload: str, interval_s: float) -> int | Schedule:
    """Return a fixed tau, or AdaComm from the largest one; it knows inf F."""
    if kind != "adacomm":
        return int(kind)
    w, tau = WORKLOADS[workload], TAU_0[workload]
    infimum = w.evaluate(w.model())[0] - w.constants().gap
    return AdaComm(tau_0=tau, interval_s=interval_s, loss_inf=infimum, gamma=0.5, cap=tau)


def dimension(workload: Workload) -> int:
    """Return the number of parameters."""
    return sum(p.numel() for p in workload.model().parameters())


def joint_bound(name: str, method: str, rounds: Sequence[Sequence[int]], m: int) -> float:
    """Return the joint bound for the rounds of a run, [tau, how often] in order; infinite outside its condition."""
    w, operator = WORKLOADS[name], METHODS[method]
    assert isinstance(operator, Operator)  # the others have a memory
    claim, c = operator.claim(dimension(w)), w.constants()
    omega = claim.omega if isinstance(claim, Unbiased) else 0.0
    taus = [tau for tau, count in rounds for _ in range(count)]
    sums = compressed_schedule_sums([w.eta] * len(taus), taus, L=c.L, omega=omega, m=m)
    arguments: dict[str, Any] = {"gap": c.gap, "L": c.L, "sigma2": c.sigma2, "m": m, **sums}
    try:
        return float(pasgd_compressed_variable(**arguments, omega=omega) if omega else pasgd_variable(**arguments))
    except AssumptionViolated:
        return math.inf


def gradient_limit(workload: LogisticRegression, alpha: float, tau: int, steps: int) -> float:
    """Return G: no gradient of a run from zero is longer, decay included.

    A sample's gradient is at most G_0, and decay adds ``decay |x|``.  The point without compression moves by at most
    eta G a step, the memory adds eta tau G sqrt(alpha)/(1 - sqrt(alpha)), a round's local steps eta tau G: with their
    sum in the place of ``|x|``, G = G_0 + decay ``|x|`` is a fixed point.
    """
    reach = workload.eta * (steps + tau / (1 - math.sqrt(alpha)))
    if workload.decay * reach >= 1:
        return math.inf
    return largest_gradient(workload) / (1 - workload.decay * reach)


# -- rows ------------------------------------------------------------------------------------------------------------

TIME = "no theorem bounds the time to a loss; the joint bound is on the mean of |grad F|^2"
NO_G = "pasgd_memory needs E|g|^2 <= G^2 for every gradient, and those of a quadratic grow without bound"


def bound_row(unit: Combination, record: Record, m: int, level: float) -> Comparison:
    """Return the theorem that covers the compressor, for the schedules that the runs had."""
    if isinstance(METHODS[unit.method], Feedback):
        return _memory_row(unit, record, m, level)
    values, bounds, about = _weighed(unit, record, m)
    if not all(map(math.isfinite, bounds)):
        words = "the learning-rate condition of the joint bound fails: eta L (1 + 2 omega tau/m) + ... > 1"
        return unjudged_row(values, words, **about)
    if len(set(bounds)) == 1:
        return mean_row(values, bounds[0], "upper", level=level, **about)
    return unjudged_row(values, NO_RANGE, **about)


def _memory_row(unit: Combination, record: Record, m: int, level: float) -> Comparison:
    w, feedback = WORKLOADS[unit.problem], METHODS[unit.method]
    weights = _weights(record)
    values = (weights * [run["local_gradient2"] for run in record["runs"]]).tolist()
    about = {**described(unit), "quantity": "mean of |grad F|^2 over the steps, at the workers' own models"}
    if not isinstance(w, LogisticRegression):
        return unjudged_row(values, NO_G, theorem=pasgd_memory.name, **about)
    assert isinstance(feedback, ErrorFeedback)  # the only one here
    claim = feedback.operator.claim(dimension(w))
    assert isinstance(claim, Contractive)
    tau = TAU_0[unit.problem] if unit.tau is None else unit.tau  # the largest of the run
    done = [run["steps_done"] for run in record["runs"]]
    c = w.constants()
    arguments = {"gap": c.gap, "eta": w.eta, "L": c.L, "sigma2": c.sigma2, "m": m}
    arguments |= {"tau": tau, "K": math.floor(np.mean(done))}
    G = gradient_limit(w, claim.alpha, tau, max(done))
    try:
        bound = float(pasgd_memory(**arguments, alpha=claim.alpha, G=G))
    except AssumptionViolated as error:
        return unjudged_row(values, str(error), theorem=pasgd_memory.name, **about)
    return mean_row(values, bound, "upper", level=level, theorem=pasgd_memory.name, **about)


def described(unit: Combination) -> dict[str, Any]:
    """Return the fields of a row that name the compressor, the problem and the schedule."""
    return {"operator": unit.method, "workload": f"{unit.problem}, {unit.title}", "tau": unit.tau}


def _weights(record: Record) -> np.ndarray:
    """Return every seed's number of steps over their mean."""
    steps = np.array([run["steps_done"] for run in record["runs"]], float)
    return steps / steps.mean()


def _weighed(unit: Combination, record: Record, m: int) -> tuple[list[float], np.ndarray, dict[str, Any]]:
    """Return every seed's sum of ``|grad F|^2`` and bound on it, both over the seeds' mean number of steps.

    The number of steps and the schedule of AdaComm are random; what is bounded is the mean of the sum.
    """
    weights = _weights(record)
    values = weights * [run["gradient2"] for run in record["runs"]]
    bounds = weights * [joint_bound(unit.problem, unit.method, run["rounds"], m) for run in record["runs"]]
    theorem = pasgd_variable.name if unit.method == "whole" else pasgd_compressed_variable.name
    about = {**described(unit), "quantity": "mean of |grad F|^2 over the steps", "theorem": theorem}
    return values.tolist(), bounds, about


def seconds_to(run: Record, loss: float) -> float:
    """Return the time of the first recorded averaging at or below a loss; infinite if there is none."""
    return next((s for s, value in zip(run["seconds"], run["losses"], strict=True) if value <= loss), math.inf)


def time_rows(unit: Combination, records: Mapping[Combination, Record]) -> list[Comparison]:
    """Return how much faster, and with how many fewer bits, than synchronous SGD with whole messages."""
    synchronous = Combination(unit.problem, "1", "whole")
    base = records.get(synchronous)
    if base is None or unit == synchronous:
        return []
    ratios, fewer = [], []
    for run, plain in zip(records[unit]["runs"], base["runs"], strict=True):
        target = plain["losses"][-1]
        reached = seconds_to(run, target)
        ratios.append(seconds_to(plain, target) / reached)
        fewer.append(plain["bits"][-1] / run["bits"][run["seconds"].index(reached)] if reached < math.inf else 0.0)
    about = described(unit)
    words = "synchronous whole messages' final loss"
    return [
        unjudged_row(ratios, TIME, quantity=f"times faster at {words}", **about),
        unjudged_row(fewer, TIME, quantity=f"times fewer bits at {words}", **about),
    ]


def real_rows(unit: Combination, record: Record) -> list[Comparison]:
    """Return equal losses decide, seconds do not; AdaComm's decisions depend on the clock and are only shown."""
    if "compared" not in record:
        return []
    return agreement_rows(record, steps=record["steps_done"], step_s=STEP_S, **described(unit))


# -- drawings --------------------------------------------------------------------------------------------------------


def draw_losses(records: Sequence[tuple[Combination, Record]], key: str, label: str) -> Any:
    """Return F - inf F of the first seed, one panel a problem and method.

    Parameters
    ----------
    records : sequence of tuple
        Units and what was measured.
    key : str
        "seconds" or "bits".
    label : str
        Of the x axis.
    """
    grid = list(product(WORKLOADS, METHODS))
    schedules = {name: list(dict.fromkeys(u.schedule for u, _ in _of_workload(records, name))) for name in WORKLOADS}

    def draw(ax: Any, panel: tuple[str, str]) -> None:
        for unit, record in _of_workload(records, panel[0]):
            if unit.method == panel[1]:
                run, i = record["runs"][0], schedules[unit.problem].index(unit.schedule)
                words = unit.schedule if unit.tau is None else unit.title
                ax.plot(run[key][1:], _gaps(unit.problem, run)[1:], LINES[i], color=PALETTE[i], label=words)

    settings: dict[str, Any] = {"x": label, "y": "F - inf F", "logs": "xy" if key == "bits" else "y", "plain": "y"}
    return chart(grid, draw, columns=len(METHODS), height=3.0, title=", ".join, **settings)


def _of_workload(records: Sequence[tuple[Combination, Record]], name: str) -> list[tuple[Combination, Record]]:
    return [(unit, record) for unit, record in records if unit.problem == name]


def _gaps(name: str, run: Record) -> np.ndarray:
    infimum = run["losses"][0] - WORKLOADS[name].constants().gap
    return np.maximum(np.array(run["losses"]) - infimum, 1e-12)


def draw_bounds(records: Sequence[tuple[Combination, Record]], m: int) -> Any:
    """Return means of ``|grad F|^2`` and what bounds them, m workers."""

    def draw(ax: Any, name: str) -> None:
        of_workload = _of_workload(records, name)
        for i, (unit, record) in enumerate(of_workload):
            row = bound_row(unit, record, m, 0.05)  # only its bound is drawn
            field = "local_gradient2" if "local_gradient2" in record["runs"][0] else "gradient2"
            values = Spread.of(run[field] for run in record["runs"])
            error_bars(ax, [i], [values], fmt="o", color=PALETTE[1], markersize=4, capsize=2)
            if row.bound is not None and math.isfinite(row.bound):
                ax.bar([i], [row.bound], color=PALETTE[0], alpha=0.35)
        categories(ax, [f"{unit.method}, {unit.title}" for unit, _ in of_workload], rotation=60, ha="right")

    return chart(list(WORKLOADS), draw, height=3.6, logs="y", plain="y", ylabel="mean of |grad F|^2")


def draw_real(records: Sequence[tuple[Combination, Record]]) -> Any:
    """Return F - inf F of real processes."""

    def draw(ax: Any, name: str) -> None:
        of_workload = _of_workload(records, name)
        for i, (unit, record) in enumerate(of_workload):
            how = {"color": PALETTE[i % len(PALETTE)], "label": f"{unit.method}, {unit.title}"}
            ax.plot(record["seconds"][1:], _gaps(name, record)[1:], LINES[i % len(LINES)], **how)
        if of_workload:
            ax.legend()

    settings: dict[str, Any] = {"x": "seconds", "logs": "y", "plain": "y", "ylabel": "F - inf F", "legend": False}
    return chart(list(WORKLOADS), draw, height=3.2, **settings)


# -- the study -------------------------------------------------------------------------------------------------------

SHAPE = Shape(rate_bit_per_s=1e8, delay_s=2e-3)


@dataclass(frozen=True)
class JointStudy(Study):
    """Every compressor with every schedule on simulated workers and a simulated ring, for a budget of seconds.

    ``real`` runs are repeated by real processes on a network of the stated shape for ``real_steps`` steps; with a
    fixed tau their losses must agree with simulated workers bit for bit.
    """

    schedules: tuple[str, ...] = ("1", "8", "adacomm")
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    m: int = 4
    time_s: float = 3.0
    interval_s: float = 0.3
    points: int = 40
    real: tuple[tuple[str, str], ...] = (("tcdq", "8"), ("tcdq", "adacomm"), ("ef(topk)", "8"))
    real_steps: int = 160
    shape: Shape = SHAPE

    name = "joint"
    description = "AdaComm with QSGD, TCDQ and top-k with memory: loss against time and bits, and the joint bound"
    minutes = 3
    processes = 4
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield all combinations on simulated workers, then those of real processes."""
        yield from (("virtual", w, kind, method) for w in WORKLOADS for kind in self.schedules for method in METHODS)
        yield from (("real", w, kind, method) for w in WORKLOADS for method, kind in self.real)

    def measure_virtual(self, problem: str, schedule: str, method: str) -> Record:
        """Simulate every seed."""
        runs = [self._virtual(problem, schedule, method, seed) for seed in self.seeds]
        return {"eta": WORKLOADS[problem].eta, "runs": runs}

    def _race(self, name: str, kind: str, method: str, seed: int, **ends: Any) -> TrainingRun:
        rule = schedule(kind, name, self.interval_s)
        fields: dict[str, Any] = {"operator": METHODS[method], "points": self.points}
        return TrainingRun(WORKLOADS[name], rule, Constant(STEP_S), seed, trace=True, **fields, **ends)

    def _runtime(self, name: str) -> RuntimeModel:
        """Return a hop of the ring takes LATENCY_S, and DENSE_S more for an uncompressed message."""
        dense_bytes = FLOAT_BITS / 8 * dimension(WORKLOADS[name])
        ring = RingGather(LATENCY_S, dense_bytes / DENSE_S)
        return RuntimeModel(step=Constant(STEP_S), communication=ring, m=self.m)

    def _virtual(self, name: str, kind: str, method: str, seed: int) -> Record:
        race = self._race(name, kind, method, seed, budget_s=self.time_s)
        biased = isinstance(METHODS[method], Feedback)
        run = simulate(race, self._runtime(name), locally=biased)
        kept = {key: run[key] for key in ("seconds", "bits", "losses", "rounds", "steps_done", "took_s")}
        local_norms = {"local_gradient2": float(np.mean(run["local_gradient2"]))} if biased else {}
        return {**kept, **local_norms, "gradient2": float(np.mean(run["gradient2"]))}

    def measure_real(self, problem: str, schedule: str, method: str) -> Record:
        """Run real processes."""
        race = self._race(problem, schedule, method, self.seeds[0], steps=self.real_steps)
        (real,) = run_training([race], m=self.m, shape=self.shape)
        kept = {key: real[key] for key in ("seconds", "bits", "losses", "rounds", "steps_done", "fenced_s")}
        record = {**kept, "raced_s": real["took_s"], "method": real["method"], "scheduling": real["scheduling"]}
        if schedule == "adacomm":
            return record  # its decisions depend on the clock
        simulated_run = simulate(race, self._runtime(problem))
        return {**record, **compared(real, simulated_run)}

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Judge by the joint bound, and real workers by simulated ones; times to a loss are for comparison."""
        level = self.false_alarm / max(1, sum(kind == "virtual" for kind, *_ in self.plan()))
        virtual = self._combinations(records, "virtual")
        rows: list[Comparison] = []
        for unit, record in virtual.items():
            rows += [bound_row(unit, record, self.m, level), *time_rows(unit, virtual)]
        return [*rows, *(row for pair in self._combinations(records, "real").items() for row in real_rows(*pair))]

    def _combinations(self, records: Sequence[Record], kind: str) -> dict[Combination, Record]:
        return {Combination(*unit): record for unit, record in self.table(records, kind)}

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return loss against time and against bits; the share of the joint bound that is used."""
        virtual, real = (list(self._combinations(records, kind).items()) for kind in ("virtual", "real"))
        if not virtual:
            return []
        clock = (
            f"Simulated ring: Y = {STEP_S * 1e3:g} ms, {LATENCY_S * 1e3:g} ms a hop and {DENSE_S * 1e3:g} ms more for "
            "an uncompressed message. Virtual workers compute bit for bit what real processes do."
        )
        ends = self._combinations(records, "virtual")
        pairs = [time_rows(unit, ends) for unit in ends if (unit.schedule, unit.method) == ("adacomm", "tcdq")]
        fewer = [rows[1].measured for rows in pairs if rows]
        finding = f"AdaComm with TCDQ needs {min(fewer):.0f} to {max(fewer):.0f} times fewer bits" if fewer else ""
        losses = f"Measured: F - inf F at the averagings of the first seed, against {{}}. No theory. {clock}"
        bounds = (
            "Measured (dots, range of the seeds): mean of |grad F|^2 over the steps of the budget. Theory (bars): "
            f"the joint bound of the run's own schedule and omega. {clock}"
        )
        seconds, bits = "simulated seconds", "bits of all workers"
        drawn = [
            Figure(lambda: draw_losses(virtual, "seconds", seconds), losses.format(seconds)),
            Figure(lambda: draw_losses(virtual, "bits", bits), losses.format(bits), finding=finding),
            Figure(lambda: draw_bounds(virtual, self.m), bounds),
        ]
        if real:
            words = f"Measured: the same losses of real processes against their own clock. {real[0][1]['method']}."
            drawn.append(Figure(lambda: draw_real(real), words))
        return drawn


PRESET = JointStudy()
