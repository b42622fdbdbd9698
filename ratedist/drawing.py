"""Pictures of results.  matplotlib is imported here only; the extra ``validate`` brings it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

PREFERRED = ("omega", "alpha", "tau", "time_s", "eta", "bits", "d")
POINTS = 100
# Okabe and Ito 2008: eight colours that colour-blind readers can distinguish
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
OWN_COLOURS = ("gold", "white", "#56B4E9", "#CC79A7")  # of the user's own stars
MARKS = ("o", "s", "^", "D")
LINE_OF_TEXT_IN = 0.14  # height of a line of 8 pt
WIDTH_IN = 6.0  # of a figure; a column of a paper has 3.3
SPAN = 100.0  # a curve goes from 1/SPAN to SPAN times the point, inside the assumptions


FAMILIES = {  # operators by family, each family in one colour of PALETTE in all figures
    "sparse": ("topk", "randomk", "scaled_randomk", "hard_threshold", "low_rank"),
    "signs": ("sign", "scaled_sign", "signsgd", "one_bit_sgd"),
    "levels": ("qsgd", "qsgd_entropy", "klevel", "terngrad", "natural", "natural_dithering", "block_integer"),
    "rotated": ("eden", "drive", "rabitq", "turboquant", "quic_fl", "rotated_klevel", "kashin"),
    "sparse dithering": ("sparse_dithering", "arithmetic_sparse_dithering", "randomised_sparse_dithering"),
    "trellis, lattice": ("tcdq", "e8"),
    "not compressed": ("identity", "cast", "float32"),
    "spheres, combined": ("spherical_compression", "unbiased_spherical_compression", "vqsgd", "composition", "induced"),
}


def family(operator: str) -> str:
    """Return the family of an operator, from its specification or its name in a record; unknown ones are the last."""
    name = re.split(
        r"[:(, ]", operator.strip().lower().replace("-", "").replace("sparse dithering", "sparse_dithering")
    )[0]
    return next((kind for kind, names in FAMILIES.items() if name in names), next(reversed(FAMILIES)))


def colour(operator: str) -> str:
    """Return the colour of an operator's family."""
    return PALETTE[list(FAMILIES).index(family(operator))]


def axes(ax: Any, width_in: float = WIDTH_IN) -> Any:
    """Return the given axes, or those of a new figure ``width_in`` inches wide.

    Raises
    ------
    ImportError
        With the remedy if matplotlib is missing.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError('plots need matplotlib: pip install "ratedist[validate]"') from None
    figure = Figure(figsize=(width_in, min(2 / 3 * width_in + 0.6, 4.0)), layout="constrained")
    return figure.add_subplot()


def plot_along(result: Any, along: str | None, ax: Any) -> Any:
    """Return the theorem's value along one argument; a measured gap is drawn between the operator and its limit."""
    arguments = result.statement.at
    if {"operator", "bits", "nmse"} <= set(arguments):
        return _plot_gap(result, along, ax)
    arrays = {name: np.asarray(v, float) for name, v in arguments.items() if isinstance(v, np.ndarray)}
    if arrays:
        return _plot_array(result, arrays, along, ax)
    scalars = {name: float(Fraction(v)) for name, v in arguments.items() if isinstance(v, str) and _is_number(v)}
    name = along or next((n for n in (*PREFERRED, *scalars) if n in scalars), None)
    if name is None or name not in scalars:
        raise _not_along(scalars, along)
    grid, values = _values(result, scalars, name)
    ax = axes(ax)
    ax.loglog(grid, values)
    ax.plot([scalars[name]], [float(result)], "o")
    return _labelled(result, name, ax)


def _is_number(text: str) -> bool:
    try:
        Fraction(text)
    except ValueError:
        return False
    return True


def _not_along(known: Iterable[str], along: str | None) -> ValueError:
    names = tuple(known)
    choice = f"along must be one of {', '.join(names)}" if names else "no argument of this result is a number"
    return ValueError(f"{choice}; got along = {along!r}: {'choose one of them' if names else 'leave along out'}")


def _labelled(result: Any, name: str, ax: Any) -> Any:
    ax.set(xlabel=name, ylabel=f"{result.theorem} [{result.unit}]", title=label_of(result.statement.quantity))
    return ax


