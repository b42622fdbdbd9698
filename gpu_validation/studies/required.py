"""Rows that each preset requires, listed in required.json; a missing one is INCONCLUSIVE, "not measured".

The list is written by ``docs/studies/required_rows.py`` from the recorded runs, so that a row cannot vanish with the
record, the claim or the code that it comes from.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..judging.judge import unmeasured
from ..judging.verdict import Comparison, Verdict

LISTED = Path(__file__).with_suffix(".json")


class Required(NamedTuple):
    """One required row.

    Parameters
    ----------
    operator, workload, tau, quantity
        As in ``Comparison``.
    judged : bool
        Whether it must have a verdict; False if OUT_OF_SCOPE is allowed.
    """

    operator: str
    workload: str
    tau: int | None
    quantity: str
    judged: bool


def required_of(rows: Iterable[Comparison]) -> Counter[Required]:
    """Return the rows that an equal run requires, and how often each occurs.

    Parameters
    ----------
    rows : iterable of Comparison
        All rows of a complete run.
    """
    return Counter(_key(row) for row in rows)


def not_measured(required: Counter[Required], rows: Sequence[Comparison]) -> list[Comparison]:
    """Return an INCONCLUSIVE row for each required row that is missing, or OUT_OF_SCOPE where a verdict is required.

    Parameters
    ----------
    required : Counter of Required
        Required rows, and how often each must occur.
    rows : sequence of Comparison
        Rows of the run.
    """
    present = Counter(_key(row) for row in rows)
    reasons = {_key(row): row.reason for row in rows}
    missing = []
    for key, times in required.items():
        shown = key._replace(judged=False)
        n_present = present[key] + (0 if key.judged else present[key._replace(judged=True)])
        reason = reasons.get(shown, "") if key.judged else ""
        missing += [_not_measured(key, reason)] * (times - n_present)
    return missing


def listed(name: str) -> Counter[Required]:
    """Return the required rows of a built-in study; none for others.

    Parameters
    ----------
    name : str
        Name of the study.
    """
    required: Counter[Required] = Counter()
    for quantities, places in _lists().get(name, ()):
        for place in places:
            for quantity, times, judged in quantities:
                required[Required._make((*place, quantity, judged))] += times
    return required


def as_list(required: Counter[Required]) -> list[Any]:
    """Return required rows as ``LISTED`` stores them: lists of quantities, each with its operators and workloads."""
    of_place = defaultdict(list)
    for key, times in required.items():
        of_place[key[:3]].append((key.quantity, times, key.judged))
    of_quantities = defaultdict(list)
    for place, quantities in of_place.items():
        of_quantities[tuple(quantities)].append(place)
    return [[list(quantities), places] for quantities, places in of_quantities.items()]


@cache
def _lists() -> dict[str, list[Any]]:
    return json.loads(LISTED.read_text(encoding="utf-8"))


def _key(row: Comparison) -> Required:
    return Required(row.operator, row.workload, row.tau, row.quantity, row.verdict is not Verdict.OUT_OF_SCOPE)


def _not_measured(key: Required, reason: str) -> Comparison:
    missing = ValueError(reason or "the records do not give this required row")
    return unmeasured(key.quantity, missing, operator=key.operator, workload=key.workload, tau=key.tau)
