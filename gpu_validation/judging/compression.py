"""Comparison of an operator's messages with its claims and with rate-distortion limits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from bounds import AssumptionViolated, Bound

from ..records.compression import Compression, Declared
from .comparisons import exact_row, interval_row
from .intervals import ACQUIT, mean_interval
from .judge import Judge, gated, rows_of
from .verdict import Comparison, Verdict, lower_verdict


def limit_for(declared: Declared) -> tuple[Bound, str]:
    """Return the rate-distortion limit on Gaussian input for a class of operators, and its distortion's keyword."""
    from bounds import limits

    if declared.kind == "Unbiased":
        return limits.gaussian_unbiased_bits, "omega"
    return limits.gaussian_bits, "alpha"


LIMIT = "codec bits against the limit"
LEAST_ERROR = "smallest error of a message against the limit"
LEAST_LEVEL = 1e-9  # probability that a true row is VIOLATED, outside the budget of the run
RESOLUTION = 2.0**-23  # relative error of a number in binary32
FULL_LENGTH = 20  # bits per coordinate; longer messages may hold binary32 numbers exactly
ROUNDING = 1e-6  # relative to |x|^2: arithmetic and transmitted scales are binary32 (2^-24 each)


def compression_rows(compression: Compression, *, false_alarm: float, **labels: Any) -> list[Comparison]:
    """Return every comparison that the messages of one operator allow.

    ``false_alarm`` is the probability, over the whole list, that a true claim is VIOLATED.
    """
    counting = CompressionJudge(level=0.5)
    counting.compression(compression, labels)
    return CompressionJudge(level=false_alarm / max(1, counting.samples)).compression(compression, labels)


class CompressionJudge(Judge):
    """Makes the rows of measured messages."""

    def compression(self, c: Compression, where: dict[str, Any]) -> list[Comparison]:
        """Return all rows of one operator's messages on one kind of input."""
        return [
            *rows_of(lambda: self.declared_bits(c, where), "codec bits", **where),
            *rows_of(lambda: [self.distortion(c, where)], "distortion", **where),
            *rows_of(lambda: self.limit(c, where), LIMIT, **where),
            *rows_of(lambda: _least_error(c, where), LEAST_ERROR, **where),
        ]

    def declared_bits(self, c: Compression, where: dict[str, Any]) -> Iterable[Comparison]:
        """Compare message lengths with the operator's declared size."""
        declared = c.declared
        of_bits = {"unit": "bit", "n": c.bits.n, "theorem": "Operator.bits", "structural": declared.are_stated}
        common = {**where, **of_bits}
        if declared.exact_bits is not None:
            same, ends = c.bits.low == c.bits.high == declared.exact_bits, (c.bits.low, c.bits.high)
            common["quantity"] = "codec bits, every message"
            yield exact_row(c.bits.mean, declared.exact_bits, same, interval=ends, **common)
            return
        if (most := declared.worst_case_bits) is not None:
            quantity = "codec bits, longest message"
            yield exact_row(c.bits.high, most, c.bits.high <= most, "upper", quantity=quantity, **common)
        if (mean := declared.expected_upper_bits) is not None:
            interval = self.below(c.bits, mean, most)
            yield interval_row(c.bits.mean, interval, mean, "upper", quantity="codec bits, mean", **common)

    def distortion(self, c: Compression, where: dict[str, Any]) -> Comparison:
        """Compare the relative squared error with the operator's claim."""
        declared = c.declared
        common: dict[str, Any] = {**where, "n": c.ratio.n, "theorem": f"{declared.kind} claim"}
        if declared.kind == "StrictlyContractive" and declared.constant is not None:
            holds, quantity = c.ratio.high <= declared.constant + ROUNDING, "distortion, worst message"
            return exact_row(c.ratio.high, declared.constant, holds, "upper", quantity=quantity, **common)
        common["quantity"] = "distortion, mean"
        if declared.constant is None:
            common |= {"side": "upper", "interval": self.shown(c.ratio), "reason": f"no claim: {declared.reason}"}
            return Comparison(measured=c.ratio.mean, bound=None, verdict=Verdict.OUT_OF_SCOPE, **common)
        interval = self.below(c.ratio, declared.constant + ROUNDING)
        return interval_row(c.ratio.mean, interval, declared.constant, "upper", rounding=ROUNDING, **common)

    def limit(self, c: Compression, where: dict[str, Any]) -> Iterable[Comparison]:
        """Compare the mean length with the lower limit at the measured distortion.

        Too few bits are VIOLATED only against the limit at the claimed distortion.  No number of messages bounds the
        mean of an error without a largest value.
        """
        if c.source == "flat" or c.error_per_coordinate.high == 0 or c.ratio.high == 0:
            return  # neither a single fixed vector nor a lossless operator has a rate-distortion limit
        bound, name = limit_for(c.declared)
        gaussian = c.source == "gaussian"
        distortion = c.error_per_coordinate if gaussian else c.ratio
        common: dict[str, Any] = {
            **where,
            "quantity": LIMIT,
            "measured": c.bits.mean,
            "side": "lower",
            "n": c.bits.n,
            "unit": "bit",
            "theorem": bound.name,
        }
        value: float | None = None
        reason = "" if gaussian else "the limit is for isotropic Gaussian input; a structured vector may lie below it"
        try:
            value = bound(d=c.d, **{name: distortion.mean})
        except AssumptionViolated as error:
            reason = str(error)
        if reason:
            shown = {**common, "interval": self.shown(c.bits)}
            yield Comparison(bound=value, verdict=Verdict.OUT_OF_SCOPE, reason=reason, **shown)
            return
        self.samples += 1
        most = next((b for b in (c.declared.exact_bits, c.declared.worst_case_bits) if b is not None), math.inf)
        most = most if c.bits.high <= most else math.inf  # ignore a worst case that is exceeded
        bits = mean_interval(c.bits, below=ACQUIT, above=self.level, floor=0.0, ceiling=most)
        least, claimed = mean_interval(distortion, below=ACQUIT, above=self.level, floor=0.0)[0], c.declared.constant
        sharpest = bound(d=c.d, **{name: max(least, 1e-300)})
        loosest = _bits_of_claim(bound, name, c.d, claimed)
        verdict = lower_verdict(bits, (loosest, sharpest))
        row = Comparison(bound=value, verdict=verdict, interval=bits, accuses_at=loosest, **common)
        yield gated(bound, row)


