"""Figures in one style, with colours that colour-blind readers can distinguish."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ratedist.drawing import FAMILIES as FAMILIES
from ratedist.drawing import PALETTE as PALETTE
from ratedist.drawing import colour as colour
from ratedist.drawing import family as family

LINES = ("-", "--", ":", "-.")
LINES_A_PANEL = 6  # largest number of lines that readers can distinguish
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
WIDTH_IN, LEGEND_PT, TITLE_PT = 8.3, 10, 12  # across the 6.7 in of an A4 page, legends are of 8 pt


def figure_html(figure: Any, caption: str, source: str = "", folded: str = "") -> str:
    """Return a matplotlib figure as inline SVG with caption and collapsed source; close the figure.

    ``folded`` is the line below which the whole figure is collapsed; empty shows it.
    """
    import matplotlib.pyplot as plt

    text = io.StringIO()
    figure.savefig(text, format="svg")
    plt.close(figure)
    svg = text.getvalue()
    details = f"<details><summary>Record and circumstances</summary>{html.escape(source)}</details>" if source else ""
    shown = f"<figure>{svg[svg.index('<svg') :]}<figcaption>{html.escape(caption)}{details}</figcaption></figure>"
    return f"<details><summary>{html.escape(folded)}</summary>{shown}</details>" if folded else shown


def legend_below(figure: Any, *axes: Any) -> None:
    """Put one legend with all labels of the axes below the panels, in as many columns as fit."""
    entries = dict[str, Any]()
    for ax in axes:
        entries.update({label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)})
    if entries:
        width_in = 0.6 + 0.07 * max(map(len, entries))
        columns = max(1, min(len(entries), int(WIDTH_IN / width_in)))
        figure.legend([*entries.values()], [*entries], loc="outside lower center", ncols=columns, frameon=False)


def canvas(rows: int, columns: int, *, height: float) -> Any:
    """Return (figure, axes of shape (rows, columns)) with the report's width and ``height`` inches per row."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ratedist"
    plt.rcParams.update({"legend.fontsize": LEGEND_PT, "axes.grid": True, "grid.alpha": 0.3})
    return plt.subplots(rows, columns, figsize=(WIDTH_IN, height * rows), squeeze=False, layout="constrained")


def panels(count: int, columns: int = 3, height: float = 3.2) -> tuple[Any, list[Any]]:
    """Return (figure, ``count`` axes in rows of ``columns``), ``height`` inches per row."""
    figure, axes = canvas(-(-count // columns), min(count, columns), height=height)
    flat = list(axes.flat)
    for unused in flat[count:]:
        unused.axis("off")
    return figure, flat[:count]


def chart(
    values: Sequence[Any],
    draw: Callable[[Any, Any], object],
    *,
    height: float,
    columns: int = 0,
    title: Callable[[Any], str] = str,
    x: str = "",
    y: str = "",
    logs: str = "",
    plain: str = "",
    legend: bool = True,
    **settings: Any,
) -> Any:
    """Return a figure with one panel per value, which ``draw(ax, value)`` fills, and one legend below all.

    ``logs`` and ``plain`` name the axes ("x", "y") on a logarithmic scale, and those with plain numbers.
    ``settings`` are arguments of ``ax.set``.
    """
    figure, axes = panels(len(values), columns or max(1, len(values)), height)
    for ax, value in zip(axes, values, strict=True):
        draw(ax, value)
        labels = {"xlabel": x} if x else {}
        ax.set(title=title(value), **labels, **{f"{axis}scale": "log" for axis in logs}, **settings)
        plain_ticks(*(getattr(ax, f"{axis}axis") for axis in plain))
    for ax in axes[:: columns or max(1, len(values))] if y else ():
        ax.set_ylabel(y)
    if legend:
        legend_below(figure, *axes)
    return figure


def style(i: int, *keys: str) -> dict[str, Any]:
    """Return colour, line and marker number i; or those of them that ``keys`` names."""
    every = {"color": PALETTE[i % len(PALETTE)], "linestyle": LINES[i % len(LINES)], "marker": MARKS[i % len(MARKS)]}
    return {key: every[key] for key in keys or every}


class Spread(NamedTuple):
    """A number and its interval."""

    value: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Return the mean of numbers, with the least and largest of them."""
        numbers = np.array([*values], float)
        return cls(float(numbers.mean()), (float(numbers.min()), float(numbers.max())))


def error_bars(ax: Any, x: Any, estimates: Sequence[Any], **settings: Any) -> None:
    """Draw estimates, which have a ``value`` and an ``interval``, as marks with bars."""
    low, high = np.array([estimate.interval for estimate in estimates], float).reshape(-1, 2).T
    middle = np.array([estimate.value for estimate in estimates])
    ax.errorbar(x, middle, [middle - low, high - middle], **settings)


def ticks_at(ax: Any, values: Sequence[float]) -> None:
    """Label the x axis at these numbers only."""
    ax.set_xticks(values, [str(value) for value in values])
    ax.set_xticks([], minor=True)


def categories(ax: Any, names: Sequence[str], **settings: Any) -> None:
    """Label places 0, 1, ... of the x axis with names, without grid lines."""
    ax.set_xticks(range(len(names)), names, **settings)
    ax.grid(visible=False, axis="x")


def plain_ticks(*axes: Any) -> None:
    """Label short logarithmic axes (``ax.xaxis``, ``ax.yaxis``) by 1, 2 and 5 times powers of ten, in plain numbers.

    Axes over more than three powers of ten keep matplotlib's labels.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for axis in axes:
        low, high = axis.get_view_interval()
        if high > 1000 * low:
            continue
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())
