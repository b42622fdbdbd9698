"""A self-contained HTML page with verdicts, figures and all comparisons; it opens offline."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from .console import MEANING, headline
from .looseness import looseness_svg, looseness_words
from .overview import COLOURS, overview_svg
from .verdict import Comparison, Evidence, Outcome, Verdict, violation

COLUMNS: tuple[tuple[str, Callable[[Comparison], str]], ...] = (
    ("operator", lambda c: c.operator),
    ("theorem", lambda c: c.theorem),
    ("on", lambda c: c.workload),
    ("tau", lambda c: "" if c.tau is None else str(c.tau)),
    ("quantity", lambda c: c.quantity),
    ("measured", lambda c: f"{c.measured:.6g}"),
    ("interval", lambda c: f"[{c.interval[0]:.6g}, {c.interval[1]:.6g}]"),
    ("bound", lambda c: "" if c.bound is None else f"{c.bound:.6g}"),
    ("noticed at bound x", lambda c: noticed_text(c)),
    ("looseness", lambda c: "" if c.looseness is None or c.side == "tight" else f"{c.looseness:.3g}"),
    ("verdict", lambda c: str(c.verdict)),
    ("outcome", lambda c: str(c.outcome)),
    ("reason", lambda c: c.reason),
)
STYLE = """
:root{--fore:#1b1b1b;--back:#fff;--line:#8884;--holds:#00694a;--violated:#b3261e;--unsure:#8a5a00;--outside:#666}
@media(prefers-color-scheme:dark){:root{--fore:#e6e6e6;--back:#16181c;--holds:#5fd3ad;--violated:#ff8a80;
--unsure:#f0b64d;--outside:#a0a0a0}}
body{font:16px/1.5 system-ui,sans-serif;margin:1.5rem auto;max-width:76rem;padding:0 1rem;color:var(--fore);
background:var(--back);overflow-wrap:anywhere}
table{border-collapse:collapse;font-size:.8rem;overflow-wrap:normal}
td,th{border-bottom:1px solid var(--line);padding:.2rem .5rem;text-align:left}
.wide{overflow-x:auto}figure{margin:1rem 0;padding:.5rem;border-radius:.5rem}
figure svg{max-width:100%;height:auto}figcaption{color:var(--fore);font-size:.9rem}
.overview{overflow-x:auto}.overview svg{min-width:44rem}
.HOLDS{color:var(--holds)}.VIOLATED{color:var(--violated);font-weight:700}.INCONCLUSIVE{color:var(--unsure)}
.OUT_OF_SCOPE{color:var(--outside)}.good{color:var(--holds)}
.verdict{font-size:1.4rem;font-weight:700;margin:.5rem 0}
.stop{border-left:.3rem solid var(--violated);padding:.5rem 1rem}
h2{margin:1.2rem 0 .3rem;font-size:1.25rem}
.rows{max-height:85vh;overflow:auto}.rows thead th{position:sticky;top:0;background:var(--back)}
.rows td:nth-child(1),.rows td:nth-child(2){overflow-wrap:anywhere;min-width:7rem}
.rows td:nth-child(5){min-width:11rem}.rows td:nth-child(13){min-width:14rem}
summary{font-size:1.15rem;font-weight:600;cursor:pointer;padding:.4rem 0}
.tools{display:flex;flex-wrap:wrap;gap:.5rem 1rem;align-items:center;margin:.5rem 0}
.tools input[type=search]{font:inherit;min-width:12rem;flex:1;max-width:24rem;color:inherit;background:transparent;
border:1px solid var(--outside);border-radius:.3rem;padding:.2rem .5rem}
th button{font:inherit;font-weight:inherit;color:inherit;background:none;border:0;padding:0;cursor:pointer;
text-align:left}
th button::after{content:" \\2195"}[aria-sort=ascending] button::after{content:" \\2191"}
[aria-sort=descending] button::after{content:" \\2193"}
.by-operator{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden;white-space:nowrap}
@media screen and (max-width:48rem){h1{font-size:1.5rem;margin:.5rem 0}
.by-operator{position:static;clip-path:none;width:auto;height:auto;white-space:normal}.by-operator table{width:100%}
.by-operator th[scope=row]{overflow-wrap:anywhere;font-weight:400}.by-operator [scope=col]{font-size:.7rem}
.by-operator td{text-align:right}}
@page{size:A4;margin:12mm}@page wide{size:A4 landscape;margin:12mm}
@media print{:root{--fore:#000;--back:#fff;--holds:#00694a;--violated:#b3261e;--unsure:#8a5a00;--outside:#555}
body{font-size:10pt;margin:0;max-width:none;padding:0}.tools{display:none}.overview svg{min-width:0}
table{font-size:6.5pt}td,th{padding:.1rem .2rem}tr,figure{break-inside:avoid}.wide,.overview{overflow:visible}
.rows{max-height:none;page:wide}.rows td:nth-child(1){min-width:8em}
.rows td:nth-child(2){min-width:12em}.rows td:nth-child(5){min-width:12em}
.rows td:nth-child(13){min-width:16em}.rows thead th{position:static}
th button{display:contents}th button::after{content:none}
section,figure,h2,summary{break-inside:avoid}h2,summary{break-after:avoid}figure svg{max-height:230mm}}
"""
SCRIPT = """
const table=document.querySelector("#comparisons"),search=document.querySelector("#search"),
problems=document.querySelector("#problems"),shown=document.querySelector("#shown"),rows=[...table.tBodies[0].rows];
function show(){
  const words=search.value.toLowerCase().split(/\\s+/).filter(Boolean);let count=0;
  for(const row of rows){
    const text=row.textContent.toLowerCase();
    row.hidden=problems.checked&&row.className==="HOLDS"||!words.every(word=>text.includes(word));
    count+=!row.hidden;
  }
  shown.textContent=`${count} of ${rows.length} shown`;
}
function sort(column,button){
  const down=button.dataset.order==="up";
  for(const other of table.querySelectorAll("th button")){delete other.dataset.order;
    other.parentElement.removeAttribute("aria-sort")}
  button.dataset.order=down?"down":"up";button.parentElement.setAttribute("aria-sort",down?"descending":"ascending");
  const value=row=>row.cells[column].textContent.replace("[",""),factor=down?-1:1;
  rows.sort((a,b)=>{
    const x=value(a),y=value(b),p=parseFloat(x),q=parseFloat(y);
    if(x===""||y==="")return (x==="")-(y==="");
    return factor*(Number.isNaN(p)||Number.isNaN(q)?x.localeCompare(y):p-q);
  });
  table.tBodies[0].append(...rows);
}
search.addEventListener("input",show);problems.addEventListener("change",show);
table.querySelectorAll("th button").forEach((button,column)=>
  button.addEventListener("click",()=>sort(column,button)));
show();
"""
SHORT_HEADS = {  # where a narrow column may break them
    Outcome.EVIDENCE: "evi&shy;dence",
    Outcome.SAME_CODE: "same code",
    Outcome.NO_POWER: "no power",
    Outcome.INCONCLUSIVE: "incon&shy;clusive",
    Outcome.NOT_COVERED: "not covered",
    Outcome.VIOLATED: "VIO&shy;LATED",
}
MOST_NAMED = 8  # violated rows listed at the top
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
<h1>{title}</h1><p>{description}</p>{stop}{overview}{violated}{looseness}
<details><summary>What the verdicts are worth</summary>{counts}{power}</details>
{figures}
<details><summary>All {number} comparisons</summary>
<p>The end of an interval that can reject a bound has the run's false-alarm budget of {budget:g}, split over all sampled
comparisons, for any distribution on the declared range. The other end misses with 5 %. Exact comparisons have a point.
"Noticed at bound x" gives the factors by which the bound could be wrong before the row would be
VIOLATED. Looseness is bound / measured for upper bounds and measured / bound for lower ones. Timings never
decide the exit code.</p>
<div class="tools"><input id="search" type="search" placeholder="filter: words of a row" aria-label="filter">
<label><input id="problems" type="checkbox"> only problems (what does not hold)</label>
<span id="shown" role="status"></span></div>
<div class="wide rows" role="region" tabindex="0" aria-label="All comparisons">{table}</div></details>{settings}
<details><summary>Circumstances</summary><pre class="wide">{environment}</pre></details>
<script>{script}</script></body></html>
"""


class Titled(Protocol):
    """Title of a page."""

    @property
    def name(self) -> str:
        """Name of the study."""

    @property
    def description(self) -> str:
        """Description in one sentence."""

    @property
    def false_alarm(self) -> float:
        """Probability that the whole run rejects a true claim."""


def page(
    experiment: Titled, figures: Sequence[str], comparisons: Sequence[Comparison], message: str, circumstances: str
) -> str:
    """Return the page as text; ``figures`` are results of ``figure_html``."""
    return PAGE.format(
        title=f"ratedist validation: {html.escape(experiment.name)}",
        style=STYLE,
        description=html.escape(experiment.description),
        stop=f'<p class="stop">{html.escape(message)}</p>' if message else "",
        overview=_overview(comparisons),
        violated=_violated(comparisons),
        looseness=_looseness(comparisons),
        counts=f"<p>{html.escape(MEANING)}.</p>",
        power=_power(comparisons),
        figures=f"<details><summary>Figures</summary>{''.join(figures)}</details>" if figures else "",
        number=len(comparisons),
        budget=experiment.false_alarm,
        table=_table(comparisons),
        settings=_settings(comparisons),
        environment=html.escape(circumstances),
        script=SCRIPT,
    )


def _overview(comparisons: Sequence[Comparison]) -> str:
    """Return the result of the run as one line and one picture."""
    if not comparisons:
        return "<p>Nothing was compared.</p>"
    words, is_good = headline(comparisons)
    line = f'<p class="verdict {"good" if is_good else "VIOLATED"}">{html.escape(words)}</p>'
    picture = _picture("outcomes by theorem and operator", overview_svg(comparisons, with_headline=False))
    return line + _by_operator(comparisons) + picture


def _by_operator(comparisons: Sequence[Comparison]) -> str:
    """Return the outcomes per operator as a table, for phones and screen readers."""
    counted = Counter((c.operator, c.outcome) for c in comparisons)
    head = "".join(f'<th scope="col">{SHORT_HEADS[outcome]}</th>' for outcome in Outcome)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(operator)}</th>'
        + "".join(_count(outcome, counted[operator, outcome]) for outcome in Outcome)
        + "</tr>"
        for operator in dict.fromkeys(c.operator for c in comparisons)
    )
    return f'<div class="by-operator"><table><tr><th scope="col">operator</th>{head}</tr>{rows}</table></div>'


def _count(outcome: Outcome, number: int) -> str:
    """Return a cell in the colour of its outcome; a zero has none."""
    style = f' style="background:{COLOURS[outcome]};color:#111"' if number else ""
    return f"<td{style}>{number}</td>"


def _looseness(comparisons: Sequence[Comparison]) -> str:
    """Return the looseness of the bounds as a sentence and a chart."""
    words = looseness_words(comparisons)
    if not words:
        return ""
    chart = _picture("looseness by theorem and operator", looseness_svg(comparisons))
    return f"<section><h2>How close the bounds come</h2><p>{html.escape(words)}</p>{chart}</section>"


def _picture(label: str, svg: str) -> str:
    """Return a wide picture with scroll bars that the keyboard can use."""
    return f'<figure class="overview" role="region" tabindex="0" aria-label="{label}">{svg}</figure>'


def _violated(comparisons: Sequence[Comparison]) -> str:
    """Return the VIOLATED rows as sentences."""
    accused = [c for c in comparisons if c.verdict is Verdict.VIOLATED]
    if not accused:
        return ""
    items = "".join(f"<li>{html.escape(violation(c))}</li>" for c in accused[:MOST_NAMED])
    more = f"<p>{len(accused) - MOST_NAMED} more are below.</p>" if len(accused) > MOST_NAMED else ""
    return f"<h2>What is violated</h2><ul>{items}</ul>{more}"


def _power(comparisons: Sequence[Comparison]) -> str:
    """Return a table of all claims with informative rows: their number, and the factors that the sharpest notices."""
    claims: dict[tuple[str, str], list[Comparison]] = {}
    for c in comparisons:
        if c.evidence is Evidence.INFORMATIVE:
            claims.setdefault((c.theorem, c.quantity), []).append(c)
    if not claims:
        return ""
    judged = Counter((c.theorem, c.quantity) for c in comparisons if c.evidence is not None)
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
    names = ("claim", "quantity", "rows that would show a wrong bound", "the sharpest notices a bound x", "verdicts")
    head = "".join(f"<th>{name}</th>" for name in names)
    return (
        f'<h2>What would have been noticed</h2><div class="wide"><table><tr>{head}</tr>{"".join(lines)}</table></div>'
    )


def _sharpest(rows: Sequence[Comparison]) -> str:
    """Return the largest factor below 1 and the smallest above 1 that some row would notice."""
    noticed = [row.noticed for row in rows if row.noticed is not None]
    if not noticed:
        return "any other number"
    return _factors(max(min(below, 1) for below, _ in noticed), min(max(above, 1) for _, above in noticed))


def noticed_text(c: Comparison) -> str:
    """Return the factors by which the bound could be wrong before the row is VIOLATED; empty without a verdict."""
    return "" if c.noticed is None or c.structural else _factors(*c.noticed)


def _factors(below: float, above: float) -> str:
    ends = {f"< {below:.3g}": below > 0, f"> {above:.3g}": above < math.inf}
    return " or ".join(text for text, stated in ends.items() if stated) or "none"


def _settings(comparisons: Sequence[Comparison]) -> str:
    """Return the assumptions of every theorem in the table."""
    from bounds import all_bounds

    bounds = all_bounds()
    used = [bounds[name] for name in dict.fromkeys(c.theorem for c in comparisons) if name in bounds]
    items = "".join(f"<dt>{bound.name}</dt><dd>{html.escape(bound.setting.text())}</dd>" for bound in used)
    return f"<details><summary>What the theorems need</summary><dl>{items}</dl></details>" if items else ""


def _table(comparisons: Sequence[Comparison]) -> str:
    head = "".join(f'<th><button type="button">{name}</button></th>' for name, _ in COLUMNS)
    rows = (
        f'<tr class="{c.verdict}">' + "".join(f"<td>{html.escape(show(c))}</td>" for _, show in COLUMNS) + "</tr>"
        for c in comparisons
    )
    return f'<table id="comparisons"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
