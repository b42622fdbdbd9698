"""The figures of the studies of AdaComm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np

from ...reporting.plotting import LINES, MARKS, PALETTE, canvas, plain_ticks
from ...verdicts.time_to_target import smoothed
from ..study import Figure
from .analysis import Group
from .problems import CROWD, GOAL

GRID = 200  # points of a drawn curve

Styles = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Setting:
    """What the captions say of the runs.

    Parameters
    ----------
    window : float
        Of the smoothing, in shares of the budget.
    seeds : sequence of int
        One run each.
    where : str
        Data and machine, in sentences.
    clock : str, optional
        Label of the time axis.
    """

    budget_s: Callable[[str], float]
    window: float
    seeds: Sequence[int]
    where: str
    clock: str = "seconds"

    @property
    def runs(self) -> str:
        """The seeds in words."""
        return f"seed{'s' * (len(self.seeds) > 1)} {', '.join(map(str, self.seeds))}"


def figures(found: Sequence[Group], setting: Setting) -> list[Figure]:
    """Return the figures for which there are runs."""
    trained, crowd = [g for g in found if g.course != CROWD], [g for g in found if g.course == CROWD]
    styles, drawn = _styles(found), []
    for rate in dict.fromkeys(g.rate for g in trained):
        caption = (
            f"Measured, {rate} learning rate, {setting.runs}. Above: training loss of the averaged model, a mean over "
            f"the last {setting.window:.3g} of the budget; line: median over the seeds, band: from the smallest to the "
            "largest. Cross: median time at which the synchronous run's last loss is reached. Below: held-out "
            f"accuracy, median. {setting.where}"
        )
        drawn.append(Figure(_bound(_draw_curves, setting, [g for g in trained if g.rate == rate], styles), caption))
    if trained:
        caption = f"Measured: tau of AdaComm's rules over time, {setting.runs}, one line each. {setting.where}"
        drawn.append(Figure(_bound(_draw_taus, setting, trained, styles), caption))
        caption = (
            "Measured: how many times faster than the synchronous run each schedule reached that run's last loss; "
            f"median of {setting.runs}, bars: exact order-statistic intervals. Shaded: the best fixed tau's interval. "
            f"Dashed: the goal of {GOAL:g} for AdaComm. {setting.where}"
        )
        drawn.append(Figure(_bound(_draw_ratios, trained, styles), caption))
    if crowd:
        caption = (
            "Measured: the same against the number of workers, small network, constant learning rate, longer steps, "
            f"{setting.runs}. {setting.where}"
        )
        drawn.append(Figure(_bound(_draw_crowds, crowd, styles), caption))
    return drawn


def _bound(draw: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: draw(*arguments)


def _styles(found: Sequence[Group]) -> Styles:
    """Return colour and line by schedule, the same in all figures of a report."""
    names = dict.fromkeys(name for group in found for name in group.races)
    return {
        name: {"color": colour, "linestyle": line}
        for name, colour, line in zip(names, cycle(PALETTE), cycle(LINES), strict=False)
    }


def _draw_curves(setting: Setting, found: Sequence[Group], styles: Styles) -> Any:
    figure, axes = canvas(2, len(found), height=3.2)
    for (above, below), group in zip(axes.T, found, strict=True):
        budget_s = setting.budget_s(group.course)
        grid = np.linspace(0, budget_s, GRID)
        for name, races in group.races.items():
            style = styles[name]
            window_s = setting.window * budget_s
            curves = np.array([smoothed(r["seconds"], r["losses"], grid, window_s=window_s) for r in races])
            middle = np.median(curves, axis=0)
            above.plot(grid, middle, **style, linewidth=1.3, label=name)
            above.fill_between(grid, curves.min(axis=0), curves.max(axis=0), color=style["color"], alpha=0.12)
            time = float(np.median([hit.seconds for hit in group.times_to_target[name]]))
            if time <= budget_s:
                above.plot(time, np.interp(time, grid, middle), "x", color=style["color"], markersize=7)
            held = [_steps(r["seconds"], r["accuracies"], grid) for r in races if r["accuracies"][0] is not None]
            if held:
                below.plot(grid, np.median(held, axis=0), **style, linewidth=1.3)
        above.set(title=group.title, yscale="log", ylabel="training loss")
        plain_ticks(above.yaxis)
        below.set(xlabel=setting.clock, ylabel="held-out accuracy")
        above.legend(fontsize=7)
        above.grid(alpha=0.3)
        below.grid(alpha=0.3)
    return figure


def _steps(seconds: Sequence[float], values: Sequence[float], at: np.ndarray) -> np.ndarray:
    """Return the last value at or before each time."""
    return np.asarray(values)[np.searchsorted(seconds, at, side="right") - 1]


def _draw_taus(setting: Setting, found: Sequence[Group], styles: Styles) -> Any:
    figure, axes = canvas(1, len(found), height=3.0)
    for ax, group in zip(axes[0], found, strict=True):
        for name in (name for name in group.races if not name.startswith("tau")):
            for i, race in enumerate(group.races[name]):
                label = "" if i else name
                ax.step(race["seconds"], race["taus"], where="pre", **styles[name], linewidth=1, label=label)
        ax.set(title=group.title, xlabel=setting.clock, yscale="log")
        ax.title.set_fontsize(9)
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3)
        ax.legend(fontsize=7)
    axes[0, 0].set_ylabel("tau")
    return figure


def _draw_ratios(found: Sequence[Group], styles: Styles) -> Any:
    figure, axes = canvas(1, len(found), height=3.2)
    for ax, group in zip(axes[0], found, strict=True):
        names = list(group.times_to_target)[1:]
        best = group.speedup(group.best_fixed).interval
        ax.axhspan(*best, color=PALETTE[-1], alpha=0.2)
        ax.axhline(GOAL, color=PALETTE[6], linestyle="--", linewidth=1)
        ratios = [group.speedup(name) for name in names]
        for i, (name, ratio) in enumerate(zip(names, ratios, strict=True)):
            bars = [[ratio.value - ratio.interval[0]], [ratio.interval[1] - ratio.value]]
            ax.errorbar(i, ratio.value, yerr=bars, fmt=MARKS[i % len(MARKS)], color=styles[name]["color"], capsize=4)
        ax.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8)
        ax.set(title=group.title, ylim=(0, 1.1 * max(GOAL, *(ratio.interval[1] for ratio in ratios))))
        ax.title.set_fontsize(9)
        ax.grid(alpha=0.3, axis="y")
    axes[0, 0].set_ylabel("times faster")
    return figure


def _draw_crowds(found: Sequence[Group], styles: Styles) -> Any:
    figure, axes = canvas(1, 1, height=3.6)
    ax = axes[0, 0]
    ordered = sorted(found, key=lambda g: g.m)
    names = [n for n in ordered[0].times_to_target if all(n in g.times_to_target for g in ordered)]
    for i, name in enumerate(names[1:]):
        ratios = [g.speedup(name) for g in ordered]
        middle = np.array([r.value for r in ratios])
        low, high = np.array([r.interval for r in ratios]).T
        place = np.array([g.m for g in ordered]) * 1.02 ** (i - len(names) / 2)  # bars beside each other
        ax.errorbar(
            place, middle, yerr=[middle - low, high - middle], **styles[name], marker=MARKS[i], capsize=3, label=name
        )
    ax.axhline(GOAL, color=PALETTE[6], linestyle="--", linewidth=1)
    ax.set(xlabel="workers m", ylabel="times faster", xscale="log", ylim=(0, None))
    ax.set_xticks([g.m for g in ordered], [str(g.m) for g in ordered], minor=False)
    ax.set_xticks([], minor=True)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    return figure
