"""Layer by layer against the entire model: constants, errors and bits on real gradients, and training with both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import torch

from bounds.claims import Claim, Contractive, Unbiased
from operators import QSGD, TCDQ, Key, Operator, ScaledSign, TernGrad, TopK
from operators.combinators.scope import LayerWise

from ..averaging.simulated import SimulatedWorkers
from ..judging.comparisons import NO_RANGE, exact_row, unjudged_row
from ..judging.plotting import MARKS, chart, colour
from ..records.seeds import derived
from ..workloads import LeNet, SmallNetwork, Workload
from .runs.local_steps import Replica, training_rounds
from .runs.shared_model import shared_steps
from .runs.spec import TrainingRun
from .study import Comparison, Figure, Record, Study

NETWORKS: dict[str, Workload] = {"network": SmallNetwork(), "lenet": LeNet()}
OPERATORS: dict[str, Operator] = {
    "scaled_sign": ScaledSign(),
    "terngrad": TernGrad(),
    "qsgd:1": QSGD(levels=1),
    "qsgd:16": QSGD(levels=16),
    "topk:0.05": TopK(fraction=0.05),
    "tcdq:1": TCDQ(omega=1.0),
}
NEVER_WORSE = ("scaled_sign", "terngrad", "qsgd:1")  # layer by layer, on every vector, on average over draws
DISTORT, TRAIN = 0, 1  # folded into the key
COURSE = 5  # seed of the run that provides the gradients


@dataclass(frozen=True)
class LayerWiseStudy(Study):
    """Gradients of two networks at the steps ``at``, compressed with ``draws`` random draws (after Dutta et al. 2020).

    At equal settings the constant of a layer belongs to a smaller dimension, so the largest of them never exceeds that
    of the entire model.  For signs, ternary digits and one-level QSGD the error itself is never larger.  For top-k the
    opposite holds at equal numbers of kept entries.  Bits are recorded too: every layer has its own header.
    """

    at: tuple[int, ...] = (0, 50, 200)
    draws: int = 40
    steps: int = 200
    workers: int = 4
    seeds: tuple[int, ...] = (0, 1)

    name = "layerwise"
    description = "distortion, bits and training, compressed layer by layer against the entire model"
    minutes = 1

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield each gradient with each operator, then a training in each scope with each operator."""
        yield from (("distort", network, step, op) for network in NETWORKS for step in self.at for op in OPERATORS)
        yield from (("train", scope, op) for scope in ("layerwise", "entire") for op in OPERATORS)

    def measure_distort(self, network: str, step: int, operator: str) -> Record:
        """Compress the gradient of a network after some steps, in both scopes."""
        gradient, lengths = gradients(network, self.at, derived(self.seed, COURSE))[self.at.index(step)]
        return distortion(OPERATORS[operator], gradient, lengths, self.draws, self.seed)

    def measure_train(self, scope: str, operator: str) -> Record:
        """Train with an operator, layer by layer or on the entire model."""
        return {"loss": [self._final(OPERATORS[operator], scope == "layerwise", seed) for seed in self.seeds]}

    def _final(self, operator: Operator, layers: bool, seed: int) -> float:
        workload = NETWORKS["network"]
        run = TrainingRun(workload, 1, None, seed, steps=self.steps)
        replicas = [Replica.of(run, rank, stream=None) for rank in range(self.workers)]
        models, optimizers = [r.model for r in replicas], [r.optimizer for r in replicas]
        scoped = LayerWise.of(operator, models[0].parameters()) if layers else operator
        group = SimulatedWorkers(models, optimizers, schedule=1, operator=scoped, key=Key(seed).fold_in(TRAIN))
        for _ in training_rounds(group.engine, replicas):
            if run.is_over(0.0, group.total_steps):
                break
        return float(workload.objective(models[0]).detach())

    def judge_distort(self, record: Record, network: str, step: int, operator: str) -> list[Comparison]:
        """Judge what is proved about constants and single vectors."""
        name, where = operator, f"{network}, step {step}"
        about: dict[str, Any] = {"operator": name, "workload": where, "theorem": "dutta2020"}
        layers, entire = (np.array(record["nmse"][scope]) for scope in ("layerwise", "entire"))
        rows = []
        layerwise, whole = record["constants"]["layerwise"], record["constants"]["entire"]
        if layerwise is not None and whole is not None and name != "topk:0.05":
            quantity = "largest constant of a layer, at most d's"
            rows.append(exact_row(layerwise, whole, layerwise <= whole, quantity=quantity, **about))
        if name in NEVER_WORSE or name == "topk:0.05":
            better, worse = (layers, entire) if name in NEVER_WORSE else (entire, layers)
            excess = better - worse
            about["quantity"] = "error of the layers less that of the entire model, at most 0"
            if name not in NEVER_WORSE:
                about["quantity"] = "error of the entire model less that of the layers, at most 0"
            if excess.size == 1:
                rows.append(exact_row(float(excess[0]), 0.0, bool(excess[0] <= ROUNDING), **about))
            else:
                rows.append(unjudged_row(excess.tolist(), NO_RANGE, **about))
        else:
            reason = "neither scope is proved to be better on every vector"
            quantity = "error of the layers less that of the entire model"
            difference = np.repeat(layers - entire, 2) if layers.size == 1 else layers - entire
            rows.append(unjudged_row(difference.tolist(), reason, **{**about, "quantity": quantity}))
        return rows

    def judge_train(self, record: Record, scope: str, operator: str) -> list[Comparison]:
        """Compare the scopes without a verdict."""
        reason = "no theorem with known constants covers the network; recorded to compare the scopes"
        about = {"operator": operator, "workload": f"network, {scope}", "quantity": "final loss"}
        return [unjudged_row(record["loss"], reason, **about)]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return a figure of errors and bits in both scopes."""
        distortions = self.table(records, "distort")
        caption = (
            "Measured: squared error over squared norm and bits per coordinate, layer by layer (vertical) against the "
            "entire model (horizontal), one mark per gradient; below the diagonal the layers are better."
        )
        better = sum(np.mean(r["nmse"]["layerwise"]) < np.mean(r["nmse"]["entire"]) for _, r in distortions)
        finding = f"Layer by layer the error is smaller on {better} of {len(distortions)} gradients"
        return [Figure(lambda: _draw(distortions), caption, finding=finding)] if distortions else []


@lru_cache(maxsize=4)
def gradients(name: str, at: tuple[int, ...], seed: int = COURSE) -> list[tuple[np.ndarray, tuple[int, ...]]]:
    """Return (mini-batch gradient, lengths of the layers) of a network after each number of plain SGD steps."""
    workload = NETWORKS[name]
    model, collected = workload.model(), []

    def descend(gradients: list[torch.Tensor], keys: Sequence[Key]) -> torch.Tensor:
        (gradient,) = gradients
        collected.append(gradient.numpy())
        return workload.eta * gradient

    for _ in islice(shared_steps(workload, model, descend, workers=1, seed=seed), max(at) + 1):
        pass
    lengths = tuple(p.numel() for p in model.parameters())
    return [(collected[step], lengths) for step in at]


def distortion(operator: Operator, x: np.ndarray, lengths: tuple[int, ...], draws: int, seed: int = 0) -> Record:
    """Return the NMSE of every draw, mean bits per coordinate and claimed constants of both scopes."""
    layers = LayerWise(operator, lengths)
    entire = operator
    if isinstance(operator, TopK):  # as many entries as all layers keep
        kept = sum(max(1, int(np.ceil((operator.fraction or 0) * n))) for n in lengths)
        entire = TopK(k=kept)
    norm2 = float(np.square(x, dtype=np.float64).sum())
    nmse: dict[str, list[float]] = {}
    bits: dict[str, float] = {}
    for name, scoped in (("layerwise", layers), ("entire", entire)):
        keys = [Key(seed, step=i).fold_in(DISTORT) for i in range(draws if operator.randomness != "none" else 1)]
        messages = [scoped.encode(x, key=key) for key in keys]
        decoded = [scoped.decode(m, d=x.size, key=key).numpy() for m, key in zip(messages, keys, strict=True)]
        nmse[name] = [float(np.square(y.astype(np.float64) - x).sum()) / norm2 for y in decoded]
        bits[name] = float(np.mean([m.bits for m in messages])) / x.size
    constants = {"layerwise": _constant(layers.claim(x.size)), "entire": _constant(entire.claim(x.size))}
    return {"nmse": nmse, "bits": bits, "constants": constants, "d": x.size, "layers": len(lengths)}


def _constant(claim: Claim) -> float | None:
    if isinstance(claim, Unbiased):
        return float(claim.omega)
    return float(claim.alpha) if isinstance(claim, Contractive) else None


ROUNDING = 1e-6  # of errors relative to |x|^2, for scales sent as binary32


def _draw(records: Sequence[tuple[Any, Record]]) -> Any:
    fields = {"NMSE": "nmse", "bits per coordinate": "bits"}

    def draw(ax: Any, label: str) -> None:
        ends = []
        for i, name in enumerate(OPERATORS):
            of_operator = [r[fields[label]] for unit, r in records if unit.operator == name]
            points = [(float(np.mean(r["entire"])), float(np.mean(r["layerwise"]))) for r in of_operator]
            if points:
                across, up = zip(*points, strict=True)
                ax.plot(across, up, MARKS[i], color=colour(name), label=name, linestyle="none")
                ends += [*across, *up]
        span = (min(ends) / 1.3, max(ends) * 1.3)
        ax.plot(span, span, "-", color="#444444", linewidth=0.8)
        ax.set(xlabel=f"{label}, entire model", ylabel=f"{label}, layer by layer")

    return chart(list(fields), draw, height=4.5, title=lambda _: "", logs="xy", plain="xy")


PRESET = LayerWiseStudy()
