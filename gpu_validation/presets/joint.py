"""AdaComm and compression together: loss against time and bits, and the joint bound of a varying period and omega."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from bounds import AssumptionViolated
from bounds.claims import Contractive, Unbiased
from bounds.runtime import Constant, RingGather, RuntimeModel
from bounds.schedules import AdaComm, Schedule
from bounds.theorems import pasgd_compressed_variable, pasgd_memory, pasgd_variable
from bounds.theorems.pasgd_compressed_variable import compressed_schedule_sums
from operators import QSGD, TCDQ, ErrorFeedback, Feedback, Identity, Operator, TopK

from ..compare import student_interval, upper_verdict
from ..network import Shape
from ..pace import near
from ..page import LINES, PALETTE, canvas
from ..race import Race, run_races
from ..records import Comparison, Sample
from ..rehearsal import rehearse
from ..rows import exact_row, mean_row, unjudged_row
from ..study import Figure, Record, Study
from ..workloads import LogisticRegression, Quadratic, Workload
from .error_feedback import largest_gradient

STEP_S = 8e-3  # Y
LATENCY_S = 1e-3  # of a hop of the ring in the simulated clock
DENSE_S = 8e-3  # of a hop, for a message that is not compressed
FLOAT_BITS = 32
SHAPE = Shape(rate_bit_per_s=1e8, delay_s=2e-3)

METHODS: dict[str, Operator | Feedback] = {
    "whole": Identity(),
    "qsgd": QSGD(levels=16),
    "tcdq": TCDQ(omega=1.0),
    "ef(topk)": ErrorFeedback(TopK(fraction=0.1)),
}
WORKLOADS: dict[str, Workload] = {
    "quadratic": Quadratic(copies=20, noise=0.02),
    "logistic": LogisticRegression(batch=8, eta=0.01),
}
TAU_0 = {"quadratic": 12, "logistic": 8}  # within the learning-rate condition with every compressor
TIME = "no theorem bounds the time to a loss; the joint bound is on the mean of |grad F|^2"
NO_G = "pasgd_memory needs E|g|^2 <= G^2 for every gradient, and those of a quadratic grow without bound"


def schedule(kind: str, workload: str, interval_s: float) -> int | Schedule:
    """A fixed tau, or AdaComm from the largest one; it knows inf F."""
    if kind != "adacomm":
        return int(kind)
    w, tau = WORKLOADS[workload], TAU_0[workload]
    infimum = w.evaluate(w.model())[0] - w.constants().gap
    return AdaComm(tau_0=tau, interval_s=interval_s, loss_inf=infimum, gamma=0.5, cap=tau)


@dataclass(frozen=True)
class JointStudy(Study):
    """Every compressor with every schedule on virtual workers and a simulated ring, for a budget of seconds.

    ``real`` runs are repeated by real processes on a network of the stated shape for ``real_steps`` steps; with a
    fixed tau their losses must agree with virtual workers bit for bit.
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
    minutes = 6
    processes = 4

    def units(self) -> Sequence[str]:
        """virtual:WORKLOAD:SCHEDULE:METHOD and real:WORKLOAD:SCHEDULE:METHOD."""
        return [
            *(f"virtual:{w}:{kind}:{method}" for w in WORKLOADS for kind in self.schedules for method in METHODS),
            *(f"real:{w}:{kind}:{method}" for w in WORKLOADS for method, kind in self.real),
        ]

    def measure(self, unit: str) -> Record:
        """By the kind of unit."""
        where, name, kind, method = unit.split(":", 3)
        if where == "real":
            return self._real(name, kind, method)
        runs = [self._virtual(name, kind, method, seed) for seed in self.seeds]
        return {"eta": WORKLOADS[name].eta, "runs": runs}

    def _race(self, name: str, kind: str, method: str, seed: int, **ends: Any) -> Race:
        rule = schedule(kind, name, self.interval_s)
        operator = METHODS[method]
        return Race(
            WORKLOADS[name], rule, Constant(STEP_S), seed, operator=operator, points=self.points, trace=True, **ends
        )

    def _runtime(self, name: str) -> RuntimeModel:
        """A hop of the ring takes LATENCY_S, and DENSE_S more for an uncompressed message."""
        dense_bytes = FLOAT_BITS / 8 * sum(p.numel() for p in WORKLOADS[name].model().parameters())
        ring = RingGather(LATENCY_S, dense_bytes / DENSE_S)
        return RuntimeModel(step=Constant(STEP_S), communication=ring, m=self.m)

    def _virtual(self, name: str, kind: str, method: str, seed: int) -> Record:
        race = self._race(name, kind, method, seed, budget_s=self.time_s)
        biased = isinstance(METHODS[method], Feedback)
        run = rehearse(race, self._runtime(name), locally=biased)
        kept = {key: run[key] for key in ("seconds", "bits", "losses", "rounds", "steps_done", "took_s")}
        own = {"local_gradient2": float(np.mean(run["local_gradient2"]))} if biased else {}
        return {**kept, **own, "gradient2": float(np.mean(run["gradient2"]))}

    def _real(self, name: str, kind: str, method: str) -> Record:
        race = self._race(name, kind, method, self.seeds[0], steps=self.real_steps)
        (real,) = run_races([race], m=self.m, shape=self.shape)
        kept = {key: real[key] for key in ("seconds", "bits", "losses", "rounds", "steps_done", "fenced_s")}
        record = {**kept, "raced_s": real["took_s"], "method": real["method"], "scheduling": real["scheduling"]}
        if kind == "adacomm":
            return record  # its decisions depend on the clock
        twin = rehearse(race, self._runtime(name))
        ends = dict(zip(twin["step"], twin["losses"], strict=True))
        shared = [abs(loss - ends[k]) for k, loss in zip(real["step"], real["losses"], strict=True) if k in ends]
        return {**record, "compared": len(shared), "largest_difference": max(shared)}

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """The joint bound decides, and whether real and virtual workers agree; times to a loss are for comparison."""
        level = self.false_alarm / max(1, sum(unit.startswith("virtual:") for unit in self.units()))
        rows: list[Comparison] = []
        for record in records:
            if record["unit"].startswith("virtual:"):
                rows.append(self._bound_row(record, level))
                rows += _time_rows(record, records)
            else:
                rows += _real_rows(record)
        return rows

    def _bound_row(self, record: Record, level: float) -> Comparison:
        if isinstance(METHODS[_about(record)["operator"]], Feedback):
            return self._memory_row(record, level)
        values, bounds, about = _weighed(record, self.m)
        if not all(map(math.isfinite, bounds)):
            words = "the learning-rate condition of the joint bound fails: eta L (1 + 2 omega tau/m) + ... > 1"
            return unjudged_row(values, words, **about)
        interval = student_interval(Sample.of(np.array(values) - bounds), level)
        bound = float(np.mean(bounds))
        low, high = (bound + end for end in interval)
        return Comparison(
            measured=float(np.mean(values)),
            interval=(low, high),
            bound=bound,
            side="upper",
            verdict=upper_verdict((low, high), bound),
            n=len(values),
            **about,
        )

    def _memory_row(self, record: Record, level: float) -> Comparison:
        name, kind, method = record["unit"].split(":", 3)[1:]
        w, feedback = WORKLOADS[name], METHODS[method]
        weights = _weights(record)
        values = (weights * [run["local_gradient2"] for run in record["runs"]]).tolist()
        about = {**_about(record), "quantity": "mean of |grad F|^2 over the steps, at the workers' own models"}
        if not isinstance(w, LogisticRegression):
            return unjudged_row(values, NO_G, theorem=pasgd_memory.name, **about)
        assert isinstance(feedback, ErrorFeedback)  # the only one here
        claim = feedback.operator.claim(dimension(w))
        assert isinstance(claim, Contractive)
        tau = TAU_0[name] if kind == "adacomm" else int(kind)  # the largest of the run
        done = [run["steps_done"] for run in record["runs"]]
        c = w.constants()
        at = {
            "gap": c.gap,
            "eta": w.eta,
            "L": c.L,
            "sigma2": c.sigma2,
            "tau": tau,
            "m": self.m,
            "K": math.floor(np.mean(done)),
        }
        G = gradient_limit(w, claim.alpha, tau, max(done))
        try:
            bound = float(pasgd_memory(**at, alpha=claim.alpha, G=G))
        except AssumptionViolated as error:
            return unjudged_row(values, str(error), theorem=pasgd_memory.name, **about)
        return mean_row(values, bound, "upper", level=level, theorem=pasgd_memory.name, **about)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Loss against time and against bits; the share of the joint bound that is used."""
        virtual = [r for r in records if r["unit"].startswith("virtual:")]
        real = [r for r in records if r["unit"].startswith("real:")]
        if not virtual:
            return []
        clock = (
            f"Simulated ring: Y = {STEP_S * 1e3:g} ms, {LATENCY_S * 1e3:g} ms a hop and {DENSE_S * 1e3:g} ms more for "
            "an uncompressed message. Virtual workers compute bit for bit what real processes do."
        )
        drawn = [
            Figure(
                lambda: _draw_losses(virtual),
                f"Measured: F - inf F at the averagings of the first seed, against time (above) and bits sent by all "
                f"workers (below). No theory. {clock}",
            ),
            Figure(
                lambda: _draw_bounds(self, virtual),
                "Measured (dots, range of the seeds): mean of |grad F|^2 over the steps of the budget. Theory (bars): "
                f"the joint bound of the run's own schedule and omega. {clock}",
            ),
        ]
        if real:
            words = f"Measured: the same losses of real processes against their own clock. {real[0]['method']}."
            drawn.append(Figure(lambda: _draw_real(real), words))
        return drawn


# -- theory ------------------------------------------------------------------------------------------------------
def dimension(workload: Workload) -> int:
    """Number of parameters."""
    return sum(p.numel() for p in workload.model().parameters())


def joint_bound(name: str, method: str, rounds: Sequence[Sequence[int]], m: int) -> float:
    """The joint bound for the rounds of a run, [tau, how often] in order; infinite outside its condition."""
    w, operator = WORKLOADS[name], METHODS[method]
    assert isinstance(operator, Operator)  # the others have a memory
    claim, c = operator.claim(dimension(w)), w.constants()
    omega = claim.omega if isinstance(claim, Unbiased) else 0.0
    taus = [tau for tau, count in rounds for _ in range(count)]
    sums = compressed_schedule_sums([w.eta] * len(taus), taus, L=c.L, omega=omega, m=m)
    at: dict[str, Any] = {"gap": c.gap, "L": c.L, "sigma2": c.sigma2, "m": m, **sums}
    try:
        return float(pasgd_compressed_variable(**at, omega=omega) if omega else pasgd_variable(**at))
    except AssumptionViolated:
        return math.inf


def gradient_limit(workload: LogisticRegression, alpha: float, tau: int, steps: int) -> float:
    """G: no gradient of a run from zero is longer, decay included.

    A sample's gradient is at most G_0, and decay |x| comes to it.  The point without compression moves by at most eta G
    a step, the memory adds eta tau G sqrt(alpha)/(1 - sqrt(alpha)), a round's local steps eta tau G: with their sum in
    the place of |x|, G = G_0 + decay |x| is a fixed point.
    """
    reach = workload.eta * (steps + tau / (1 - math.sqrt(alpha)))
    if workload.decay * reach >= 1:
        return math.inf
    return largest_gradient(workload) / (1 - workload.decay * reach)


# -- judgements --------------------------------------------------------------------------------------------------
def _about(record: Record) -> dict[str, Any]:
    name, kind, method = record["unit"].split(":", 3)[1:]
    words = f"{name}, {'AdaComm' if kind == 'adacomm' else f'tau = {kind}'}"
    return {"operator": method, "workload": words, "tau": None if kind == "adacomm" else int(kind)}


def _weights(record: Record) -> np.ndarray:
    """Every seed's number of steps over their mean."""
    steps = np.array([run["steps_done"] for run in record["runs"]], float)
    return steps / steps.mean()


