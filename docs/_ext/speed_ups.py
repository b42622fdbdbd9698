"""The tuned speed-ups over synchronous SGD as a table, from the committed record."""

from __future__ import annotations

import reproduced
from markdown_text import table

from gpu_validation.verdicts.verdict import Comparison

COLUMNS = (("strongest fixed",), ("gamma", "derived"), ("basic", "published"))
HEADER = ["problem", "target", "strongest fixed tau", "AdaComm with saturation", "AdaComm, basic"]


def speed_up_table() -> str:
    """One row for a loss in the transient and one for a loss near the floor of every problem, then real seconds."""
    rows = reproduced.script("speed-up").check()
    speed_ups = [row for row in rows if row.facts.keys() == {"target_loss"}]
    lines = []
    for problem in dict.fromkeys(row.workload for row in speed_ups):
        of_problem = [row for row in speed_ups if row.workload == problem]
        losses = list(dict.fromkeys(row.facts["target_loss"] for row in of_problem))
        for where, loss in (("transient", losses[1]), ("near the floor", losses[-1])):
            at_target = [row for row in of_problem if row.facts["target_loss"] == loss]
            lines.append([problem, f"{where}, {loss:g}", *(_cell(at_target, of) for of in COLUMNS)])
    seconds = [row for row in rows if "real_seconds_per_step" in row.facts]
    for problem in dict.fromkeys(row.workload for row in seconds):
        columns = (("tau = 5",), *COLUMNS[1:])
        cells = [_cell([row for row in seconds if row.workload == problem], of) for of in columns]
        lines.append([f"{problem}, tau = 5", "", *cells])
    return table(HEADER, lines)


def _cell(rows: list[Comparison], methods: tuple[str, ...]) -> str:
    for row in rows:
        if row.operator in methods:
            low, high = row.interval
            name = f", {row.operator} exponent" if row.operator in ("derived", "published") else ""
            return f"{row.measured:.2f} ({low:.2f} to {high:.2f}){name}"
    return ""
