"""Bytes exactly, errors against their laws, and losses against those of exact gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...records.sample import Sample
from ...records.storage import Record
from ...verdicts.comparisons import exact_row, unjudged_row
from ...verdicts.intervals import student_interval
from ...verdicts.verdict import Comparison, tight_verdict, upper_verdict
from ..unit import of_kind
from .problems import CODECS, DENSE, EXACT, FORGETFUL, Train, exchanges, is_tight

NEAR, AWAY, SHARE = 0.005, 0.05, 1 / 8  # of the exact loss, of the exact loss, of the dense bytes
ROUNDING = 1e-12  # NMSE of the exact mean in binary32
MARGIN = 0.05  # of an equality
JUDGED = ("tcdq", "sign")


def rows(records: Sequence[Record], *, d: int, level: float) -> list[Comparison]:
    """Return the comparisons that the records permit.

    Parameters
    ----------
    records : sequence of Record
        The records at hand.
    d : int
        Number of coordinates.
    level : float
        Chance that the whole run accuses a true claim.
    """
    exchanged = exchanges(records)
    share = level / max(1, len(exchanged))
    judged = [row for m, method in exchanged for row in _exchange_rows(method, m, d, share)]
    return [*judged, *_training_rows(of_kind(records, Train))]


def _exchange_rows(record: Record, m: int, d: int, level: float) -> Iterator[Comparison]:
    codec, exchange = record["codec"], record["exchange"]
    real = "seconds" in record
    name = codec if codec == DENSE else f"{codec}, {exchange}"
    about: dict[str, Any] = {"operator": name, "workload": f"{'real' if real else 'simulated'}, m = {m}"}
    if real:
        sent, predicted = record["payload_bytes"], record["predicted_bytes"]
        theorem = "lengths of the messages alone"
        quantity = "payload bytes of all exchanges"
        yield exact_row(sent, predicted, sent == predicted, quantity=quantity, theorem=theorem, unit="byte", **about)
    if codec == DENSE:
        worst = max(record["nmse"])
        yield exact_row(worst, ROUNDING, worst <= ROUNDING, quantity="largest error of the exact mean", **about)
        return
    operator = CODECS[codec]
    about["quantity"] = "error of the mean over its law"
    if not record["over_law"]:
        reason = "error of one exchange with a memory at both ends" if codec in ("topk", "sign") else "no claim at d"
        about["quantity"] = "error of the mean over its energy"
        yield unjudged_row(record["nmse"], f"no law: {reason}", **about)
    else:
        yield _against_law(record["over_law"], exchange, is_tight(operator, d), level, about)


def _against_law(
    values: Sequence[float], exchange: str, tight: bool, level: float, about: dict[str, Any]
) -> Comparison:
    """Judge by Student's interval: a draw is a sum over tens of thousands of coordinates."""
    sample = Sample.of(values)
    interval = student_interval(sample, level)
    verdict = tight_verdict(interval, 1.0, MARGIN) if tight else upper_verdict(interval, 1.0)
    theorem = "two_shot_exact_error" if tight and exchange == "two_shot" else f"{exchange}_error"
    reason = "Student's interval of sums over all coordinates"
    return Comparison(
        measured=sample.mean,
        interval=interval,
        bound=1.0,
        side="tight" if tight else "upper",
        verdict=verdict,
        n=sample.n,
        theorem=theorem,
        reason=reason,
        **about,
    )


def _training_rows(trained: Sequence[tuple[Train, Record]]) -> Iterator[Comparison]:
    """Return every method's worst seed against the exact run of that seed."""
    exact = {unit.seed: record["loss"] for unit, record in trained if unit.method == EXACT}
    methods = dict.fromkeys(unit.method for unit, _ in trained if unit.method != EXACT)
    for method in methods:
        runs = [(unit.seed, record) for unit, record in trained if unit.method == method and unit.seed in exact]
        if not runs:
            continue
        away = [record["loss"] / exact[seed] - 1 for seed, record in runs]
        about: dict[str, Any] = {"operator": method, "workload": f"digits, real, seeds {len(runs)}"}
        quantity = "final loss over that of exact gradients, less 1"
        if method == FORGETFUL:
            least = min(away)
            quantity = f"least {quantity}: measurably away"
            yield exact_row(least, AWAY, least >= AWAY, quantity=quantity, **about)
        elif method in JUDGED:
            worst = max(map(abs, away))
            yield exact_row(worst, NEAR, worst <= NEAR, quantity=f"largest {quantity}, absolute", **about)
            share = max(record["sent_bits"] / record["dense_bits"] for _, record in runs)
            yield exact_row(share, SHARE, share <= SHARE, quantity="bytes over those of float32", **about)
        else:
            yield unjudged_row(away, "no theorem with known constants covers the network", quantity=quantity, **about)
