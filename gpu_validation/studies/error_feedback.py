"""Error feedback: where signs alone fail, how much is owed, and what small batches do with and without memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from operators import ErrorFeedback, Feedback, Key, Operator, ScaledSign, SignSGD, TopK
from operators.random import uniform

from ..averaging.simulated import SimulatedWorkers
from ..judging.comparisons import exact_row, mean_row, unjudged_row
from ..judging.plotting import LINES, PALETTE, Spread, chart, error_bars, plain_ticks, style, ticks_at
from ..workloads import LogisticRegression
from ..workloads.network import DIGITS
from .runs.local_steps import Replica, training_rounds
from .runs.spec import MESSAGES, TrainingRun
from .study import Comparison, Figure, Record, Study

# -- counterexamples -------------------------------------------------------------------------------------------------

Method = Operator | Feedback | None


def slope(method: Method) -> Record:
    """Return x/4 on [-1, 1] with the stochastic gradient 4 one time in four and else -1: its sign is mostly wrong."""

    def gradient(x: torch.Tensor, t: int) -> torch.Tensor:
        return torch.tensor([4.0 if uniform(Key(1), 1, start=t)[0] < 0.25 else -1.0])

    path = _walk(torch.zeros(1, dtype=torch.float64), gradient, method, 3000, lambda t: 0.01, box=1.0)
    values = path[:, 0] / 4
    return {"values": values[::30].tolist(), "final": values[-1000:].mean().item(), "least": -0.25}


def kinks(method: Method) -> Record:
    """Return ``|x1 + x2|/2 + |x1 - x2|`` from (1, 1.5) with subgradients, sign(0) = +1."""

    def gradient(x: torch.Tensor, t: int) -> torch.Tensor:
        plus, minus = (1.0 if s >= 0 else -1.0 for s in (x[0] + x[1], x[0] - x[1]))
        return torch.tensor([plus / 2 + minus, plus / 2 - minus])

    start = torch.tensor([1.0, 1.5], dtype=torch.float64)
    path = _walk(start, gradient, method, 3000, lambda t: 0.5 / (t + 1) ** 0.75)
    values = (path[:, 0] + path[:, 1]).abs() / 2 + (path[:, 0] - path[:, 1]).abs()
    return {"values": values[::30].tolist(), "final": values[-100:].min().item(), "least": 0.0}


PROBLEMS: dict[str, Callable[[Method], Record]] = {"slope": slope, "kinks": kinks}


def _walk(
    x: torch.Tensor,
    gradient: Callable[[torch.Tensor, int], torch.Tensor],
    method: Method,
    steps: int,
    rate: Callable[[int], float],
    box: float = math.inf,
) -> torch.Tensor:
    state, path = method.init(x.numel()) if isinstance(method, Feedback) else None, []
    for t in range(steps):
        move, key = rate(t) * gradient(x, t), Key(0, step=t)
        if isinstance(method, Feedback):
            assert state is not None
            state, message = method.encode(state, move, key=key)
            x = x - method.decode({}, message, d=x.numel())[1].double()
        elif method is not None:
            x = x - rate(t) * method(move, key=key).double()
        x = x.clamp(-box, box)
        path.append(x)
    return torch.stack(path)


# -- the study -------------------------------------------------------------------------------------------------------

METHODS: dict[str, Method] = {
    "sgd": None,
    "signsgd": SignSGD(),
    "scaled_sign": ScaledSign(),
    "ef(scaled_sign)": ErrorFeedback(ScaledSign()),
    "topk:0.01": TopK(fraction=0.01),
    "ef(topk:0.01)": ErrorFeedback(TopK(fraction=0.01)),
}
SWEPT = tuple(name for name in METHODS if name != "signsgd")  # whose signs have no scale, so no eta either
ETAS = (0.05, 0.2, 0.8)
CONSERVED = 1e-4  # 400 steps of magnitude below 1, each rounded to binary32


@dataclass(frozen=True)
class ErrorFeedbackStudy(Study):
    """Counterexamples of Karimireddy et al. (2019), and logistic regression on the digits at equal samples seen.

    eta is chosen by the final loss of the tuning seeds and reported on the others.
    """

    batches: tuple[int, ...] = (1, 8, 64)
    samples: int = 6400
    tuning: tuple[int, ...] = (0,)
    seeds: tuple[int, ...] = (10, 11, 12)
    workers: int = 4
    steps: int = 400

    name = "error-feedback"
    description = "counterexamples to signs without memory, the memory's bound, and a sweep of batch sizes"
    minutes = 4

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the counterexamples, the memories and the batch sizes, each with its methods."""
        yield from (("counter", problem, m) for problem in PROBLEMS for m in ("signsgd", "ef(scaled_sign)"))
        yield from (("memory", name) for name, method in METHODS.items() if isinstance(method, Feedback))
        yield from (("batch", name, size) for size in self.batches for name in SWEPT)

    def measure_counter(self, problem: str, method: str) -> Record:
        """Follow a method on a counterexample."""
        return PROBLEMS[problem](METHODS[method])

    def measure_memory(self, method: str) -> Record:
        """Measure what the memory of a method holds."""
        workload, feedback = LogisticRegression(batch=8), METHODS[method]
        assert isinstance(feedback, Feedback)
        runs = [descend(workload, feedback, self.workers, workload.eta, self.steps, seed) for seed in self.seeds]
        d = sum(p.numel() for p in workload.model().parameters())
        constants = workload.constants()
        return {
            "alpha": feedback.operator.claim(d).alpha,  # type: ignore[union-attr]  # both are contractive
            "eta": workload.eta,
            "G": largest_gradient(workload),
            "L": constants.L,
            "gap": constants.gap,
            "K": self.steps,
            "memory2": max(run["memory2"] for run in runs),
            "gradient_norm2": [run["gradient_norm2"] for run in runs],
            "conserved": max(run["conserved"] for run in runs),
        }

    def measure_batch(self, method: str, size: int) -> Record:
        """Tune a method at a batch size, and train."""
        workload = LogisticRegression(source=DIGITS, batch=size)
        steps = self.samples // size

        def final(eta: float, seed: int) -> Record:
            return descend(workload, METHODS[method], 1, eta, steps, seed)

        tuned = {eta: float(np.mean([final(eta, s)["loss"][-1] for s in self.tuning])) for eta in ETAS}
        eta = min(tuned, key=lambda e: tuned[e] if math.isfinite(tuned[e]) else math.inf)
        runs = [final(eta, seed) for seed in self.seeds]
        return {
            "eta": eta,
            "at_the_edge": eta in (ETAS[0], ETAS[-1]),
            "loss": [run["loss"][-1] for run in runs],
            "accuracy": [run["accuracy"] for run in runs],
            "bits_a_step": runs[0]["bits"] / steps,
            "curve": runs[0]["loss"],
        }

    def judge_counter(self, record: Record, problem: str, method: str) -> list[Comparison]:
        """Judge the end of the path of signs without memory."""
        about: dict[str, Any] = {"operator": method, "workload": problem, "quantity": "objective at the end"}
        if (problem, method) == ("kinks", "signsgd"):
            about["theorem"] = "x1 + x2 stays 2.5, so f >= 1.25"
            return [exact_row(record["final"], 1.25, record["final"] >= 1.25, "lower", **about)]
        return [unjudged_row([record["final"]] * 2, f"no bound; the infimum is {record['least']:g}", **about)]

    def judge_memory(self, record: Record, method: str) -> list[Comparison]:
        """Judge the memory against its bound, and the average gradient against the theorem."""
        from bounds.theorems import ef_memory, ef_sgd

        arguments = {name: record[name] for name in ("alpha", "eta", "G")}
        about: dict[str, Any] = {"operator": method, "workload": "logistic regression, digits"}
        memory = ef_memory(**arguments)
        bound = ef_sgd(**arguments, gap=record["gap"], K=record["K"], L=record["L"])
        memory2, largest = record["memory2"], record["conserved"]
        words = "largest squared memory of any worker and step"
        owed = exact_row(memory2, memory, memory2 <= memory, "upper", quantity=words, theorem=ef_memory.name, **about)
        words, level = "squared gradient norm, average over steps", self.false_alarm / 10
        norms = record["gradient_norm2"]
        gradient = mean_row(norms, bound, "upper", level=level, quantity=words, theorem=ef_sgd.name, **about)
        words = "sum of messages plus memory minus sum of steps, largest entry"
        about |= {"quantity": words, "theorem": "conservation, up to binary32 rounding"}
        conserved = exact_row(largest, 0.0, largest < CONSERVED, **about)
        return [owed, gradient, conserved]

    def judge_batch(self, record: Record, method: str, size: int) -> list[Comparison]:
        """Compare the methods without a verdict."""
        about: dict[str, Any] = {"operator": method, "workload": f"digits, batch {size}, eta {record['eta']:g}"}
        reason = "a comparison of methods; eta is tuned, and no theorem with known constants covers it"
        return [
            unjudged_row(record["loss"], reason, quantity="final loss", **about),
            unjudged_row(record["accuracy"], reason, quantity="held-out accuracy", **about),
        ]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return paths of the counterexamples; final loss against batch size."""
        counters, swept = self.table(records, "counter"), self.table(records, "batch")
        paths = "Measured: objective along the way on the two counterexamples; the kinks on a logarithmic scale."
        sizes = (
            f"Measured: training loss and held-out accuracy after {self.samples} samples against the batch size, "
            f"logistic regression on the digits, mean and range of {len(self.seeds)} seeds, eta tuned on others."
        )
        accuracy = {unit.method: float(np.mean(r["accuracy"])) for unit, r in swept if unit.size == 1}
        ends = [accuracy[name] for name in ("scaled_sign", "ef(scaled_sign)") if name in accuracy]
        words = "One example a step: feedback raises scaled sign's accuracy from {:.2f} to {:.2f}"
        drawn = [Figure(lambda: _draw_counters(counters), paths)] if counters else []
        finding = words.format(*ends) if ends[1:] else ""
        return [*drawn, Figure(lambda: _draw_sweep(swept), sizes, finding=finding)] if swept else drawn


# -- measurements ------------------------------------------------------------------------------------------------
def descend(workload: LogisticRegression, method: Method, workers: int, eta: float, steps: int, seed: int) -> Record:
    """Return synchronous SGD, each worker's step compressed: losses, average ``|grad F|^2``, bits, and what the
    memories hold.
    """
    run = TrainingRun(replace(workload, eta=eta), 1, None, seed, steps=steps)
    replicas = [Replica.of(run, rank, stream=None) for rank in range(workers)]
    models, optimizers = [r.model for r in replicas], [r.optimizer for r in replicas]
    group = SimulatedWorkers(models, optimizers, schedule=1, operator=method, key=Key(seed).fold_in(MESSAGES)).engine
    curve, norms, bits, memory2 = [], [], 0, 0.0
    uncompressed = np.zeros_like(group.workers[0].anchor.numpy())  # the mean of all steps
    start = group.workers[0].anchor.numpy().copy()

    def before_step() -> None:
        if workers > 1:
            norms.append(workload.evaluate(models[0])[1])

    def after_step() -> None:
        step = np.mean([worker.delta() for worker in group.workers], axis=0, dtype=np.float64)
        np.add(uncompressed, step, out=uncompressed, casting="same_kind")

    for step, (account, *_) in enumerate(
        training_rounds(group, replicas, before_step=before_step, after_step=after_step)
    ):
        bits += sum(account.bits)
        residuals = [w.sender.state["residual"].double() for w in group.workers if "residual" in (w.sender.state or {})]
        memory2 = max([memory2, *(float(e @ e) for e in residuals)])
        if step % max(1, steps // 40) == 0 or step == steps - 1:
            curve.append(float(workload.objective(models[0]).detach()))
        if step == steps - 1:
            break
    arrived = group.workers[0].anchor.numpy() - start
    left = np.mean([e.numpy() for e in residuals], axis=0) if residuals else 0.0
    return {
        "loss": curve,
        "accuracy": workload.accuracy(models[0]),
        "gradient_norm2": float(np.mean(norms)) if norms else math.nan,
        "bits": bits,
        "memory2": memory2,
        "conserved": float(np.abs(arrived + left - uncompressed).max()),
    }


def largest_gradient(workload: LogisticRegression) -> float:
    """Return G: no sample's gradient is longer, wherever the parameters are; ``|p - y|^2`` is at most 2."""
    return math.sqrt(2 * float(np.square(workload.features()).sum(axis=1).max()))