def _bits_of_claim(bound: Bound, name: str, d: int, claimed: float | None) -> float:
    """Return the fewest bits of an operator with the claimed constant; 0 if the claim implies no limit."""
    if claimed is None or claimed == math.inf or (name == "alpha" and claimed >= 1):
        return 0.0
    return math.inf if claimed == 0 else bound(d=d, **{name: claimed})


def _least_error(c: Compression, where: dict[str, Any]) -> Iterable[Comparison]:
    """Compare the smallest error of a Gaussian vector with the least that messages of this length can have."""
    if c.source != "gaussian" or not c.bits.high < FULL_LENGTH * c.d:
        return
    smallest, bound = c.error_per_coordinate.low, least_error(c.d, c.bits.high, c.bits.n)
    about = {**where, "quantity": LEAST_ERROR, "theorem": "volume of the balls around all messages", "n": c.bits.n}
    yield exact_row(smallest, bound, smallest >= bound, "lower", **about)


def least_error(d: int, bits: float, n: int) -> float:
    """Return a lower bound on all squared errors per coordinate of n standard Gaussian vectors.

    It fails with probability at most LEAST_LEVEL for every code.  Fewer than 2^(bits + 1) messages have at most so many
    bits, and the balls of radius sqrt(d D) around them cover little volume where the density is at most its value at
    the norm that all n vectors exceed.

    Parameters
    ----------
    d : int
        Number of coordinates, >= 1.
    bits : float, bits
        Length of the longest message, >= 0.
    n : int
        Number of vectors, >= 1.
    """
    from scipy.special import lambertw

    tail = math.log(2 * n / LEAST_LEVEL)  # half of the level for a short vector, half for a close message
    norm2 = float(-lambertw(-math.exp(-1 - 2 * tail / d)).real)  # per coordinate; P(|x|^2 < d norm2) <= e^-tail
    log_volume = math.lgamma(d / 2 + 1) + d * norm2 / 2 - (bits + 1) * math.log(2) - tail
    root = math.sqrt(2 / d) * math.exp(log_volume / d)
    return max(0.0, root - RESOLUTION) ** 2
