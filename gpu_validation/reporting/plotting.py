"""Figures in one style, with colours that colour-blind readers can distinguish."""

from __future__ import annotations

import html
import io
from typing import Any

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