def _plot_array(result: Any, arrays: dict[str, np.ndarray], along: str | None, ax: Any) -> Any:
    """Return the values that were asked for, against the one argument that varies."""
    name = along or next(iter(arrays))
    if name not in arrays:
        raise _not_along(arrays, along)
    if len(arrays) > 1 or arrays[name].ndim != 1:
        shapes = ", ".join(f"{n} {a.shape}" for n, a in arrays.items())
        raise ValueError(f"plot draws values along one argument; got {shapes}: index the result first, as in result[0]")
    order = np.argsort(arrays[name])
    ax = axes(ax)
    ax.loglog(arrays[name][order], np.asarray(result)[order], "o-")
    return _labelled(result, name, ax)


def _plot_gap(result: Any, along: str | None, ax: Any) -> Any:
    """Return the limit of the class along the error, and the operator above it by the gap."""
    if along not in (None, "nmse"):
        raise _not_along(["nmse"], along)
    arguments = result.statement.at
    error = arguments["limit_nmse"]
    unbiased = result.theorem == "unbiased_bits"
    grid = error * np.geomspace(1 / SPAN, SPAN, POINTS)
    grid = grid if unbiased else grid[grid < 1]
    ax = axes(ax)
    ax.semilogx(grid, [result.statement.function(nmse) for nmse in grid], label="limit")
    ax.plot([error] * 2, [arguments["bits"] - float(result), arguments["bits"]], ":", label="gap")
    ax.plot([error], [arguments["bits"]], "o", label=label_of(arguments["operator"]))
    title = f"{label_of(arguments['operator'])}: {float(result):.3g} bits from the limit"
    ax.set(xlabel="nmse", ylabel="bits per coordinate", title=title)
    ax.legend(fontsize=7)
    return ax


