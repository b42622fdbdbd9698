"""Picture of a run: verdicts by theorem and operator, with the smallest looseness."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape

from ..verdicts.verdict import Comparison, Verdict

COLOURS = {  # of Okabe and Ito, lightened for black text
    Verdict.HOLDS: "#7fd1b9",
    Verdict.VIOLATED: "#ff7f50",
    Verdict.INCONCLUSIVE: "#f5d58a",
    Verdict.OUT_OF_SCOPE: "#d4d4d4",
}
GOOD, BAD = "#00694a", "#b3261e"
CHARACTER, LINE = 7.2, 16  # pixels: an upper estimate of a character's width at 13 pixels, and a line's height
CLAIM, COLUMN, MARGIN = 46, 17, 12  # characters of a claim and of an operator in one line; pixels around
UNNAMED = "no theorem covers the operator"
BREAKS = re.compile(r"[^_:=, ]*[_:=, ]?")


def headline(comparisons: Sequence[Comparison]) -> tuple[str, bool]:
    """Return the result of a run in one line, and whether nothing is VIOLATED."""
    violated = [c for c in comparisons if c.verdict is Verdict.VIOLATED]
    silent = "" if any(c.decides for c in violated) or not violated else " (timings, which never decide)"
    return f"{len(violated)} VIOLATED of {len(comparisons)} comparisons{silent}", not violated


def tightest(rows: Sequence[Comparison]) -> float | None:
    """Return the smallest looseness of the judged upper and lower bounds in ``rows``; None if there is none."""
    judged = (c.looseness for c in rows if c.side != "tight" and c.verdict is not Verdict.OUT_OF_SCOPE)
    factors = [factor for factor in judged if factor is not None and factor > 0]
    return min(factors, default=None)


def overview_svg(comparisons: Sequence[Comparison], *, with_headline: bool = True) -> str:
    """Return the picture as SVG: one row per theorem, one column per operator, bars of verdicts, and the looseness.

    ``with_headline`` writes the number of violations at the top.
    """
    claims = list(dict.fromkeys(c.theorem or UNNAMED for c in comparisons))
    operators = list(dict.fromkeys(c.operator for c in comparisons))
    left, column = MARGIN + CLAIM * CHARACTER, COLUMN * CHARACTER + MARGIN
    width = left + column * len(operators) + MARGIN
    words, is_good = headline(comparisons)
    parts, top = [], 12.0
    if with_headline:
        parts.append(svg_text(MARGIN, 30, words, size=20, weight="bold", fill=GOOD if is_good else BAD))
        top = 52.0
    parts += _legend(comparisons, top)
    heads = [wrapped(name, COLUMN - 2) for name in operators]  # bold is wider
    top += 32 + LINE * max(map(len, heads))
    for number, lines in enumerate(heads):
        parts += _lines(left + column * number, top - LINE * len(lines), lines, weight="bold")
    for claim in claims:
        lines = wrapped(claim, CLAIM - 2)
        row_height = max(LINE * len(lines), 20) + 8
        parts.append(f'<path d="M{MARGIN} {top:g}H{width - MARGIN:g}" stroke="#ccc"/>')
        parts += _lines(MARGIN, top + 4, lines)
        for number, operator in enumerate(operators):
            rows = [c for c in comparisons if (c.theorem or UNNAMED) == claim and c.operator == operator]
            parts += _cell(rows, left + column * number, top + 4, column - MARGIN)
        top += row_height
    words_below = wrapped(EXPLANATION, int((width - 2 * MARGIN) / CHARACTER))
    parts += _lines(MARGIN, top + 12, words_below)
    height = top + 24 + LINE * len(words_below)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
    label = f'role="img" aria-label="{escape(words)}" font-family="system-ui,sans-serif" font-size="13">'
    return head + label + '<rect width="100%" height="100%" fill="#fff"/>' + "".join(parts) + "</svg>\n"


EXPLANATION = (
    "A bar shows the shares of the verdicts of all comparisons with a theorem. x 1.05: the tightest of its upper "
    "and lower bounds lies 5 % beyond the measurement; no number: an equality, or nothing was judged."
)


def _legend(comparisons: Sequence[Comparison], y: float) -> list[str]:
    """Return the colours of the verdicts and their counts."""
    counted, x, parts = Counter(c.verdict for c in comparisons), float(MARGIN), []
    for verdict, colour in COLOURS.items():
        label = f"{counted[verdict]} {verdict}"
        parts += [
            f'<rect x="{x:g}" y="{y:g}" width="14" height="14" fill="{colour}"/>',
            svg_text(x + 20, y + 12, label),
        ]
        x += 44 + 1.2 * CHARACTER * len(label)
    return parts


def _cell(rows: Sequence[Comparison], x: float, y: float, width: float) -> list[str]:
    """Return the bar of one theorem and operator."""
    if not rows:
        return []
    counted, start, parts = Counter(c.verdict for c in rows), x, []
    titles = ", ".join(f"{counted[verdict]} {verdict}" for verdict in COLOURS if counted[verdict])
    for verdict, colour in COLOURS.items():
        share = width * counted[verdict] / len(rows)
        if share:
            parts.append(f'<rect x="{start:.1f}" y="{y:g}" width="{share:.1f}" height="20" fill="{colour}"/>')
        start += share
    factor = tightest(rows)
    label = "" if factor is None else svg_text(x + 6, y + 15, f"x {factor:.3g}")
    return [f"<g><title>{escape(titles)}</title>{''.join(parts)}{label}</g>"]


def wrapped(text: str, characters: int) -> list[str]:
    """Return lines of at most this many characters, broken after spaces, commas, underscores, colons and equals signs.

    A longer word is split.
    """
    lines = [""]
    for piece in filter(None, BREAKS.findall(text)):
        if len((lines[-1] + piece).rstrip()) > characters and lines[-1]:
            lines.append("")
        lines[-1] += piece
        while len(lines[-1].rstrip()) > characters:
            lines[-1:] = [lines[-1][:characters], lines[-1][characters:]]
    return [line.rstrip() for line in lines]


def _lines(x: float, y: float, lines: Sequence[str], *, weight: str = "normal") -> list[str]:
    return [svg_text(x, y + 13 + LINE * number, line, weight=weight) for number, line in enumerate(lines)]


def svg_text(x: float, y: float, words: str, *, size: int = 13, weight: str = "normal", fill: str = "#111") -> str:
    """Return one line of text as SVG; ``x`` is its left end and ``y`` its base line, in pixels."""
    style = f'font-size="{size}" font-weight="{weight}" fill="{fill}"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'
