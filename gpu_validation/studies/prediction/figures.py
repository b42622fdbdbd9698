"""The figures of the ``prediction`` study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...records.storage import Record
from ...reporting.plotting import MARKS, PALETTE, canvas, plain_ticks
from ..study import Figure
from .analysis import FORMULAS, GUESS, REGRET_GOAL, TAIL_GOAL, TRIED, Cell, cells, regrets
from .problems import LONGER, Design

LARGEST_REGRET = 5.0


def figures(design: Design, records: Sequence[Record]) -> list[Figure]:
    """Return the figures for which there are records.

    Parameters
    ----------
    design : Design
        Of the study.
    records : sequence of Record
        Of its units.
    """
    by_model = {model: cells(design, records, model) for model in (TRIED, FORMULAS, GUESS)}
    if not by_model[TRIED]:
        return []
    hidden = sum(math.isinf(cell.value) for cell in by_model[TRIED])
    ratios = ", ".join(f"{ratio:g}" for ratio in design.ratios)
    caption = (
        "Predicted by pilots (vertical) against measured in simulated trainings (horizontal): time to the target over "
        f"that of synchronous uncompressed training; one mark a problem, choice and network (D/Y = {ratios}), bars: "
        f"intervals at {design.level:.0%} of every fifth. Dashed: equal; dotted: {TAIL_GOAL:.0%} off. Choices that had "
        f"not arrived after {LONGER:g} times the steps of the synchronous run are left out, and {hidden} whose "
        "progress the pilots' noise hides."
    )
    words = (
        "Measured: time of the choice that was predicted best over that of the best of all choices, one mark a problem "
        f"and network; bar: median. Dashed: the goal for the median. Above {LARGEST_REGRET:g}: drawn there."
    )
    return [
        Figure(lambda: _draw_times(by_model[TRIED]), caption),
        Figure(lambda: _draw_regrets(by_model), words),
    ]


def _draw_times(every: Sequence[Cell]) -> Any:
    halves, taus = list(dict.fromkeys(cell.half for cell in every)), sorted({cell.choice.tau for cell in every})
    figure, axes = canvas(1, len(halves), height=4.2)
    for ax, half in zip(axes[0], halves, strict=True):
        shown = [c for c in every if c.half == half and math.isfinite(c.measured + c.value) and not c.synchronous]
        for i, tau in enumerate(taus):
            dots = [cell for cell in shown if cell.choice.tau == tau]
            style = {"color": PALETTE[i % len(PALETTE)], "markersize": 3}
            measured, value = [c.measured for c in dots], [c.value for c in dots]
            ax.plot(measured, value, MARKS[i % len(MARKS)], label=f"{tau} local steps" if dots else None, **style)
            for cell in dots[::5]:
                assert cell.predicted is not None  # its value is finite
                ends = [float(cell.predicted.interval.lo), min(float(cell.predicted.interval.hi), 10 * cell.value)]
                ax.plot([cell.measured] * 2, ends, color=style["color"], linewidth=0.6)
        line = np.array([min(c.measured for c in shown), max(c.measured for c in shown)])
        ax.plot(line, line, "--", color="black", linewidth=0.8)
        for factor in (1 - TAIL_GOAL, 1 + TAIL_GOAL):
            ax.plot(line, factor * line, ":", color="grey", linewidth=0.8)
        ax.set(title=f"{half} half", xscale="log", yscale="log", xlabel="measured")
        plain_ticks(ax.xaxis)
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7)
    axes[0][0].set(ylabel="predicted")
    return figure


def _draw_regrets(by_model: dict[str, list[Cell]]) -> Any:
    halves = list(dict.fromkeys(cell.half for cell in by_model[TRIED]))
    figure, axes = canvas(1, len(halves), height=3.2)
    for ax, half in zip(axes[0], halves, strict=True):
        for x, (_, every) in enumerate(by_model.items()):
            values = np.minimum(regrets([cell for cell in every if cell.half == half]), LARGEST_REGRET)
            ax.plot(x + np.linspace(-0.3, 0.3, len(values)), values, MARKS[x], color=PALETTE[x], markersize=3)
            ax.plot([x - 0.35, x + 0.35], [np.median(values)] * 2, color="black", linewidth=1.5)
        ax.axhline(REGRET_GOAL, color="black", linestyle="--", linewidth=0.8)
        ax.set(title=f"{half} half", yscale="log", ylabel="regret")
        ax.set_xticks(range(len(by_model)), list(by_model))
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3, axis="y")
    return figure