def _weighed(record: Record, m: int) -> tuple[list[float], np.ndarray, dict[str, Any]]:
    """Every seed's sum of |grad F|^2 and bound on it, both over the seeds' mean number of steps.

    The number of steps and the schedule of AdaComm are random; what is bounded is the mean of the sum.
    """
    name, _, method = record["unit"].split(":", 3)[1:]
    weights = _weights(record)
    values = weights * [run["gradient2"] for run in record["runs"]]
    bounds = weights * [joint_bound(name, method, run["rounds"], m) for run in record["runs"]]
    theorem = pasgd_variable.name if method == "whole" else pasgd_compressed_variable.name
    about = {**_about(record), "quantity": "mean of |grad F|^2 over the steps", "theorem": theorem}
    return values.tolist(), bounds, about


def seconds_to(run: Record, loss: float) -> float:
    """The time of the first recorded averaging at or below a loss; infinite if there is none."""
    return next((s for s, value in zip(run["seconds"], run["losses"], strict=True) if value <= loss), math.inf)


def _time_rows(record: Record, records: Sequence[Record]) -> list[Comparison]:
    """How much sooner, and with how many fewer bits, than synchronous SGD with whole messages."""
    name = record["unit"].split(":")[1]
    base = next((r for r in records if r["unit"] == f"virtual:{name}:1:whole"), None)
    if base is None or base is record:
        return []
    sooner, fewer = [], []
    for run, plain in zip(record["runs"], base["runs"], strict=True):
        target = plain["losses"][-1]
        reached = seconds_to(run, target)
        sooner.append(seconds_to(plain, target) / reached)
        fewer.append(plain["bits"][-1] / run["bits"][run["seconds"].index(reached)] if reached < math.inf else 0.0)
    about = _about(record)
    words = "synchronous whole messages' final loss"
    return [
        unjudged_row(sooner, TIME, quantity=f"times sooner at {words}", **about),
        unjudged_row(fewer, TIME, quantity=f"times fewer bits at {words}", **about),
    ]