def _values(result: Any, scalars: dict[str, float], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return grid and values; where an assumption fails there is no point."""
    grid = scalars[name] * np.geomspace(1 / SPAN, SPAN, POINTS)
    if name in ("tau", "d"):
        grid = np.unique(np.maximum(np.round(grid), 1))
    values = []
    for x in grid:
        try:
            values.append(float(result.statement.function(**{**scalars, name: float(x)})))
        except ValueError:
            values.append(np.nan)
    return grid, np.array(values)


def plot_ranking(costs: Mapping[str, tuple[float, float, float]], *, unit: str, title: str, ax: Any) -> Any:
    """Return bars of what each operator costs, the first on top, with the ends of it where they differ.

    Parameters
    ----------
    costs : mapping of str to tuple of float
        By name: value, and ends of its interval, of which infinite ones are not drawn.
    unit : str
        Of the costs, or what they are.
    title : str
        Over the bars.
    ax : optional
        Matplotlib axes to draw on; new ones unless given.
    """
    ax = axes(ax)
    values, low, high = np.array(list(costs.values())[::-1]).reshape(-1, 3).T
    high = np.where(np.isfinite(high), high, values)
    ends = np.array([values - low, high - values]) if (low < high).any() else None
    ax.barh([label_of(name) for name in costs][::-1], values, xerr=ends, capsize=3)
    ax.set(xlabel=unit, title=label_of(title))
    return ax


def plot_curve(points: Sequence[tuple[str, float, float, float]], source: str, ax: Any) -> Any:
    """Return distortion against bits, with the limit of the source.

    Parameters
    ----------
    points : sequence of (str, float, float, float)
        Operator, its bits per coordinate, its NMSE, and the limit in bits per coordinate at that NMSE.
    """
    ax = axes(ax)
    for operator, bits, nmse, _ in points:
        ax.semilogy([bits], [nmse], "o", label=label_of(operator))
    limit = sorted((at_least, nmse) for _, _, nmse, at_least in points)
    ax.semilogy(*zip(*limit, strict=True), "k:", label="limit") if limit else None
    ax.set(xlabel="bits per coordinate", ylabel="nmse", title=label_of(source))
    ax.legend(fontsize=7)
    return ax


def label_of(text: str) -> str:
    """Return a name as matplotlib shows it unchanged: no formula, one line, never hidden by an underscore.

    Parameters
    ----------
    text : str
        Any name.
    """
    line = " ".join(text.split()).replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line


def plot_comparison(
    points: Sequence[tuple[str, float, float, bool]],
    title: str,
    ax: Any,
    *,
    width_in: float = WIDTH_IN,
    is_below: bool = False,
) -> Any:
    """Draw error against bits: one curve per compressor, the user's own as stars, and the limits.

    The limits of the two classes hold in the worst case over vectors, and on average for Gaussian ones: the two are
    equal.  A family of compressors has the colour that it has in all figures; its members have different marks.

    Parameters
    ----------
    points : sequence of (str, float, float, bool)
        Family, its bits per coordinate, its NMSE, and whether it is the user's own.
    title : str
        Above the axes.
    ax : matplotlib.axes.Axes or None
        Where to draw; None makes a figure.
    width_in : float, inches, optional
        Width of that figure.
    is_below : bool, optional
        Whether a compressor spent fewer bits than the limit of its class; the title then says why.
    """
    ax = axes(ax, width_in)
    most = max((bits for _, bits, *_ in points), default=1.0)
    ends: list[tuple[str, float, float, str]] = []  # text, last point, colour
    curves = [(name, [p for p in points if p[0] == name]) for name in dict.fromkeys(p[0] for p in points)]
    stars, n_drawn = 0, Counter[str]()
    for name, measured in curves:
        curve = sorted((bits, nmse) for _, bits, nmse, _ in measured)
        curve_colour = colour(name)
        if any(is_own for *_, is_own in measured):
            star = {"markersize": 12, "markerfacecolor": OWN_COLOURS[stars % len(OWN_COLOURS)]}
            star |= {"markeredgecolor": "black", "zorder": 5, "clip_on": False}
            stars += 1
            ax.plot(*zip(*curve, strict=True), "*", label=label_of(name), **star)
            curve_colour = "black"
        else:
            mark = MARKS[n_drawn[curve_colour] % len(MARKS)]
            n_drawn[curve_colour] += 1
            ax.plot(*zip(*curve, strict=True), mark + "-", color=curve_colour, markersize=4, label=label_of(name))
        ends.append((label_of(name), *curve[-1], curve_colour))
    rates = np.linspace(0.02, 1.0, 200) * most
    for name, style, limit in (
        ("limit, biased", ":", np.exp(-2 * np.log(2) * rates)),
        ("limit, unbiased", "--", 1 / np.expm1(2 * np.log(2) * rates)),
    ):
        ax.plot(rates, limit, "k" + style, linewidth=1, label=name)
        ends.append((name, most, float(limit[-1]), "black"))
    nmses = [nmse for _, _, nmse, _ in points]
    ax.set(xlabel="bits per coordinate", ylabel="NMSE", yscale="log", xlim=(0, 1.02 * most))
    below = "\nbelow a limit: this x is easier than a Gaussian one" if is_below else ""
    ax.set_title(f"{title}\nlimits: for the worst x, and for Gaussian x{below}", loc="left", fontsize=8)
    ax.xaxis.label.set_size(8)
    ax.yaxis.label.set_size(8)
    ax.tick_params(labelsize=8)
    if nmses:
        ax.set_ylim(min(*nmses, 2.0 ** (-2 * most)) / 2, 3 * max(1.0, *nmses))
    _label_ends(ax, ends)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _label_ends(ax: Any, ends: Sequence[tuple[str, float, float, str]]) -> None:
    """Write each curve's name right of its last point, names apart by at least a line's height."""
    low, high = np.log(ax.get_ylim())
    ends = sorted(ends, key=lambda end: end[2])
    height_in = ax.get_position().height * ax.figure.get_figheight()
    steps = LINE_OF_TEXT_IN / height_in * (high - low) * np.arange(len(ends))
    heights = np.log([y for _, _, y, _ in ends]) - steps
    upward, downward = np.maximum.accumulate(heights), np.minimum.accumulate(heights[::-1])[::-1]
    for (text, x, y, colour), height in zip(ends, (upward + downward) / 2 + steps, strict=True):
        ax.annotate(
            text,
            xy=(x, y),
            xytext=(1.01, (height - low) / (high - low)),
            textcoords="axes fraction",
            color=colour,
            fontsize=8,
            verticalalignment="center",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 3},
        )
