"""Comparison of a run of real processes with its simulation: losses must be equal.

Seconds are compared with Y + D/tau.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..records.storage import Record
from .comparisons import exact_row
from .iteration_time import near
from .verdict import Comparison


def compared(real: Record, simulated: Record) -> Record:
    """Return the number of steps that both records have, and the largest difference of their losses."""
    ends = dict(zip(simulated["step"], simulated["losses"], strict=True))
    apart = [abs(loss - ends[k]) for k, loss in zip(real["step"], real["losses"], strict=True) if k in ends]
    return {"compared": len(apart), "largest_difference": max(apart)}


def agreement_rows(record: Record, *, steps: int, step_s: float, tau: int, **about: Any) -> list[Comparison]:
    """Return rows for equal losses and for seconds per iteration near the runtime model's; the latter never decide.

    ``record`` has the result of ``compared``, ``raced_s`` and ``steps`` of the timed run, ``fenced_s`` of averagings
    timed behind barriers, ``scheduling`` and ``method``.  ``step_s`` is Y in seconds.
    """
    about["tau"] = tau
    equal = exact_row(
        record["largest_difference"],
        0.0,
        record["largest_difference"] == 0 and record["compared"] > 1,
        quantity="real against virtual workers: largest difference of losses",
        facts={"compared": record["compared"]},
        theorem="the same steps, bit for bit",
        **about,
    )
    delay_s = float(np.mean(record["fenced_s"]))
    measured, predicted = record["raced_s"] / steps, step_s + delay_s / tau
    verdict, reason = near(measured, predicted)
    seconds = Comparison(
        quantity="seconds per iteration of real processes",
        measured=measured,
        interval=(measured, measured),
        bound=predicted,
        side="tight",
        verdict=verdict,
        reason=reason,
        theorem=f"Y + D/tau, D = {1e3 * delay_s:.3g} ms timed by itself; {record['scheduling']}; {record['method']}",
        decides=False,
        unit="s",
        **about,
    )
    return [equal, seconds]