def _real_rows(record: Record) -> list[Comparison]:
    if "compared" not in record:
        return []
    about: dict[str, Any] = _about(record)
    equal = exact_row(
        record["largest_difference"],
        0.0,
        record["largest_difference"] == 0 and record["compared"] > 1,
        quantity=f"real against virtual workers: largest difference of {record['compared']} losses",
        theorem="the same steps, bit for bit",
        **about,
    )
    predicted = STEP_S + float(np.mean(record["fenced_s"])) / record["rounds"][0][0]
    measured = record["raced_s"] / record["steps_done"]
    verdict, reason = near(measured, predicted)
    seconds = Comparison(
        quantity="seconds per iteration of real processes",
        measured=measured,
        interval=(measured, measured),
        bound=predicted,
        side="tight",
        verdict=verdict,
        reason=reason,
        theorem=f"Y + D/tau, D timed by itself; {record['scheduling']}; {record['method']}",
        decides=False,
        unit="s",
        **about,
    )
    return [equal, seconds]


# -- drawings ----------------------------------------------------------------------------------------------------
def _draw_losses(records: Sequence[Record]) -> Any:
    figure, axes = canvas(2, len(WORKLOADS), height=3.6)
    colours = dict(zip(METHODS, cycle(PALETTE), strict=False))
    for column, name in enumerate(WORKLOADS):
        for row, (key, label) in enumerate((("seconds", "simulated seconds"), ("bits", "bits of all workers"))):
            ax = axes[row, column]
            mine = [r for r in records if r["unit"].split(":")[1] == name]
            kinds = dict(zip(dict.fromkeys(r["unit"].split(":", 3)[2] for r in mine), cycle(LINES), strict=False))
            for record in mine:
                _, _, kind, method = record["unit"].split(":", 3)
                run = record["runs"][0]
                words = f"{method}, {kind if kind == 'adacomm' else f'tau = {kind}'}"
                ax.plot(run[key][1:], _gaps(name, run)[1:], kinds[kind], color=colours[method], label=words)
            ax.set(title=name, xlabel=label, ylabel="F - inf F", yscale="log", xscale="log" if row else "linear")
            ax.grid(alpha=0.3)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", fontsize=7)
    return figure


