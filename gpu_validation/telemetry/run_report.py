"""The report's record: typed numbers, rows with verdicts, JSON, and a text for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..records import Comparison, Verdict, plain
from .periods import Advice

VERSION = 1


@dataclass(frozen=True)
class Measure:
    """A number with a 95 % interval.  value : itself.  n : from how many."""

    value: float
    interval: tuple[float, float]
    n: int


@dataclass(frozen=True)
class Progress:
    """How far the run is.

    steps, synchronisations : local steps of a rank, averagings.  seconds : of the slowest rank, pauses left out.
    periods : (first round, tau) wherever tau changed, of the kept rounds.  synchronising, telemetry : shares of the
    time.  silent_s : since the last sign of life of the rank that has been silent for longest.  ended : ranks that have
    let go of the averaging.
    """

    steps: int
    synchronisations: int
    seconds: float
    periods: tuple[tuple[int, int], ...]
    synchronising: float
    telemetry: float
    silent_s: float
    ended: int


@dataclass(frozen=True)
class Compressor:
    """What messages cost and how wrong they are, over all ranks that are heard.

    claim : "Unbiased", "Contractive", "StrictlyContractive" or "NoClaim"; constant : its omega or alpha.
    error : mean |C(x) - x|^2/|x|^2.  bits : mean length of a message.  declared_bits : its mean, at most; None if
    nothing is said.  least_error : below which no operator of the class comes at these bits.  least_bits : at this
    error.  Both limits are about the worst or a Gaussian vector; one with structure may cost less.
    """

    claim: str
    constant: float | None
    error: Measure
    bits: Measure
    declared_bits: float | None
    least_error: float | None
    least_bits: float | None


@dataclass(frozen=True)
class Traffic:
    """Mean bytes of one averaging of one rank.

    sent_bytes, received_bytes : counted.  expected_sent_bytes, expected_received_bytes : from the messages' lengths.
    """

    sent_bytes: float
    received_bytes: float
    expected_sent_bytes: float
    expected_received_bytes: float


@dataclass(frozen=True)
class Timing:
    """Medians over kept rounds, with order statistics as intervals; rounds that follow each other are not independent.

    step_s : of a local step, everything between averagings included.  delay_s : of an averaging, as the last rank to
    arrive saw it.  delay_ratio : D/Y, from the ends of both.  waiting_s : for the slowest rank, mean over ranks.
    alone : whether one rank only is heard, whose averagings include its own waiting.
    """

    step_s: Measure
    delay_s: Measure
    delay_ratio: Measure
    waiting_s: float
    alone: bool


@dataclass(frozen=True)
class Drift:
    """How far local models end from their mean.

    away : root mean square of |model - mean|, over that of |mean|.  n : from how many.
    kept : |mean movement|^2 over the mean |movement|^2: 1 if all ranks move alike, 1/m if in unrelated directions; nan
    where it is not known.
    compressed : whether the mean is that of decoded movements, so that ``away`` includes their error.  An unbiased
    operator's is not included: <x_i, C(x_j)> is <x_i, x_j> on average.
    """

    away: float
    kept: float
    n: int
    compressed: bool


@dataclass(frozen=True)
class RunReport:
    """What a run tells about itself; ``str`` gives the text, ``to_dict`` and ``to_json`` the numbers.

    ranks : those heard, of ``size``.  d : parameters.  operator, schedule, mixing : in words.
    progress, compressor, traffic, timing, drift : the parts, None where nothing was measured yet.
    retention : share of the gradient that is left at the end of a round, None unless the schedule measures it.
    advice : what other periods would gain.  comparisons : the rows with verdicts.  version : of the record.
    """

    ranks: tuple[int, ...]
    size: int
    d: int
    operator: str
    schedule: str
    mixing: str
    progress: Progress
    compressor: Compressor | None
    traffic: Traffic | None
    timing: Timing | None
    drift: Drift | None
    retention: float | None
    advice: tuple[Advice, ...]
    comparisons: tuple[Comparison, ...]
    version: int = VERSION

    @property
    def accused(self) -> list[Comparison]:
        """What is VIOLATED."""
        return [row for row in self.comparisons if row.verdict is Verdict.VIOLATED and row.decides]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; infinities and nan as texts."""
        fields = {name: plain(getattr(self, name)) for name in self.__dataclass_fields__ if name != "comparisons"}
        return fields | {"comparisons": [plain(row.line()) for row in self.comparisons]}

    def to_json(self) -> str:
        """The same as text."""
        return json.dumps(self.to_dict(), allow_nan=False)

    def __str__(self) -> str:
        from .text import text

        return text(self)
