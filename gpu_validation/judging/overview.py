"""One picture of a run: the outcomes of every theorem and operator, and how close the bounds come."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from html import escape

from bounds.claims import Contractive, StrictlyContractive, Unbiased

from .console import headline
from .verdict import Comparison, Outcome, Verdict

COLOURS = {  # from the strongest statement to none; VIOLATED stands out on paper as well
    Outcome.EVIDENCE: "#2e9d7f",
    Outcome.SAME_CODE: "#9bd8c6",
    Outcome.NO_POWER: "#d9efe8",
    Outcome.INCONCLUSIVE: "#f5d58a",
    Outcome.NOT_COVERED: "#d4d4d4",
    Outcome.VIOLATED: "#ff7f50",
}
STYLE = """
svg{max-width:100%;height:auto;background:#fff;color:#111}.good{fill:#00694a}.bad{fill:#b3261e}
text{fill:currentColor}.on{fill:#111}
@media(prefers-color-scheme:dark){svg{background:#16181c;color:#e6e6e6}.good{fill:#5fd3ad}.bad{fill:#ff8a80}}
""".replace("\n", "")
CHARACTER, LINE = 7.2, 16  # pixels: an upper estimate of a character's width at 13 pixels, and a line's height
CLAIM, COLUMN, MARGIN = 36, 14, 12  # characters of a row's name and of an operator in one line; pixels around
LEGEND = 780  # pixels: the least width of a picture, for the legend in one line
UNNAMED = "no theorem covers the operator"
BREAKS = re.compile(r"[^_:=, ]*[_:=, ]?")
BITS, ERROR, BYTES, TRAINING, SECONDS = (
    "How many bits has a message?",
    "How large is its error?",
    "How many bytes travel?",
    "How far does training get?",
    "How long does it take?",
)
UNITS = {"bit": BITS, "byte": BYTES, "s": SECONDS}
CLAIMS = {
    f"{StrictlyContractive.__name__} claim": "contraction of every message",
    f"{Contractive.__name__} claim": "contraction on average",
    f"{Unbiased.__name__} claim": "variance of unbiased messages",
}
NAMES = {  # what a row compares, in words; theorems of ``bounds`` keep their names
    **CLAIMS,
    "Operator.bits": "length that the operator states",
    "gaussian_bits": "limit for Gaussian vectors",
    "gaussian_unbiased_bits": "limit for unbiased operators, Gaussian vectors",
    "all-gather of messages and 8-byte headers": "payload that the exchange predicts",
    "format of gloo": "bytes of the TCP streams",
    "loopback counter, no shaping (headers, acknowledgements and other programs included)": "bytes of the interface",
    "E max of mean Y + D / tau": "seconds of a step",
    "(Y + D) / (Y + D / tau)": "gain of tau local steps",
}


def question(c: Comparison) -> str:
    """Return the question that a row answers.

    Parameters
    ----------
    c : Comparison
        Any row.
    """
    if c.theorem in CLAIMS:
        return ERROR
    return SECONDS if c.theorem == "(Y + D) / (Y + D / tau)" else UNITS.get(c.unit, TRAINING)


def tightest(rows: Sequence[Comparison]) -> float | None:
    """Return the smallest looseness of the judged upper and lower bounds in ``rows``; None if there is none."""
    judged = (c.looseness for c in rows if c.side != "tight" and c.verdict is not Verdict.OUT_OF_SCOPE)
    factors = [factor for factor in judged if factor is not None and factor > 0]
    return min(factors, default=None)


def overview_svg(comparisons: Sequence[Comparison], *, with_headline: bool = True) -> str:
    """Return the picture as SVG: rows by question and theorem, a column per operator, bars of outcomes, looseness.

    Parameters
    ----------
    comparisons : sequence of Comparison
        At least one.
    with_headline : bool, optional
        Whether the headline stands at the top; False where the page has it already.
    """
    operators = list(dict.fromkeys(c.operator for c in comparisons))
    left, column = MARGIN + CLAIM * CHARACTER, COLUMN * CHARACTER + MARGIN
    width = max(left + column * len(operators) + MARGIN, LEGEND)
    words, is_good = headline(comparisons)
    parts, top = [], 12.0
    if with_headline:
        parts.append(svg_text(MARGIN, 30, words, size=20, weight="bold", kind="good" if is_good else "bad"))
        top = 52.0
    parts += _legend(comparisons, top)
    heads = [wrapped(name, COLUMN - 2) for name in operators]  # bold is wider
    top += 32 + LINE * max(map(len, heads))
    for number, lines in enumerate(heads):
        parts += _lines(left + column * number, top - LINE * len(lines), lines, weight="bold")
    for asked in (BITS, ERROR, BYTES, TRAINING, SECONDS):
        of_question = [c for c in comparisons if question(c) == asked]
        if of_question:
            parts.append(svg_text(MARGIN, top + 22, asked, weight="bold"))
            top += 30
        for claim in dict.fromkeys(c.theorem for c in of_question):
            lines = wrapped(NAMES.get(claim, claim) or UNNAMED, CLAIM - 2)
            row_height = max(LINE * len(lines), 20) + 8
            parts.append(f'<path d="M{MARGIN} {top:g}H{width - MARGIN:g}" stroke="#8885"/>')
            parts += _lines(MARGIN, top + 4, lines)
            for number, operator in enumerate(operators):
                rows = [c for c in of_question if c.theorem == claim and c.operator == operator]
                parts += _cell(rows, left + column * number, top + 4, column - MARGIN)
            top += row_height
    words_below = wrapped(EXPLANATION, int((width - 2 * MARGIN) / CHARACTER))
    parts += _lines(MARGIN, top + 12, words_below)
    height = top + 24 + LINE * len(words_below)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
    label = f'role="img" aria-label="{escape(words)}" font-family="system-ui,sans-serif" font-size="13">'
    return f"{head}{label}<style>{STYLE}</style>{''.join(parts)}</svg>\n"


EXPLANATION = (
    "A bar shows the outcomes of all comparisons of its row, by their shares. x 1.05: the tightest of its upper "
    "and lower bounds lies 5 % beyond what was measured; no number: an equality, or nothing was judged."
)


def _legend(comparisons: Sequence[Comparison], y: float) -> list[str]:
    """Return the colours of the outcomes and how often each one occurs."""
    counted, x, parts = Counter(c.outcome for c in comparisons), float(MARGIN), []
    for outcome, colour in COLOURS.items():
        label = f"{counted[outcome]} {outcome}"
        parts += [
            f'<rect x="{x:g}" y="{y:g}" width="14" height="14" fill="{colour}"/>',
            svg_text(x + 20, y + 12, label),
        ]
        x += 36 + CHARACTER * len(label)
    return parts


def _cell(rows: Sequence[Comparison], x: float, y: float, width: float) -> list[str]:
    """Return the bar of one row and operator."""
    if not rows:
        return []
    counted, start, parts = Counter(c.outcome for c in rows), x, []
    titles = ", ".join(f"{counted[outcome]} {outcome}" for outcome in COLOURS if counted[outcome])
    for outcome, colour in COLOURS.items():
        share = width * counted[outcome] / len(rows)
        if share:
            parts.append(f'<rect x="{start:.1f}" y="{y:g}" width="{share:.1f}" height="20" fill="{colour}"/>')
        start += share
    factor = tightest(rows)
    label = "" if factor is None else svg_text(x + 6, y + 15, f"x {factor:.3g}", kind="on")
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


def svg_text(x: float, y: float, words: str, *, size: int = 13, weight: str = "normal", kind: str = "") -> str:
    """Return one line of text as SVG.

    Parameters
    ----------
    x : float, pixels
        Where the line begins.
    y : float, pixels
        Its base line.
    words : str
        The text.
    size : int, optional, pixels
        Height of the letters.
    weight : str, optional
        Weight of the letters.
    kind : str, optional
        A class of ``STYLE``; without one the text has the colour of its surroundings.
    """
    style = f'font-size="{size}" font-weight="{weight}"' + (f' class="{kind}"' if kind else "")
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}</text>'
