"""Measured numbers against bounds: a pure function from records to verdicts.

One false-alarm budget covers a whole run: it is split evenly over the comparisons that rest on samples, and bounds
the chance that one of them accuses a true claim, whatever the law of what is sampled.  An end of an interval that
acquits misses with ACQUIT.  Exact comparisons allow only ROUNDING.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from bounds import AssumptionViolated, Bound, Status

from .envelope import in_streams
from .records import Comparison, Compression, Probe, Sample, Traffic, Training, Verdict
from .theory import exact_law, limit_for, predicted_seconds, theorem_for
from .verdicts.intervals import ACQUIT, Interval, interval_below, mean_interval, student_interval
from .verdicts.verdict import MARGIN, exact_verdict, lower_verdict, tight_verdict, upper_verdict, wide

ROUNDING = 1e-6  # relative to |x|^2: arithmetic and transmitted scales are binary32 (2^-24 each)
TIMING_TOLERANCE = 0.10  # of the predicted seconds per iteration
UNJUDGED = 0.05  # level of intervals that decide nothing and take no part in the budget


def compare(records: Iterable[Probe | Training], *, false_alarm: float) -> list[Comparison]:
    """Every comparison that the records allow, in their order.

    false_alarm : chance, over the whole list, that a true claim is VIOLATED by bad luck.
    """
    records = list(records)
    counting = _Judge(level=0.5)
    counting.rows(records)
    return _Judge(level=false_alarm / max(1, counting.samples)).rows(records)


class _Judge:
    """Builds rows at one level and counts those that rest on a sample."""

    def __init__(self, level: float) -> None:
        self.level = level
        self.samples = 0

    def below(self, sample: Sample, bound: float, ceiling: float | None = None) -> Interval:
        """The interval that judges an upper bound on the mean of draws >= 0."""
        self.samples += 1
        known = ceiling if ceiling is None or sample.high <= ceiling else None  # a broken worst case is none
        return interval_below(sample, bound, self.level, floor=0.0, ceiling=known)

    def shown(self, sample: Sample) -> Interval:
        """A 95 % interval that decides nothing."""
        return student_interval(sample, UNJUDGED)

    def rows(self, records: list[Probe | Training]) -> list[Comparison]:
        found: list[Comparison] = []
        for record in records:
            where: dict[str, Any] = {"operator": record.operator}
            if isinstance(record, Training):
                where |= {"workload": record.workload, "tau": record.tau}
            else:
                where |= {"workload": record.compression.source}
            found += self.compression(record.compression, where)
            if isinstance(record, Training):
                found += self.traffic(record.traffic, where)
                found.append(self.timing(record, where))
                found += self.convergence(record, where)
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
        return _gated(bound, Comparison(bound=value, verdict=verdict, interval=bits, **common))

    # -- bytes and time ----------------------------------------------------------------------------------
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

    def timing(self, record: Training, where: dict[str, Any]) -> Comparison:
        predicted = predicted_seconds(record.timing, record.tau, record.processes)
        per_step = Sample.of([s / record.tau for s in record.timing.round_s])
        interval = student_interval(per_step, UNJUDGED)
        tolerance_s = TIMING_TOLERANCE * predicted
        reason = ""
        if interval[1] - interval[0] > 2 * tolerance_s:
            reason = "the rounds scatter too much to tell"
        elif interval[0] > predicted + tolerance_s or interval[1] < predicted - tolerance_s:
            reason = "more than 10 % from the model; the noise of a shared machine has no bound"
        elif interval[0] < predicted - tolerance_s or interval[1] > predicted + tolerance_s:
            reason = "only partly within 10 % of the model"
        return Comparison(
            quantity="seconds per iteration",
            measured=per_step.mean,
            interval=interval,
            bound=predicted,
            side="tight",
            verdict=Verdict.INCONCLUSIVE if reason else Verdict.HOLDS,
            reason=reason,
            unit="s",
            theorem="E max of mean Y + D / tau",
            n=per_step.n,
            decides=False,
            **where,
        )

    # -- losses ------------------------------------------------------------------------------------------
    def convergence(self, record: Training, where: dict[str, Any]) -> Iterable[Comparison]:
        declared = record.compression.declared
        sample = Sample.of(record.gradient_norm2)
        bound, extra = theorem_for(declared)
        common: dict[str, Any] = {
            **where,
            "quantity": "squared gradient norm, average over steps",
            "measured": sample.mean,
            "n": sample.n,
        }
        if bound is None:
            reason = f"the theorem needs an unbiased operator; this one is {declared.kind}"
            shown = {**common, "interval": self.shown(sample), "side": "upper"}
            yield Comparison(bound=None, verdict=Verdict.OUT_OF_SCOPE, reason=reason, **shown)
            return
        at = {name: record.parameters[name] for name in ("L", "sigma2", "gap", "eta")}
        at |= {"tau": record.tau, "m": record.processes, "K": record.steps, **extra}
        yield self.theorem(bound, at, record, sample, common)
        law = exact_law(record)
        if law is not None:
            yield self.exact_dynamics(*law, sample, common)

    def theorem(
        self, bound: Bound, at: dict[str, float], record: Training, sample: Sample, common: dict[str, Any]
    ) -> Comparison:
        common = {**common, "side": "upper", "theorem": bound.name}
        shown = {**common, "interval": self.shown(sample), "verdict": Verdict.OUT_OF_SCOPE}
        try:
            value = bound(**at)
        except AssumptionViolated as error:
            return Comparison(bound=None, reason=str(error), **shown)
        if not record.exact_constants:
            return Comparison(bound=value, reason=record.inexact_reason, **shown)
        interval = self.below(sample, value)
        verdict = upper_verdict(interval, value)
        return _gated(bound, Comparison(bound=value, interval=interval, verdict=verdict, **common))

    def exact_dynamics(self, theorem: str, value: float, sample: Sample, common: dict[str, Any]) -> Comparison:
        """The exact value of the quadratics whose law is known."""
        self.samples += 1
        interval = mean_interval(sample, below=self.level / 2, above=self.level / 2, floor=0.0)
        verdict = tight_verdict(interval, value, MARGIN * value)
        return Comparison(
            interval=interval,
            bound=value,
            side="tight",
            verdict=verdict,
            reason=wide(MARGIN * value) if verdict is Verdict.INCONCLUSIVE else "",
            theorem=theorem,
            **common,
        )


def _gated(bound: Bound, row: Comparison) -> Comparison:
    """A recalled bound gives no verdict."""
    if bound.status is not Status.RECALLED:
        return row
    values = {name: getattr(row, name) for name in row.__dataclass_fields__}
    return Comparison(**{**values, "verdict": Verdict.OUT_OF_SCOPE, "reason": f"{bound.name} is recalled, not checked"})
