"""Figures in one style, with colours that colour-blind readers can distinguish."""

from __future__ import annotations

import html
import io
from typing import Any

# Okabe and Ito 2008: eight colours that colour-blind readers can distinguish
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
LINES = ("-", "--", ":", "-.")
LINES_A_PANEL = 6  # largest number of lines that readers can distinguish
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")


def figure_html(figure: Any, caption: str, source: str = "") -> str:
    """Return a matplotlib figure as inline SVG with caption and collapsed source; close the figure."""
    import matplotlib.pyplot as plt

    text = io.StringIO()
    figure.savefig(text, format="svg")
    plt.close(figure)
    svg = text.getvalue()
    folded = f"<details><summary>Record and circumstances</summary>{html.escape(source)}</details>" if source else ""
    return f"<figure>{svg[svg.index('<svg') :]}<figcaption>{html.escape(caption)}{folded}</figcaption></figure>"


def canvas(rows: int, columns: int, *, height: float) -> Any:
    """Return (figure, axes of shape (rows, columns)) with the report's width and ``height`` inches per row."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ratedist"
    return plt.subplots(rows, columns, figsize=(11, height * rows), squeeze=False, layout="constrained")


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
