"""The tuned speed-ups over synchronous SGD as a table, from the committed record."""

from __future__ import annotations

import re

import reproduced
from markdown_text import table

from gpu_validation.verdicts.verdict import Comparison

COLUMNS = (("strongest fixed",), ("gamma", "derived"), ("basic", "published"))
HEADER = ["problem", "target", "strongest fixed tau", "AdaComm with saturation", "AdaComm, basic"]


def speed_up_table() -> str:
    """One row for a loss in the transient and one for a loss near the floor of every problem, then real seconds."""
    rows = reproduced.script("tuned_speed_up").check()
    speed_ups = [row for row in rows if re.fullmatch(r"times sooner to loss [.\d]+", row.quantity)]
    lines = []
    for problem in dict.fromkeys(row.workload for row in speed_ups):
        targets = list(dict.fromkeys(row.quantity for row in speed_ups if row.workload == problem))
        for where, target in (("transient", targets[1]), ("near the floor", targets[-1])):
            loss = target.rsplit(maxsplit=1)[-1]
            lines.append([problem, f"{where}, {loss}", *(_cell(speed_ups, problem, target, of) for of in COLUMNS)])
    seconds = [row for row in rows if row.quantity == "times sooner in real seconds"]
    for problem in dict.fromkeys(row.workload for row in seconds):
        columns = (("tau = 5",), *COLUMNS[1:])
        cells = [_cell(seconds, problem, "times sooner in real seconds", of) for of in columns]
        lines.append([f"{problem}, tau = 5", "", *cells])
    return table(HEADER, lines)


def _cell(rows: list[Comparison], problem: str, quantity: str, methods: tuple[str, ...]) -> str:
    for row in rows:
        if (row.workload, row.quantity) == (problem, quantity) and row.operator in methods:
            low, high = row.interval
            name = f", {row.operator} exponent" if row.operator in ("derived", "published") else ""
            return f"{row.measured:.2f} ({low:.2f} to {high:.2f}){name}"
    return ""
