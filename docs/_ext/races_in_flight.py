"""Averages in flight against waiting: tables and counts from the committed record."""

from __future__ import annotations

import math
import statistics

import reproduced
from markdown_text import table

from gpu_validation.verdicts.verdict import Comparison

SHOWN = ("fixed tau + outer", "delayed", "eager", "corrected", "corrected + outer")
FIXED, ADACOMM = "the best fixed tau", "tuned AdaComm"


def flight_table(target: str) -> str:
    """One row for every task and D/Y: measured ratio (its range); the predicted one.

    ``target`` is the share of the loss above the floor, 0.5 or 0.125.
    """
    rows = _rows(target, FIXED)
    lines = []
    for problem in dict.fromkeys(row.workload for row in rows):
        of_problem = {row.operator: row for row in rows if row.workload == problem}
        lines.append([problem, *(_cell(of_problem[method]) for method in SHOWN)])
    return table(["problem", *SHOWN], lines)


def headline_table() -> str:
    """The goals' cell on the imposed clock and in real seconds."""
    lines = []
    for real, words in ((False, "imposed clock"), (True, "real seconds, shaped network")):
        for than in (FIXED, ADACOMM):
            for row in _rows("0.125", than, real=real):
                if (row.workload, row.operator) == ("digits, D/Y = 10", "corrected + outer"):
                    low, high = row.interval
                    lines.append([words, than, f"{row.measured:.2f} ({low:.2f} to {high:.2f})"])
    return table(["clock", "baseline", "corrected + outer, times faster"], lines)


def tau_table() -> str:
    """The fixed tau that was best in hindsight by problem and D/Y, and how much faster an outer step in flight came."""
    found: dict[str, dict[str, str]] = {}
    for target in ("0.5", "0.125"):
        for row in _rows(target, FIXED):
            if row.operator == "corrected + outer":
                low, high = row.interval
                cell = f"{row.facts['baseline_tau']}; {row.measured:.2f} ({low:.2f} to {high:.2f})"
                found.setdefault(row.workload, {})[target] = cell
    header = ["problem", "to half of the loss", "to an eighth"]
    return table(header, [[problem, of["0.5"], of["0.125"]] for problem, of in found.items()])


def flight_agreement(target: str) -> str:
    """How far the predicted ratios to a target are from the measured ones, and which of them are on the right side."""
    compared = [(row, row.facts["predicted"]) for row in _rows(target, FIXED) if "predicted" in row.facts]
    apart = [max(said / row.measured, row.measured / said) for row, said in compared if row.measured and said]
    decided = [(row.interval[0] > 1, said > 1) for row, said in compared if not row.interval[0] <= 1 <= row.interval[1]]
    paying, others = ([said for pays, said in decided if pays is whether] for whether in (True, False))
    quantiles = statistics.quantiles(apart, n=10)
    return (
        f"of {len(compared)} ratios, {len(compared) - len(apart)} of them of methods that did not arrive, the "
        f"prediction is off by a factor of {statistics.median(apart):.2f} in the median and {quantiles[-1]:.2f} at the "
        f"90th percentile. Of {len(paying)} methods that pay on all seeds it foresees {sum(paying)}, of {len(others)} "
        f"that lose on all seeds {len(others) - sum(others)}"
    )


def _rows(target: str, than: str, *, real: bool = False) -> list[Comparison]:
    """The ratios to a target, over a baseline, on the imposed clock or in real seconds."""
    return [
        row
        for row in reproduced.script("overlap").check()
        if row.facts.get("target") == float(target)
        and ("baseline_tau" in row.facts) == (than == FIXED)
        and ("delay_ratio" in row.facts) == real
    ]


def _cell(row: Comparison) -> str:
    low, high = row.interval
    said = f"{row.facts['predicted']:.2f}" if "predicted" in row.facts else "?"
    return f"{row.measured:.2f} ({low:.2f} to {high:.2f}); {said}" if math.isfinite(row.measured) else "no arrival"
