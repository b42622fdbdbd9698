"""What is drawn: speed-up against the target, losses against time, and the ratio at one common rate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ...records.storage import Record
from ...reporting.plotting import LINES, MARKS, PALETTE, canvas, plain_ticks
from ..study import Figure
from .analysis import Cell, Choice, at_one_rate, cells, choose, speedup
from .problems import FIXED, SYNCHRONOUS, Design, trials

Tuned = list[tuple[Cell, Choice]]


def figures(design: Design, records: Sequence[Record]) -> list[Figure]:
    """Draw the cells that have been tuned and reported so far."""
    tuned = [(cell, choose(cell)) for cell in cells(design, records)]
    ready = [(cell, choice) for cell, choice in tuned if cell.reported]
    if not tuned:
        return []
    how = (
        f"Simulated clock with steps of 7 ms and an exponential 1 ms, averagings of 32 ms: D/Y = 4 is imposed, and no "
        f"schedule could be more than about 5 times faster a step. Every method tried {design.points} points (rate; "
        f"tau_0 and T_0; step of the decay) on seeds {_named(design.tuning)}, the best for each target is reported "
        f"from seeds {_named(design.seeds)}; losses are those of real processes bit for bit."
    )
    drawn = []
    if ready:
        caption = (
            "Measured: how many times faster than tuned synchronous SGD each schedule reached a loss, against how far "
            "the loss lies above its floor; medians of paired ratios, bars: exact order-statistic intervals. Tau is "
            f"fixed at the strongest value for each target in the grey line. {how}"
        )
        drawn.append(Figure(partial(_draw_speed_ups, ready), caption))
        caption = (
            "Measured: loss of the averaged model against simulated seconds, each method as tuned for the last target "
            f"that synchronous SGD reaches; median over the seeds. {how}"
        )
        drawn.append(Figure(partial(_draw_curves, ready), caption))
    caption = (
        "Measured: times faster to the target in the transient if both sides run at one common rate, against that "
        f"rate, on the tuning seeds; crosses: the rate tuned for synchronous SGD. {how}"
    )
    drawn.append(Figure(partial(_draw_rates, tuned), caption))
    return drawn


def _named(seeds: Sequence[int]) -> str:
    return f"{seeds[0]} to {seeds[-1]}" if len(seeds) > 3 else ", ".join(map(str, seeds))


def _style(method: str, cell: Cell) -> dict[str, Any]:
    i = list(cell.methods).index(method)
    return {"color": PALETTE[i % len(PALETTE)], "linestyle": LINES[i % len(LINES)], "marker": MARKS[i % len(MARKS)]}


def _draw_speed_ups(ready: Tuned) -> Any:
    figure, axes = canvas(1, len(ready), height=3.4)
    for ax, (cell, choice) in zip(axes[0], ready, strict=True):
        reached = range(choice.reached)
        excess = np.array([cell.course.targets[i] - cell.course.floor for i in reached])
        strongest = [speedup(cell, choice, choice.strongest[i], i).value for i in reached]
        ax.plot(excess, strongest, color="#999999", linewidth=5, alpha=0.5, label="strongest fixed")
        for method in cell.methods[1:]:
            speedups = [speedup(cell, choice, method, i) for i in reached]
            middle = np.array([ratio.value for ratio in speedups])
            low, high = np.array([ratio.interval for ratio in speedups]).reshape(-1, 2).T
            bars = [middle - low, high - middle]
            ax.errorbar(excess, middle, bars, **_style(method, cell), markersize=4, capsize=2, label=method)
        ax.axhline(1, color="black", linewidth=0.6)
        ax.set(title=cell.title, xscale="log", xlabel="target above the floor", ylim=(0, None))
        ax.invert_xaxis()
        plain_ticks(ax.xaxis)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=6)
    axes[0, 0].set_ylabel("times faster")
    return figure


def _draw_curves(ready: Tuned) -> Any:
    figure, axes = canvas(1, len(ready), height=3.2)
    for ax, (cell, choice) in zip(axes[0], ready, strict=True):
        last, grid = max(choice.reached - 1, 0), np.linspace(0, cell.course.budget_s, 300)
        for method in cell.methods:
            picked = choice.trials[method][last]
            races = [r for u in cell.reported for r in u["races"] if (r["method"], r["trial"]) == (method, picked)]
            curves = [np.interp(grid, r["seconds"], r["losses"], right=np.nan) for r in races]
            style = {k: v for k, v in _style(method, cell).items() if k != "marker"}
            ax.plot(grid, np.median(curves, axis=0) - cell.course.floor, **style, linewidth=1.1, label=method)
        ax.axhline(cell.course.targets[last] - cell.course.floor, color="black", linewidth=0.6)
        ax.set(title=cell.title, xlabel="simulated seconds", yscale="log")
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3)
    axes[0, 0].set_ylabel("loss above the floor")
    axes[0, 0].legend(fontsize=6)
    return figure


def _draw_rates(tuned: Tuned) -> Any:
    tuned = [(cell, choice) for cell, choice in tuned if SYNCHRONOUS in cell.methods]
    figure, axes = canvas(1, len(tuned), height=3.0)
    for ax, (cell, choice) in zip(axes[0], tuned, strict=True):
        for method in (*[name for name in FIXED if name != SYNCHRONOUS], "gamma"):
            by_rate = at_one_rate(cell, method, 1)
            if by_rate:
                rates, ratios = zip(*by_rate, strict=True)
                ax.plot(rates, ratios, **_style(method, cell), markersize=4, label=method)
        if cell.reported:
            ax.plot(_tuned_rate(cell, choice), 1.0, "kx")
        ax.set(title=cell.title, xscale="log", xlabel="common learning rate", ylim=(0, None))
        plain_ticks(ax.xaxis)
        ax.grid(alpha=0.3)
    axes[0, 0].set_ylabel("times faster")
    axes[0, 0].legend(fontsize=6)
    return figure


def _tuned_rate(cell: Cell, choice: Choice) -> float:
    index = choice.trials[SYNCHRONOUS][1]
    return trials(cell.course, index + 1)[index].rate
