"""The figures of the ``auto-tau`` design."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from ...records.storage import Record
from ...reporting.plotting import LINES, MARKS, PALETTE, canvas, plain_ticks
from ..study import Figure
from .analysis import REGRET_GOAL, SHOWN_METHODS, Cell, Run, cells, runs
from .problems import Design

LARGEST_SHOWN = 20.0  # of the regrets; larger and infinite ones are drawn there


def figures(design: Design, records: Sequence[Record]) -> list[Figure]:
    """Return the figures for which there are records."""
    all_cells, everything = cells(design, records), runs(records)
    if not all_cells:
        return []
    how = everything[0].races["auto"]
    wires = how["method"].rsplit("; ", 1)[0]  # the last part is the first network's delay
    delays = ", ".join(f"{1e3 * course.delay_s:g}" for course in design.courses)
    seeds = f"median of seeds {', '.join(map(str, design.seeds))}"
    regrets = (
        f"Measured: time to the target over that of the best fixed tau in hindsight, {seeds}; one mark a problem, "
        f"ratio D/Y and target, bar: their median. Regrets above {LARGEST_SHOWN:g}, or of runs that did not arrive, "
        f"are drawn at the upper edge. Dashed: the goal for the rule's median. {how['scheduling']}; {wires}; "
        f"one-way delays of the three networks: {delays} ms, longer in proportion where steps are."
    )
    taus = "Measured: tau of the rule over time, one line a problem, the first seed. Dotted: the fixed taus."
    return [
        Figure(lambda: _draw_regrets(all_cells), regrets),
        Figure(lambda: _draw_taus(design, everything), taus),
    ]


def _draw_regrets(found: Sequence[Cell]) -> Any:
    halves = list(dict.fromkeys(cell.half for cell in found))
    figure, axes = canvas(1, len(halves), height=3.6)
    problems = list(dict.fromkeys(cell.problem for cell in found))
    for ax, half in zip(axes[0], halves, strict=True):
        half_cells = [cell for cell in found if cell.half == half]
        for x, method in enumerate(SHOWN_METHODS):
            values = np.minimum([cell.regret(method) for cell in half_cells], LARGEST_SHOWN)
            shifts = np.linspace(-0.25, 0.25, len(half_cells))
            for cell, value, shift in zip(half_cells, values, shifts, strict=True):
                i = problems.index(cell.problem)
                label = (
                    cell.problem if x == 0 and cell is next(c for c in half_cells if c.problem == cell.problem) else ""
                )
                mark, colour = MARKS[i % len(MARKS)], PALETTE[i % len(PALETTE)]
                ax.plot(x + shift, value, mark, color=colour, markersize=4, label=label)
            ax.plot([x - 0.35, x + 0.35], [np.median(values)] * 2, color="black", linewidth=1.5)
        ax.axhline(REGRET_GOAL, color="black", linestyle="--", linewidth=0.8)
        ax.set(title=f"{half} half", yscale="log", ylabel="regret")
        ax.set_xticks(range(len(SHOWN_METHODS)), [name.replace(", ", ",\n") for name in SHOWN_METHODS], fontsize=6)
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3, axis="y")
        ax.legend(fontsize=6)
    return figure


def _draw_taus(design: Design, everything: Sequence[Run]) -> Any:
    """Draw one panel a network and half of the problems."""
    courses = sorted({run.course for run in everything})
    problems = list(dict.fromkeys(run.problem for run in everything))
    halves = [half for half in (problems[: len(problems) // 2], problems[len(problems) // 2 :]) if half]
    figure, axes = canvas(len(halves), len(courses), height=2.8)
    for row, half in zip(axes, halves, strict=True):
        styles = dict(zip(half, zip(PALETTE, cycle(LINES), strict=False), strict=False))
        for ax, course in zip(row, courses, strict=True):
            for problem, (colour, line) in styles.items():
                first = next((r for r in everything if (r.course, r.problem) == (course, problem)), None)
                if first is not None:
                    race = first.races["auto"]
                    ax.step(
                        race["seconds"], race["taus"], line, where="pre", color=colour, linewidth=1.2, label=problem
                    )
            for tau in design.courses[course].taus:
                ax.axhline(tau, color="grey", linestyle=":", linewidth=0.6)
            ax.set(title=f"D/Y about {design.courses[course].ratio:g}", xlabel="seconds", yscale="log")
            plain_ticks(ax.yaxis)
            ax.grid(alpha=0.3)
        row[0].set(ylabel="tau")
        row[-1].legend(fontsize=6, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return figure
