"""Water-filling against one omega for all parameters: errors at equal bits, and losses of trainings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from common import lines, panels, points, recorded
from scipy.special import stdtrit

from gpu_validation.judging.comparisons import exact_row, unjudged_row
from gpu_validation.judging.plotting import MARKS, PALETTE
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure

RECORD = "bits_for_layers.jsonl"
EQUAL = 5e-3  # relative difference of bits: the search ends there
NEAR = 0.12  # of the law, which is for long Gaussian layers; gradients have other tails
TARGET = 1.3
NAMES = {"mlp": "MLP", "cnn": "CNN", "resnet20": "ResNet-20"}
RULES = {"filled": "water-filling", "one": "one omega"}
UNCLAIMED = "no theorem compares losses"


def errors() -> list[dict[str, Any]]:
    """The records of errors."""
    return [row for row in lines(RECORD) if row["record"] == "error"]


def differences(training: str, rule: str) -> list[float]:
    """Mean loss of a rule minus that of uncompressed training, by seed; only seeds with all three runs."""
    found = [row for row in lines(RECORD) if row["record"] == "loss" and row["training"] == training]
    losses = {(row["rule"], row["seed"]): row["mean_loss"] for row in found}
    seeds = [seed for name, seed in losses if name == "one" and losses[name, seed] is not None]
    return [losses[rule, seed] - losses["none", seed] for seed in sorted(seeds)]


def trainings() -> list[str]:
    """All trainings, in order."""
    return list(dict.fromkeys(row["training"] for row in lines(RECORD) if row["record"] == "loss"))


def half_width(values: Sequence[float]) -> float:
    """Half of Student's 95 % interval."""
    return float(stdtrit(len(values) - 1, 0.975)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def draw() -> Any:
    """Left the gain against that of the law, right what the losses are above those without compression."""
    figure, (left, right) = panels(2, columns=2, height=4)
    rates = sorted({round(2 * row["bits"]) / 2 for row in errors()})
    for i, rate in enumerate(rates):
        rows = [row for row in errors() if round(2 * row["bits"]) / 2 == rate]
        points(left, i, *([row[name] for row in rows] for name in ("law", "gain")), f"{rate:g} bits, measured")
    ends = [1.0, 12.0]
    left.plot(ends, ends, color=PALETTE[7], linewidth=0.8, label="the law, theory")
    left.set(xscale="log", yscale="log", xlabel="gain of the law", ylabel="gain in NMSE at equal bits")
    left.legend()
    for i, (rule, words) in enumerate(RULES.items()):
        for j, training in enumerate(trainings()):
            values = differences(training, rule)
            style = {"color": PALETTE[i], "capsize": 3, "label": words if j == 0 else None}
            right.errorbar(j + 0.2 * i, np.mean(values), yerr=half_width(values), fmt=MARKS[i], **style)
    right.axhline(0, color=PALETTE[7], linewidth=0.8)
    names = [NAMES.get(training, training) for training in trainings()]
    right.set_xticks([j + 0.1 for j in range(len(names))], names)
    right.set(ylabel="mean loss above uncompressed")
    right.legend()
    return figure


def figures() -> list[Figure]:
    """Errors and losses."""
    head = next(row for row in lines(RECORD) if "commit" in row)
    counts = ", ".join(f"{name}: {len(differences(name, 'one'))} seeds" for name in trainings())
    caption = (
        "Left: the NMSE of TCDQ with one omega for all parameters over that with water-filling, measured on ten "
        "gradients at equal bits, against what the law predicts for Gaussian layers. Right: mean loss over "
        f"{head['steps']} steps of {head['workers']} simulated workers minus that of uncompressed training, measured, "
        f"with Student's 95 % intervals ({counts}); both rules send the same bits. "
    )
    most = max(row["gain"] for row in errors())
    finding = f"Water-filling across layers cuts the NMSE up to {most:.1f}-fold at equal bits"
    return [recorded(draw, caption, RECORD, finding)]


def check() -> list[Comparison]:
    """Bits are equal, and gains near the law; losses are not judged."""
    comparisons = []
    for row in errors():
        about = {"operator": "tcdq", "workload": f"{row['gradient']}, {row['bits']:.1f} bits"}
        is_equal = abs(row["bits_one"] - row["bits"]) <= EQUAL * row["bits"]
        comparisons.append(exact_row(row["bits_one"], row["bits"], is_equal, quantity="bits", **about))
        is_near = abs(row["gain"] - row["law"]) <= NEAR * row["law"]
        comparisons.append(exact_row(row["gain"], row["law"], is_near, quantity="gain in NMSE", **about))
    for training in trainings():
        values = [a - b for a, b in zip(*(differences(training, rule) for rule in RULES), strict=True)]
        about = {"operator": "tcdq", "workload": training, "quantity": "mean loss, water-filling minus one omega"}
        comparisons.append(unjudged_row(values, UNCLAIMED, **about))
    return comparisons
