"""Tables of the page "Do I need a pilot?", from the records of the three prediction studies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from markdown_text import table
from reproduced import script

from gpu_validation.studies.prediction import CHEAP, GUESS, RULES, TRIED, Cell, by_place, cells

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