def _gaps(name: str, run: Record) -> np.ndarray:
    infimum = run["losses"][0] - WORKLOADS[name].constants().gap
    return np.maximum(np.array(run["losses"]) - infimum, 1e-12)


def _draw_bounds(study: JointStudy, records: Sequence[Record]) -> Any:
    figure, axes = canvas(1, len(WORKLOADS), height=3.6)
    for ax, name in zip(axes[0], WORKLOADS, strict=True):
        mine = [r for r in records if r["unit"].split(":")[1] == name]
        labels = []
        for i, record in enumerate(mine):
            row = study._bound_row(record, study.false_alarm)
            field = "local_gradient2" if "local_gradient2" in record["runs"][0] else "gradient2"
            values = np.array([run[field] for run in record["runs"]])
            bars = [[values.mean() - values.min()], [values.max() - values.mean()]]
            ax.errorbar([i], [values.mean()], yerr=bars, fmt="o", color=PALETTE[1], markersize=4, capsize=2)
            if row.bound is not None and math.isfinite(row.bound):
                ax.bar([i], [row.bound], color=PALETTE[0], alpha=0.35)
            labels.append(f"{row.operator}, {row.workload.split(', ')[1]}")
        ax.set(title=name, yscale="log", ylabel="mean of |grad F|^2")
        ax.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize=7)
        ax.grid(alpha=0.3, axis="y")
    return figure


def _draw_real(records: Sequence[Record]) -> Any:
    figure, axes = canvas(1, len(WORKLOADS), height=3.2)
    for ax, name in zip(axes[0], WORKLOADS, strict=True):
        mine = [r for r in records if r["unit"].split(":")[1] == name]
        for record, colour, line in zip(mine, cycle(PALETTE), cycle(LINES), strict=False):
            words = f"{_about(record)['operator']}, {_about(record)['workload'].split(', ')[1]}"
            ax.plot(record["seconds"][1:], _gaps(name, record)[1:], line, color=colour, label=words)
        ax.set(title=name, xlabel="seconds", ylabel="F - inf F", yscale="log")
        ax.grid(alpha=0.3)
        if mine:
            ax.legend(fontsize=8)
    return figure


PRESET = JointStudy()
