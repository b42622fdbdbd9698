"""One self-contained HTML page: verdicts, figures, every comparison.  Opens offline."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from ..verdicts.verdict import Comparison, Evidence, Verdict

COLUMNS: tuple[tuple[str, Callable[[Comparison], str]], ...] = (
    ("operator", lambda c: c.operator),
    ("on", lambda c: c.workload),
    ("tau", lambda c: "" if c.tau is None else str(c.tau)),
    ("quantity", lambda c: c.quantity),
    ("measured", lambda c: f"{c.measured:.6g}"),
    ("interval", lambda c: f"[{c.interval[0]:.6g}, {c.interval[1]:.6g}]"),
    ("bound", lambda c: "" if c.bound is None else f"{c.bound:.6g}"),
    ("noticed at bound x", lambda c: noticed_text(c)),
    ("looseness", lambda c: "" if c.looseness is None or c.side == "tight" else f"{c.looseness:.3g}"),
    ("verdict", lambda c: str(c.verdict)),
    ("evidence", lambda c: "" if c.evidence is None else str(c.evidence)),
    ("reason", lambda c: c.reason),
)
STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;font-size:.8rem}td,th{border-bottom:1px solid #8884;padding:.2rem .5rem;text-align:left}
.wide{overflow-x:auto}figure{background:#fff;margin:1rem 0;padding:.5rem;border-radius:.5rem}
figure svg{max-width:100%;height:auto}figcaption{color:#333;font-size:.9rem}
.HOLDS{color:#00694a}.VIOLATED{color:#b3261e;font-weight:700}.INCONCLUSIVE{color:#8a5a00}.OUT_OF_SCOPE{color:#666}
.stop{border-left:.3rem solid #b3261e;padding:.5rem 1rem}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181c}.HOLDS{color:#5fd3ad}.VIOLATED{color:#ff8a80}
.INCONCLUSIVE{color:#f0b64d}.OUT_OF_SCOPE{color:#a0a0a0}}
"""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
<h1>{title}</h1><p>{description}</p>{stop}{counts}{power}{figures}<h2>Comparisons</h2>
<p>The end of an interval that would accuse holds the run's false-alarm budget of {budget:g}, split over all sampled
comparisons, whatever the law of the draws in their declared range; the other end misses with 5 %; a point where the
comparison is exact. "Noticed at bound x" says by which factors the bound could be wrong before the row would read
VIOLATED. Looseness is bound / measured for upper bounds and measured / bound for lower ones. Rows on seconds never
decide the exit code.</p>
<div class="wide">{table}</div>{settings}<h2>Circumstances</h2><pre>{environment}</pre></body></html>
"""


class Titled(Protocol):
    """What a page says about its experiment."""

    @property
    def name(self) -> str:
        """Of the experiment."""

    @property
    def description(self) -> str:
        """In one sentence."""

    @property
    def false_alarm(self) -> float:
        """Chance that the whole run accuses a true claim."""


def page(
    experiment: Titled, figures: Sequence[str], comparisons: Sequence[Comparison], message: str, circumstances: str
) -> str:
    """Return the page as text.

    Parameters
    ----------
    figures : sequence of str
        As ``figure_html`` gives them.
    """
    return PAGE.format(
        title=f"ratedist validation: {html.escape(experiment.name)}",
        style=STYLE,
        description=html.escape(experiment.description),
        stop=f'<p class="stop">{html.escape(message)}</p>' if message else "",
        counts=_counts(comparisons),
        power=_power(comparisons),
        figures="".join(figures),
        budget=experiment.false_alarm,
        table=_table(comparisons),
        settings=_settings(comparisons),
        environment=html.escape(circumstances),
    )


def _counts(comparisons: Sequence[Comparison]) -> str:
    """Return verdicts across, what they are worth down."""
    counted = Counter((c.evidence, c.verdict) for c in comparisons)
    head = "<th></th>" + "".join(f'<th class="{v}">{v}</th>' for v in Verdict)
    rows = "".join(
        f"<tr><th>{'no verdict' if evidence is None else evidence}</th>"
        + "".join(f'<td class="{v}">{counted[evidence, v] or ""}</td>' for v in Verdict)
        + "</tr>"
        for evidence in (*Evidence, None)
    )
    worth = (
        "informative: a bound wrong by a factor of two would have been noticed; without power: it would not; "
        "structural: both numbers come from the same code."
    )
    return f"<table><tr>{head}</tr>{rows}</table><p>{worth}</p>"


def _power(comparisons: Sequence[Comparison]) -> str:
    """Return every claim that an informative row is about: how many there are, and what the sharpest would have
    noticed.
    """
    claims: dict[tuple[str, str], list[Comparison]] = {}
    for c in comparisons:
        if c.evidence is Evidence.INFORMATIVE:
            claims.setdefault((c.theorem, c.quantity.partition(":")[0]), []).append(c)
    if not claims:
        return ""
    judged = Counter((c.theorem, c.quantity.partition(":")[0]) for c in comparisons if c.evidence is not None)
    lines = []
    for claim, rows in claims.items():
        verdicts = Counter(row.verdict for row in rows)
        cells = [
            *(html.escape(words) for words in claim),
            f"{len(rows)} of {judged[claim]}",
            html.escape(_sharpest(rows)),
            ", ".join(f'<span class="{v}">{verdicts[v]} {v}</span>' for v in Verdict if verdicts[v]),
        ]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    names = ("claim", "quantity", "informative rows", "the sharpest notices a bound x", "what they say")
    head = "".join(f"<th>{name}</th>" for name in names)
    return (
        f'<h2>What would have been noticed</h2><div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'
    )


def _sharpest(rows: Sequence[Comparison]) -> str:
    """Return the largest factor below 1 and the smallest above it that some row would have noticed."""
    noticed = [row.noticed for row in rows if row.noticed is not None]
    if not noticed:
        return "any other number"
    return _factors(max(min(below, 1) for below, _ in noticed), min(max(above, 1) for _, above in noticed))


def noticed_text(c: Comparison) -> str:
    """Say by which factors the bound could be wrong before the row would be VIOLATED; empty where it has no verdict."""
    return "" if c.noticed is None or c.structural else _factors(*c.noticed)


def _factors(below: float, above: float) -> str:
    ends = {f"< {below:.3g}": below > 0, f"> {above:.3g}": above < math.inf}
    return " or ".join(text for text, stated in ends.items() if stated) or "none"


def _settings(comparisons: Sequence[Comparison]) -> str:
    """Return what every theorem of the table is about and needs."""
    from bounds import all_bounds

    bounds = all_bounds()
    used = [bounds[name] for name in dict.fromkeys(c.theorem for c in comparisons) if name in bounds]
    items = "".join(f"<dt>{bound.name}</dt><dd>{html.escape(bound.setting.text())}</dd>" for bound in used)
    return f"<h2>What the theorems need</h2><dl>{items}</dl>" if items else ""


def _table(comparisons: Sequence[Comparison]) -> str:
    head = "".join(f"<th>{name}</th>" for name, _ in COLUMNS)
    rows = (
        f'<tr class="{c.verdict}">' + "".join(f"<td>{html.escape(show(c))}</td>" for _, show in COLUMNS) + "</tr>"
        for c in comparisons
    )
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
