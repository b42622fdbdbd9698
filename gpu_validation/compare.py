"""Measured numbers against bounds: a pure function from records to verdicts.

One false-alarm budget covers a whole run: it is split evenly over the comparisons that rest on samples, and bounds
the chance that one of them accuses a true claim, whatever the law of what is sampled.  An end of an interval that
acquits misses with ACQUIT.  Exact comparisons allow only ROUNDING.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from bounds import AssumptionViolated

from .envelope import in_streams
from .judge import Judge, gated
from .losses import loss_rows
from .records import Comparison, Compression, Probe, Traffic, Training, Verdict
from .seconds import seconds_rows
from .theory import limit_for
from .verdicts.intervals import ACQUIT, mean_interval
from .verdicts.verdict import exact_verdict, lower_verdict, upper_verdict

ROUNDING = 1e-6  # relative to |x|^2: arithmetic and transmitted scales are binary32 (2^-24 each)


def compare(records: Iterable[Probe | Training], *, false_alarm: float) -> list[Comparison]:
    """Every comparison that the records allow, in their order.

    false_alarm : chance, over the whole list, that a true claim is VIOLATED by bad luck.
    """
    records = list(records)
    counting = _Rows(level=0.5)
    counting.rows(records)
    return _Rows(level=false_alarm / max(1, counting.samples)).rows(records)


class _Rows(Judge):
    """The rows of all records."""

    def rows(self, records: list[Probe | Training]) -> list[Comparison]:
        found: list[Comparison] = []
        runs = [record for record in records if isinstance(record, Training)]
        for record in records:
            where: dict[str, Any] = {"operator": record.operator}
            if isinstance(record, Training):
                where |= {"workload": record.workload, "tau": record.tau}
            else:
                where |= {"workload": record.compression.source}
            found += self.compression(record.compression, where)
            if isinstance(record, Training):
                found += self.traffic(record.traffic, where)
                found += seconds_rows(record, runs, where)
                found += loss_rows(self, record, runs, where)
        return found

    # -- messages ----------------------------------------------------------------------------------------
    def compression(self, c: Compression, where: dict[str, Any]) -> list[Comparison]:
        rows = [*self.declared_bits(c, where), self.distortion(c, where)]
        limit = self.limit(c, where)
        return [*rows, limit] if limit else rows

    def declared_bits(self, c: Compression, where: dict[str, Any]) -> Iterable[Comparison]:
        declared, common = c.declared, {**where, "unit": "bit", "n": c.bits.n, "theorem": "Operator.bits"}
        if declared.exact_bits is not None:
            same = c.bits.low == c.bits.high == declared.exact_bits
            yield Comparison(
                quantity="codec bits, every message",
                measured=c.bits.mean,
                interval=(c.bits.low, c.bits.high),
                bound=declared.exact_bits,
                side="tight",
                verdict=exact_verdict(same),
                **common,
            )
            return
        if declared.worst_case_bits is not None:
            yield Comparison(
                quantity="codec bits, longest message",
                measured=c.bits.high,
                interval=(c.bits.high, c.bits.high),
                bound=declared.worst_case_bits,
                side="upper",
                verdict=exact_verdict(c.bits.high <= declared.worst_case_bits),
                **common,
            )
        if declared.expected_upper_bits is not None:
            interval = self.below(c.bits, declared.expected_upper_bits, declared.worst_case_bits)
            yield Comparison(
                quantity="codec bits, mean",
                measured=c.bits.mean,
                interval=interval,
                bound=declared.expected_upper_bits,
                side="upper",
                verdict=upper_verdict(interval, declared.expected_upper_bits),
                **common,
            )

    def distortion(self, c: Compression, where: dict[str, Any]) -> Comparison:
        declared = c.declared
        common: dict[str, Any] = {**where, "side": "upper", "n": c.ratio.n, "theorem": f"{declared.kind} claim"}
        if declared.constant is None:
            return Comparison(
                quantity="distortion, mean",
                measured=c.ratio.mean,
                interval=self.shown(c.ratio),
                bound=None,
                verdict=Verdict.OUT_OF_SCOPE,
                reason=f"no claim: {declared.reason}",
                **common,
            )
        if declared.kind == "StrictlyContractive":
            return Comparison(
                quantity="distortion, worst message",
                measured=c.ratio.high,
                interval=(c.ratio.high, c.ratio.high),
                bound=declared.constant,
                verdict=exact_verdict(c.ratio.high <= declared.constant + ROUNDING),
                **common,
            )
        interval = self.below(c.ratio, declared.constant + ROUNDING)
        return Comparison(
            quantity="distortion, mean",
            measured=c.ratio.mean,
            interval=interval,
            bound=declared.constant,
            verdict=upper_verdict(interval, declared.constant, slack=ROUNDING),
            **common,
        )

    def limit(self, c: Compression, where: dict[str, Any]) -> Comparison | None:
        """Mean bits against the fewest that the distortion allows.

        Too few bits are an accusation only beside the largest distortion that the operator can have: the one that it
        claims, for no number of messages bounds the mean of an error without a largest value.
        """
        if c.source == "flat" or c.error_per_coordinate.high == 0 or c.ratio.high == 0:
            return None  # one fixed vector has no rate-distortion limit; neither has a lossless operator
        bound, name = limit_for(c.declared)
        gaussian = c.source == "gaussian"
        distortion = c.error_per_coordinate if gaussian else c.ratio
        common: dict[str, Any] = {
            **where,
            "quantity": "codec bits against the limit",
            "measured": c.bits.mean,
            "side": "lower",
            "n": c.bits.n,
            "unit": "bit",
            "theorem": bound.name,
        }
        try:
            value = bound(d=c.d, **{name: distortion.mean})
        except AssumptionViolated as error:
            shown = {**common, "interval": self.shown(c.bits)}
            return Comparison(bound=None, verdict=Verdict.OUT_OF_SCOPE, reason=str(error), **shown)
        if not gaussian:
            reason = "the limit is for isotropic Gaussian input; a structured vector may lie below it"
            shown = {**common, "interval": self.shown(c.bits)}
            return Comparison(bound=value, verdict=Verdict.OUT_OF_SCOPE, reason=reason, **shown)
        self.samples += 1
        most = next((b for b in (c.declared.exact_bits, c.declared.worst_case_bits) if b is not None), math.inf)
        most = most if c.bits.high <= most else math.inf  # a broken worst case is none
        bits = mean_interval(c.bits, below=ACQUIT, above=self.level, floor=0.0, ceiling=most)
        least, claimed = mean_interval(distortion, below=ACQUIT, above=self.level, floor=0.0)[0], c.declared.constant
        sharpest = bound(d=c.d, **{name: max(least, 1e-300)})
        loosest = bound(d=c.d, **{name: claimed}) if claimed is not None else 0.0
        verdict = lower_verdict(bits, (loosest, sharpest))
        row = Comparison(bound=value, verdict=verdict, interval=bits, accuses_at=loosest, **common)
        return gated(bound, row)

    # -- bytes ----------------------------------------------------------------------------------
    def traffic(self, t: Traffic, where: dict[str, Any]) -> Iterable[Comparison]:
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
