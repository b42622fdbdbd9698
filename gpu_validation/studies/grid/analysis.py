"""Measured numbers against bounds: a pure function from records to verdicts.

One false-alarm budget covers a whole run: it is split evenly over the comparisons that rest on samples, and bounds
the chance that one of them accuses a true claim, whatever the law of what is sampled.  An end of an interval that
acquits misses with ACQUIT.  Exact comparisons allow only ROUNDING.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

from ...verdicts.compression import CompressionJudge
from ...verdicts.envelope import in_streams
from ...verdicts.judge import rows_of
from ...verdicts.verdict import Comparison, Verdict, exact_verdict
from .losses import loss_rows
from .records import Probe, Training
from .seconds import seconds_rows


def compare(records: Iterable[Probe | Training], *, false_alarm: float) -> list[Comparison]:
    """Return every comparison that the records allow, in their order.

    Parameters
    ----------
    false_alarm : float
        Chance, over the whole list, that a true claim is VIOLATED by bad luck.
    """
    records = list(records)
    counting = _Rows(level=0.5)
    counting.rows(records)
    return _Rows(level=false_alarm / max(1, counting.samples)).rows(records)


class _Rows(CompressionJudge):
    """The rows of all records."""

    def rows(self, records: list[Probe | Training]) -> list[Comparison]:
        comparisons: list[Comparison] = []
        runs = [record for record in records if isinstance(record, Training)]
        for record in records:
            where: dict[str, Any] = {"operator": record.operator}
            if isinstance(record, Training):
                where |= {"workload": record.workload, "tau": record.tau}
            else:
                where |= {"workload": record.compression.source}
            comparisons += self.compression(record.compression, where)
            if isinstance(record, Training):
                comparisons += rows_of(partial(self.traffic, record, where), "bytes", **where)
                seconds = rows_of(partial(seconds_rows, record, runs, where), "seconds per iteration", **where)
                comparisons += [*seconds, *loss_rows(self, record, runs, where)]
        return comparisons

    # -- bytes ----------------------------------------------------------------------------------
    def traffic(self, record: Training, where: dict[str, Any]) -> Iterable[Comparison]:
        t = record.traffic
        yield _codec_bits(record, where)
        yield Comparison(
            quantity="payload bytes, whole cell",
            measured=t.payload_bytes,
            interval=(t.payload_bytes, t.payload_bytes),
            bound=t.predicted_payload_bytes,
            side="tight",
            verdict=exact_verdict(t.payload_bytes == t.predicted_payload_bytes),
            unit="byte",
            theorem="all-gather of messages and 8-byte headers",
            structural=True,
            **where,
        )
        yield in_streams(
            t.payload_bytes, t.stream_bytes, t.messages, quantity="payload within the bytes of TCP streams", **where
        )
        common: dict[str, Any] = {**where, "unit": "byte", "theorem": t.interface_method, "side": "lower"}
        if t.interface_bytes is None:
            yield Comparison(
                quantity="interface bytes, whole cell",
                measured=math.nan,
                interval=(-math.inf, math.inf),
                bound=t.payload_bytes,
                verdict=Verdict.OUT_OF_SCOPE,
                reason="no interface counter carries this backend's traffic here",
                **common,
            )
            return
        yield Comparison(
            quantity="interface bytes, whole cell",
            measured=t.interface_bytes,
            interval=(t.interface_bytes, t.interface_bytes),
            bound=t.payload_bytes,
            verdict=exact_verdict(t.interface_bytes >= t.payload_bytes),
            **common,
        )


def _codec_bits(record: Training, where: dict[str, Any]) -> Comparison:
    """Compare the bits of all ranks together with the number of messages times their mean length."""
    real_seeds = len(record.seeds) - record.virtual
    expected = real_seeds * (record.steps // record.tau) * record.processes * record.compression.bits.mean
    bits = record.traffic.codec_bits
    return Comparison(
        quantity="codec bits, whole cell",
        measured=bits,
        interval=(bits, bits),
        bound=expected,
        side="tight",
        verdict=exact_verdict(abs(bits - expected) <= 0.5 + 1e-9 * expected),
        unit="bit",
        theorem="messages of all ranks times their mean length",
        structural=True,
        **where,
    )
