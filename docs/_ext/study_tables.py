"""Tables of the studies' rows, from committed records: tuned speed-ups, averages in flight, and the pilot's skill."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from markdown_text import table
from reproduced import script

from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.prediction import CHEAP, GUESS, RULES, TRIED, Cell, by_place, cells


def ratio(row: Comparison) -> str:
    """What was measured, with its interval."""
    return f"{row.measured:.2f} ({row.interval[0]:.2f} to {row.interval[1]:.2f})"


# -- tuned speed-ups over synchronous SGD -----------------------------------------------------------------------
ADAPTIVE = (("gamma", "derived"), ("basic", "published"))
COLUMNS = (("strongest fixed",), *ADAPTIVE)


def speed_up_table() -> str:
    """One row for a loss in the transient and one for a loss near the floor of every problem, then real seconds."""
    rows = script("speed-up").check()
    lines = []
    for problem, of_problem in _by_problem(row for row in rows if row.facts.keys() == {"target_loss"}).items():
        losses = list(dict.fromkeys(row.facts["target_loss"] for row in of_problem))
        for where, loss in (("transient", losses[1]), ("near the floor", losses[-1])):
            at_target = [row for row in of_problem if row.facts["target_loss"] == loss]
            lines.append([problem, f"{where}, {loss:g}", *(_speed_up(at_target, of) for of in COLUMNS)])
    for problem, of_problem in _by_problem(row for row in rows if "real_seconds_per_step" in row.facts).items():
        columns = (("tau = 5",), *ADAPTIVE)
        lines.append([f"{problem}, tau = 5", "", *(_speed_up(of_problem, of) for of in columns)])
    return table(["problem", "target", "strongest fixed tau", "AdaComm with saturation", "AdaComm, basic"], lines)


def _by_problem(rows: Iterable[Comparison]) -> dict[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for row in rows:
        found.setdefault(row.workload, []).append(row)
    return found


def _speed_up(rows: list[Comparison], methods: tuple[str, ...]) -> str:
    for row in rows:
        if row.operator in methods:
            name = f", {row.operator} exponent" if row.operator in ("derived", "published") else ""
            return ratio(row) + name
    return ""


# -- averages in flight against waiting -------------------------------------------------------------------------
SHOWN = ("fixed tau + outer", "delayed", "eager", "corrected", "corrected + outer")
FIXED, ADACOMM = "the best fixed tau", "tuned AdaComm"


def flight_table(target: str) -> str:
    """One row for every task and D/Y: measured ratio (its range); the predicted one.

    ``target`` is the share of the loss above the floor, 0.5 or 0.125.
    """
    lines = []
    for problem, rows in _by_problem(_rows(target, FIXED)).items():
        methods = {row.operator: row for row in rows}
        lines.append([problem, *(_raced(methods[method]) for method in SHOWN)])
    return table(["problem", *SHOWN], lines)


def headline_table() -> str:
    """The goals' cell on the imposed clock and in real seconds."""
    lines = []
    for real, words in ((False, "imposed clock"), (True, "real seconds, shaped network")):
        for than in (FIXED, ADACOMM):
            for row in _rows("0.125", than, real=real):
                if (row.workload, row.operator) == ("digits, D/Y = 10", "corrected + outer"):
                    lines.append([words, than, ratio(row)])
    return table(["clock", "baseline", "corrected + outer, times faster"], lines)


def tau_table() -> str:
    """The fixed tau that was best in hindsight by problem and D/Y, and how much faster an outer step in flight came."""
    found: dict[str, dict[str, str]] = {}
    for target in ("0.5", "0.125"):
        for row in _rows(target, FIXED):
            if row.operator == "corrected + outer":
                found.setdefault(row.workload, {})[target] = f"{row.facts['baseline_tau']}; {ratio(row)}"
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
        for row in script("overlap").check()
        if row.facts.get("target") == float(target)
        and ("baseline_tau" in row.facts) == (than == FIXED)
        and ("delay_ratio" in row.facts) == real
    ]


def _raced(row: Comparison) -> str:
    predicted = f"{row.facts['predicted']:.2f}" if "predicted" in row.facts else "?"
    return f"{ratio(row)}; {predicted}" if math.isfinite(row.measured) else "no arrival"


# -- the pilot's skill: three prediction studies ----------------------------------------------------------------
STUDIES = ("prediction", "prediction-anew", "prediction-others")


@cache
def all_cells(model: str) -> tuple[Cell, ...]:
    """The cells of the studies under a model."""
    found: list[Cell] = []
    for name in STUDIES:
        study, records, _ = script(name).study()
        found += cells(study, records, model)
    return tuple(found)


def costs(wanted: Callable[[Cell], bool]) -> tuple[list[float], list[float]]:
    """Time over the best measured one, of the pilot's choice and of the fixed one, on every problem and network."""
    by_pilot, by_rule = [], []
    for rows in by_place([cell for cell in all_cells(TRIED) if wanted(cell)]):
        best = min(cell.measured for cell in rows)
        by_pilot.append(min(rows, key=lambda cell: cell.ranked_by).measured / best)
        by_rule += [cell.measured / best for cell in rows if RULES[CHEAP](cell.choice)]
    return by_pilot, by_rule


def _spread(values: Iterable[float]) -> str:
    found = list(values)
    largest = max(found)
    return f"{np.median(found):.2f} ({'not reached' if np.isinf(largest) else f'{largest:.2f}'})"


def rule_by_network_table() -> str:
    """Cost of the pilot's choice and of the fixed one by D/Y."""
    ratios = sorted({cell.ratio for cell in all_cells(TRIED)})
    rows = []
    for ratio in ratios:
        by_pilot, by_rule = costs(lambda cell, ratio=ratio: cell.ratio == ratio)
        rows.append((f"{ratio:g}", _spread(by_rule), _spread(by_pilot)))
    return table(("D/Y", "QSGD, tau = 16: median (worst)", "pilot's choice: median (worst)"), rows)


KINDS: dict[str, Callable[[Cell], bool]] = {
    "the same data on every worker": lambda cell: "Dirichlet" not in cell.problem and not _is_deep(cell),
    "different data on every worker": lambda cell: "Dirichlet" in cell.problem and not _is_deep(cell),
    "ResNet-20 and the transformer": lambda cell: _is_deep(cell),
}


def _is_deep(cell: Cell) -> bool:
    return cell.problem.startswith(("resnet20", "characters"))


def skill_by_problem_table() -> str:
    """Errors of the pilot and of the guess, and the worst choice, by the kind of problem."""
    rows = []
    for kind, belongs in KINDS.items():
        errors = []
        for model in (GUESS, TRIED):
            found = [cell.error for cell in all_cells(model) if belongs(cell) and not cell.synchronous]
            errors.append(f"{100 * np.median(found):.1f} %")
        by_pilot, by_rule = costs(belongs)
        rows.append((kind, *errors, _spread(by_rule), _spread(by_pilot)))
    head = ("problems", "error of the guess", "error of the pilot", "QSGD, tau = 16", "pilot's choice")
    return table(head, rows)