# -- drawings ----------------------------------------------------------------------------------------------------
def _draw_counters(records: Sequence[tuple[Any, Record]]) -> Any:
    def draw(ax: Any, problem: str) -> None:
        by_method = {unit.method: r for unit, r in records if unit.problem == problem}
        for i, (method, record) in enumerate(by_method.items()):
            ax.plot(30 * np.arange(len(record["values"])), record["values"], LINES[i], color=PALETTE[i], label=method)
        ax.set(yscale="log" if problem == "kinks" else "linear")
        if by_method:
            ax.legend()

    return chart(list(PROBLEMS), draw, height=3.2, x="step", ylabel="objective", legend=False)


def _draw_sweep(records: Sequence[tuple[Any, Record]]) -> Any:
    fields = {"training loss": "loss", "held-out accuracy": "accuracy"}

    def draw(ax: Any, label: str) -> None:
        for i, method in enumerate(SWEPT):
            of_method = [(unit.size, Spread.of(r[fields[label]])) for unit, r in records if unit.method == method]
            if of_method:
                sizes, spreads = zip(*of_method, strict=True)
                error_bars(ax, sizes, spreads, label=method, capsize=2, **style(i))
        ax.set(xscale="log", yscale="log" if label == "training loss" else "linear", ylabel=label)
        ticks_at(ax, sorted({unit.size for unit, _ in records}))
        if label == "training loss":
            plain_ticks(ax.yaxis)

    return chart(list(fields), draw, height=3.6, title=lambda _: "", x="batch size")


PRESET = ErrorFeedbackStudy()
