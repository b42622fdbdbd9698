"""What is drawn: how much faster than the best fixed tau, beside what the exact model says, and losses against time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...records.storage import Record
from ...reporting.plotting import LINES, MARKS, PALETTE, canvas, plain_ticks
from ..study import Figure
from .analysis import Cell, Choice, cells, choose, predicted_ratio, speed_up
from .problems import ADACOMM, FIXED, HEADLINE, LEFT, METHODS, STEP, Design
from .search import STAGES

SHOWN = tuple(name for name in METHODS if name != FIXED)
CURVES = (FIXED, ADACOMM, "fixed tau + outer", "delayed", "corrected", "corrected + outer")
Tuned = list[tuple[Cell, Choice]]


def figures(design: Design, records: Sequence[Record]) -> list[Figure]:
    """Draw the cells that have been reported so far.

    Parameters
    ----------
    design : Design
        What is tuned and reported.
    records : sequence of Record
        So far.
    """
    ready = [(cell, choose(cell)) for cell in cells(design, records) if cell.reported]
    if not ready:
        return []
    how = (
        "Four simulated workers, whose losses are those of real processes bit for bit, and a simulated clock: steps of "
        f"7 ms and an exponential 1 ms, D/Y imposed. Every method was tuned by {STAGES * design.points} trials, auto "
        f"by a third as many, and the best of them on {len(design.tuning)} seeds; reported from seeds "
        f"{design.seeds[0]} to {design.seeds[-1]}."
    )
    left = f"{LEFT[HEADLINE]:g} of the loss above its floor"
    return [
        Figure(
            partial(_draw_ratios, design, ready),
            f"Measured (marks, range of the seeds): how many times faster than the best fixed tau in hindsight each "
            f"method reached {left}. Theory (rings): the same ratio on the quadratic at the minimiser, by exact second "
            f"moments, computed before any run. {how}",
        ),
        Figure(
            partial(_draw_curves, ready),
            f"Measured: loss of the common model above its floor against simulated time in units of Y, each method as "
            f"tuned for {left} (line), median over the seeds. {how}",
        ),
    ]


def _draw_ratios(design: Design, ready: Tuned) -> Any:
    figure, axes = canvas(len(design.tasks), 1, height=2.2)
    for ax, (name, _) in zip(axes[:, 0], design.tasks, strict=True):
        of_task = [(cell, choice) for cell, choice in ready if cell.name == name]
        for i, (cell, choice) in enumerate(of_task):
            places = np.arange(len(SHOWN)) + 0.25 * (i - (len(of_task) - 1) / 2)
            ratios = [speed_up(cell, choice, method, HEADLINE) for method in SHOWN]
            middle = np.array([ratio.value for ratio in ratios])
            low, high = np.array([ratio.interval for ratio in ratios]).T
            label, style = f"D/Y = {cell.ratio}", {"color": PALETTE[i], "markersize": 4, "capsize": 2}
            ax.errorbar(places, middle, [middle - low, high - middle], fmt=MARKS[i], label=label, **style)
            expected = [(x, predicted_ratio(cell, method, HEADLINE)) for x, method in zip(places, SHOWN, strict=True)]
            rings = [(x, ratio) for x, ratio in expected if ratio is not None]
            if rings:
                ax.plot(*zip(*rings, strict=True), "o", color=PALETTE[i], markersize=8, fillstyle="none", alpha=0.6)
        ax.axhline(1, color="black", linewidth=0.6)
        ax.set(title=name, ylabel="times faster", ylim=(-0.15, None))  # who does not arrive is at 0
        ax.set_xticks(range(len(SHOWN)), SHOWN, rotation=12, fontsize=7)
        ax.grid(alpha=0.3, axis="y")
    axes[0, 0].legend(fontsize=7)
    return figure


def _draw_curves(ready: Tuned) -> Any:
    columns = min(3, len(ready))
    figure, axes = canvas(-(-len(ready) // columns), columns, height=2.8)
    for ax in axes.flat[len(ready) :]:
        ax.set_axis_off()
    for ax, (cell, choice) in zip(axes.flat, ready, strict=False):
        for i, method in enumerate(CURVES):
            trial = choice.picked[method][HEADLINE]
            runs = [r for unit in cell.reported for r in unit["runs"] if (r["method"], r["trial"]) == (method, trial)]
            drawn = [r for r in runs if "losses" in r]
            if not drawn:
                continue
            grid = np.linspace(0, max(r["seconds"][-1] for r in drawn), 200)
            curves = [np.interp(grid, r["seconds"], r["losses"], right=r["losses"][-1]) for r in drawn]
            style = {"color": PALETTE[i % len(PALETTE)], "linestyle": LINES[i % len(LINES)], "linewidth": 1.1}
            ax.plot(grid / STEP.mean_s, np.median(curves, axis=0) - cell.task.floor, label=method, **style)
        ax.axhline(cell.task.targets[HEADLINE] - cell.task.floor, color="black", linewidth=0.6)
        ax.set(title=cell.title, xlabel="time/Y", yscale="log")
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=6)
    return figure
