"""Global top-k: bits up the tree, mass lost and kept by the two residual rules, its contraction, and training."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch

from operators import ErrorFeedback, GlobalTopK, Key, Mean, TopK
from operators.random import normal

from ..judging.comparisons import exact_row, out_of_scope, unjudged_row
from ..judging.plotting import LINES, PALETTE, canvas, plain_ticks, ticks_at
from ..workloads import SmallNetwork
from .runs.shared_model import Merge, shared_steps
from .study import Comparison, Figure, Record, Study

METHODS = ("uncompressed", "topk+ef", "gtopk:conserving", "gtopk:published")
INPUT, SEND = 0, 1  # folds
KEPT = 1e-4  # rounding of sums of binary32 numbers, absolute, for entries of magnitude up to about 10


@dataclass(frozen=True)
class GlobalTopKStudy(Study):
    """After Shi et al. (2019): heavy-tailed vectors up the tree, and a small network on the digits."""

    crowds: tuple[int, ...] = (2, 4, 8, 16)
    d: int = 10_000
    fraction: float = 0.01
    rounds: int = 20
    workers: int = 8
    steps: int = 200
    seeds: tuple[int, ...] = (0, 1, 2)

    name = "gtopk"
    description = "global top-k: bits against gathering everything, mass, contraction, training under both rules"
    minutes = 1

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the tree of each rule and crowd, then a training of each method."""
        yield from (("tree", rule, n) for rule in ("conserving", "published") for n in self.crowds)
        yield from (("train", method) for method in METHODS)

    def measure_tree(self, rule: str, workers: int) -> Record:
        """Send vectors up the tree."""
        return tree(rule, workers, self.d, self.fraction, self.rounds, self.seed)

    def measure_train(self, method: str) -> Record:
        """Train with a method."""
        runs = [self._train(method, seed) for seed in self.seeds]
        return {"loss": [run[-1] for run in runs], "curve": runs[0]}

    def _train(self, method: str, seed: int) -> list[float]:
        """Return losses every tenth step of synchronous training; what is sent is eta times the gradient."""
        workload, curve = SmallNetwork(), []
        model = workload.model()
        merge = self._merging(method, sum(p.numel() for p in model.parameters()), workload.eta)
        steps = shared_steps(workload, model, merge, workers=self.workers, seed=seed, stream=INPUT)
        for done in islice(steps, self.steps):
            if done % 10 == 0:
                curve.append(float(workload.objective(model).detach()))
        return curve

    def _merging(self, method: str, d: int, eta: float) -> Merge:
        """Return how a method makes one step of the workers' gradients; it keeps their memories."""
        if method == "topk+ef":
            feedback = ErrorFeedback(TopK(fraction=self.fraction))
            states = [feedback.init(d) for _ in range(self.workers)]

            def with_memory(gradients: list[torch.Tensor], keys: Sequence[Key]) -> torch.Tensor:
                sent = []
                for i, (gradient, key) in enumerate(zip(gradients, keys, strict=True)):
                    states[i], message = feedback.encode(states[i], eta * gradient, key=key.fold_in(SEND))
                    sent.append(feedback.decode({}, message, d=d)[1])
                return torch.stack(sent).mean(dim=0)

            return with_memory
        if method == "uncompressed":
            return lambda gradients, keys: Mean().round([eta * gradient for gradient in gradients], keys=keys)
        merger = _merger(method.removeprefix("gtopk:"), self.fraction)
        residuals = [torch.zeros(d) for _ in range(self.workers)]

        def up_the_tree(gradients: list[torch.Tensor], keys: Sequence[Key]) -> torch.Tensor:
            steps = [eta * gradient for gradient in gradients]
            residuals[:], total = merger.exchange(residuals, steps, keys=[k.fold_in(SEND) for k in keys])
            return total / self.workers

        return up_the_tree

    def judge_tree(self, record: Record, rule: str, workers: int) -> list[Comparison]:
        """Judge conservation and the number of entries exactly; contraction is an assumption that is only looked at."""
        about: dict[str, Any] = {"operator": f"gtopk, {rule}", "workload": f"{workers} workers"}
        missing = record["missing"]
        nonzero, most, quantity = record["nonzero"], record["kept"], "entries of the result, at most k"
        rows = [exact_row(nonzero, most, nonzero <= most, quantity=quantity, **about)]
        if rule == "conserving":
            quantity = "largest entry of inputs less results less residuals"
            rows.append(
                exact_row(missing, 0.0, missing < KEPT, quantity=quantity, theorem="conservation of mass", **about)
            )
        else:
            reason = "the published rule promises no conservation; entries dropped inside the final mask are gone"
            rows.append(unjudged_row([record["lost_share"]] * 2, reason, quantity="share of the mass lost", **about))
        ratio = max(record["ratio"])
        about |= {"quantity": "largest error over energy of the sum, a round"}
        about |= {"theorem": "the assumption of gtopk_sgd, looked at"}
        holds = ratio <= record["contraction"]
        row = exact_row(ratio, record["contraction"], holds, "upper", **about)
        return [*rows, row if holds else out_of_scope(row, "the assumption does not hold on these vectors")]

    def judge_train(self, record: Record, method: str) -> list[Comparison]:
        """Compare the rules without a verdict."""
        reason = "no theorem with known constants covers the network; recorded to compare the rules"
        about = {"operator": method, "workload": "network, digits", "quantity": "final loss"}
        return [unjudged_row(record["loss"], reason, **about)]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return bits of a worker against the number of workers, and losses."""
        trees = [r for _, r in self.table(records, "tree", rule="conserving")]
        runs = {unit.method: r for unit, r in self.table(records, "train")}
        caption = (
            f"Measured. Left: bits that the busiest worker sends and receives in a round, d = {self.d}, "
            f"{self.fraction:.0%} kept, up the tree against gathering all messages. Right: training loss, "
            f"{self.workers} workers, first seed."
        )
        ratios = [r["gather_bits"] / r["tree_bits"] for r in trees]
        finding = f"Up the tree the busiest worker moves up to {max(ratios):.1f} times fewer bits" if ratios else ""
        return [Figure(lambda: _draw(trees, runs), caption, finding=finding)]


def _merger(rule: str, fraction: float) -> GlobalTopK:
    return GlobalTopK(fraction=fraction, rule="published" if rule == "published" else "conserving")


def tree(rule: str, workers: int, d: int, fraction: float, rounds: int, seed: int = 0) -> Record:
    """Return rounds with memory on heavy-tailed vectors: bits, what is lost, and the error relative to the sum's
    energy.
    """
    merger = _merger(rule, fraction)
    residuals = [torch.zeros(d) for _ in range(workers)]
    arrived, exact = np.zeros(d), np.zeros(d)
    ratios, single = [], 0.0
    for step in range(rounds):
        keys = [Key(seed, step=step, rank=i) for i in range(workers)]
        x = [torch.from_numpy(_heavy(key, d)) for key in keys]
        before = np.sum([r.numpy() + v.numpy() for r, v in zip(residuals, x, strict=True)], axis=0, dtype=np.float64)
        residuals, result = merger.exchange(residuals, x, keys=[k.fold_in(SEND) for k in keys])
        arrived += result.numpy()
        exact += np.sum([v.numpy() for v in x], axis=0, dtype=np.float64)
        ratios.append(float(np.square(before - result.numpy()).sum() / np.square(before).sum()))
        single = max(single, max(merger.uplink.encode(v, key=keys[0]).bits for v in x))
    owed = np.sum([r.numpy() for r in residuals], axis=0, dtype=np.float64)
    return {
        "workers": workers,
        "missing": np.abs(arrived + owed - exact).max().item(),
        "lost_share": float(np.abs(exact - arrived - owed).sum() / np.abs(exact).sum()),
        "ratio": ratios,
        "contraction": 1 - math.ceil(fraction * d) / d,
        "tree_bits": 2 * math.ceil(math.log2(workers)) * single,
        "gather_bits": workers * single,
        "nonzero": int((result != 0).sum()),
        "kept": math.ceil(fraction * d),
    }


def _heavy(key: Key, d: int) -> np.ndarray:
    """Return products of Gaussian numbers: tails heavier than a gradient's."""
    z = normal(key.fold_in(INPUT), 2 * d)
    return (z[:d] * np.abs(z[d:])).astype(np.float32)


def _draw(trees: Sequence[Record], runs: dict[str, Record]) -> Any:
    figure, axes = canvas(1, 2, height=3.6)
    bits, losses = axes[0]
    crowd = [r["workers"] for r in trees]
    for i, (field, label) in enumerate((("tree_bits", "global top-k"), ("gather_bits", "all messages to all"))):
        if trees:
            bits.plot(crowd, [r[field] for r in trees], LINES[i], color=PALETTE[i], marker="o", label=label)
    bits.set(xlabel="workers", ylabel="bits of a worker and round", xscale="log", yscale="log")
    ticks_at(bits, crowd)
    plain_ticks(bits.yaxis)
    for i, (method, record) in enumerate(runs.items()):
        steps = 10 * np.arange(1, len(record["curve"]) + 1)
        losses.plot(steps, record["curve"], LINES[i % len(LINES)], color=PALETTE[i], label=method)
    losses.set(xlabel="step", ylabel="training loss", yscale="log")
    plain_ticks(losses.yaxis)
    for ax in axes[0]:
        if ax.lines:
            ax.legend()
    return figure


PRESET = GlobalTopKStudy()
