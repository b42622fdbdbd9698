"""Chart of the looseness of bounds: a row per theorem, a mark per comparison, a shape per operator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from statistics import median

from .overview import CHARACTER, CLAIM, LINE, MARGIN, NAMES, STYLE, svg_text, wrapped
from .plotting import PALETTE
from .verdict import Comparison, Verdict

PLOT, ROW, HALF = 620, 30, 5  # pixels: width of the axis, least height of a row, half of a mark
MOST_TICKS = 12
SHAPES = (
    "M{l} {t}H{r}V{b}H{l}Z",
    "M{x} {t}L{r} {b}H{l}Z",
    "M{x} {t}L{r} {y}L{x} {b}L{l} {y}Z",
    "M{l} {t}H{r}L{x} {b}Z",
    "M{l} {t}L{r} {y}L{l} {b}Z",
    "M{l} {t}L{r} {b}M{r} {t}L{l} {b}",
    "M{r} {t}L{l} {y}L{r} {b}Z",
)


def judged(comparisons: Sequence[Comparison]) -> list[tuple[Comparison, float]]:
    """Return every judged comparison with an upper or lower bound, with its looseness."""
    return [
        (c, c.looseness)
        for c in comparisons
        if c.looseness is not None
        and 0 < c.looseness < math.inf
        and c.side != "tight"
        and c.verdict is not Verdict.OUT_OF_SCOPE
    ]


def looseness_words(comparisons: Sequence[Comparison]) -> str:
    """Return a sentence on the looseness of the bounds; empty if no inequality was judged."""
    rows = judged(comparisons)
    if not rows:
        return ""
    (closest, factor), half = min(rows, key=_away), median(map(_away, rows))
    return (
        f"Half of the {len(rows)} judged upper and lower bounds lie within a factor of {half:.3g} of the "
        f"measurement; the closest is {closest.theorem or closest.quantity} of {closest.operator}, at {factor:.4g}."
    )


def _away(row: tuple[Comparison, float]) -> float:
    """Return the factor between bound and measurement, >= 1 whichever is larger."""
    return max(row[1], 1 / row[1])


def looseness_svg(comparisons: Sequence[Comparison]) -> str:
    """Return the chart as SVG; empty if no inequality was judged."""
    rows = judged(comparisons)
    if not rows:
        return ""
    operators = list(dict.fromkeys(c.operator for c, _ in rows))
    claims: dict[str, list[tuple[Comparison, float]]] = {}
    for c, factor in rows:
        claims.setdefault(c.theorem or c.quantity, []).append((c, factor))
    left = MARGIN + CLAIM * CHARACTER
    width = left + PLOT + 2 * MARGIN
    parts, top = _legend(operators, width)
    axis = _Axis([factor for _, factor in rows], left + MARGIN)
    begin = top
    for claim, marks in sorted(claims.items(), key=lambda item: min(factor for _, factor in item[1])):
        lines = wrapped(NAMES.get(claim, claim), CLAIM - 2)
        height = max(LINE * len(lines) + 8, ROW)
        parts.append(f'<path d="M{MARGIN} {top:g}H{width - MARGIN:g}" stroke="#8885"/>')
        parts += [svg_text(MARGIN, top + 17 + LINE * i, line) for i, line in enumerate(lines)]
        for c, factor in marks:
            number = operators.index(c.operator)
            level = top + HALF + 2 + (height - 2 * HALF - 4) * (number + 0.5) / len(operators)
            parts.append(_mark(c, factor, number, axis.place(factor), level))
        top += height
    parts = [*axis.lines(begin, top), *parts]
    size = f'viewBox="0 0 {width:g} {top + 44:g}" width="{width:g}"'
    label = f'role="img" aria-label="{escape(looseness_words(comparisons))}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label} font-family="system-ui,sans-serif" font-size="13">'
    return f"{head}<style>{STYLE}</style>{''.join(parts)}</svg>\n"


class _Axis:
    """Logarithmic axis of factors."""

    def __init__(self, factors: Sequence[float], left: float) -> None:
        self.low = min(*factors, 1.0) / 1.05
        self.high = max(*factors, 1.5) * 1.05
        self.left = left

    def place(self, factor: float) -> float:
        return self.left + (PLOT - MARGIN) * math.log(factor / self.low) / math.log(self.high / self.low)

    def ticks(self) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for digits in ((1, 1.2, 1.5, 2, 3, 5), (1, 2, 5), (1,)):
            ticks = [digit * 10.0**power for power in powers for digit in digits]
            inside = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(inside) <= MOST_TICKS:
                break
        return inside

    def lines(self, top: float, bottom: float) -> list[str]:
        parts = []
        for tick in self.ticks():
            x, colour = self.place(tick), "currentColor" if tick == 1 else "#8884"
            parts.append(f'<path d="M{x:.1f} {top:g}V{bottom:g}" stroke="{colour}"/>')
            parts.append(svg_text(x - CHARACTER * len(f"{tick:g}") / 2, bottom + 18, f"{tick:g}"))
        words = "looseness: bound / measured of upper bounds, measured / bound of lower ones; 1 is tight"
        return [*parts, svg_text(self.left, bottom + 36, words)]


def _legend(operators: Sequence[str], width: float) -> tuple[list[str], float]:
    """Return the shapes of the operators, and the top of the rows."""
    x, y, parts = float(MARGIN), 20.0, []
    for number, operator in enumerate(operators):
        room = 40 + CHARACTER * len(operator)
        if x + room > width:
            x, y = float(MARGIN), y + LINE + 4
        parts += [_shape(number, x + HALF, y - 4), svg_text(x + 18, y, operator)]
        x += room
    return parts, y + 14


def _mark(c: Comparison, factor: float, number: int, x: float, y: float) -> str:
    title = f"{c.operator}, {c.quantity}: x {factor:.4g}, {c.verdict}"
    return f"<g><title>{escape(title)}</title>{_shape(number, x, y)}</g>"


def _shape(number: int, x: float, y: float) -> str:
    colour = PALETTE[number % len(PALETTE)]
    style = f'fill="{colour}" fill-opacity=".45" stroke="{colour}"'
    if number % (len(SHAPES) + 1) == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{HALF}" {style}/>'
    ends = {"l": x - HALF, "r": x + HALF, "x": x, "t": y - HALF, "b": y + HALF, "y": y}
    path = SHAPES[number % (len(SHAPES) + 1) - 1].format(**{name: f"{place:.1f}" for name, place in ends.items()})
    return f'<path d="{path}" {style}/>'
