"""How far every bound is from what was measured."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from statistics import median
from typing import Any

from common import STUDIES, lines, panels, study_check

from bounds import all_bounds
from gpu_validation.judging.plotting import MARKS, PALETTE
from gpu_validation.judging.verdict import Comparison, Verdict
from gpu_validation.studies.study import Figure

QUICK = "quick_comparisons.jsonl"
CLAIMS = ("Unbiased claim", "StrictlyContractive claim", "Operator.bits")  # what operators say of themselves
DECIDED = (Verdict.HOLDS, Verdict.VIOLATED, Verdict.INCONCLUSIVE)


@cache
def factors() -> dict[str, list[tuple[str, float]]]:
    """Bound -> (preset, looseness) of every comparison with it that was decided."""
    names = {*all_bounds(), *CLAIMS}
    found: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for row in lines(QUICK):
        if row["theorem"] in names and row["looseness"] and row["verdict"] in map(str, DECIDED):
            found[row["theorem"]].append(("quick", row["looseness"]))
    for path in sorted(STUDIES.glob("*.jsonl")):
        for row in study_check(path.stem):
            if row.theorem in names and row.looseness and row.verdict in DECIDED and row.side != "tight":
                found[row.theorem].append((path.stem, row.looseness))
    return dict(sorted(found.items(), key=lambda item: -max(factor for _, factor in item[1])))


def draw() -> Any:
    """One row a theorem."""
    found = factors()
    presets = sorted({preset for points in found.values() for preset, _ in points})
    figure, (ax,) = panels(1, columns=1, height=1.2 + 0.3 * len(found))
    for i, preset in enumerate(presets):
        points = [(k, f) for k, own in enumerate(found.values()) for name, f in own if name == preset]
        style = {"marker": MARKS[i % len(MARKS)], "color": PALETTE[i % len(PALETTE)]}
        ax.scatter([f for _, f in points], [k for k, _ in points], s=18, alpha=0.6, label=preset, **style)
    ax.axvline(1, color=PALETTE[6], linewidth=1)
    ax.set(xscale="log", xlabel="looseness: 1 is reached")
    ax.set_yticks(range(len(found)), list(found))
    ax.legend(loc="upper right")
    return figure


def figures() -> list[Figure]:
    """The one figure."""
    caption = (
        "Measured against theory: bound / measured for upper bounds, measured / bound for lower ones, one mark a "
        "comparison of the recorded runs."
    )
    middle = median(factor for points in factors().values() for _, factor in points)
    finding = f"Half of the comparisons lie within a factor of {middle:.2g} of their bound"
    return [Figure(draw, caption, f"Records: docs/data/{QUICK} and docs/data/studies.", finding=finding)]


def check() -> list[Comparison]:
    """Nothing of its own: every study's rows are judged by its own figure."""
    return []
