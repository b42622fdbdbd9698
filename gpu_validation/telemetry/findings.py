"""What a run's accounts say: typed numbers, and rows with verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from ..verdicts.verdict import Comparison
from .periods import Advice

VERSION = 1


@dataclass(frozen=True)
class Measure:
    """A number with a 95 % interval.

    Parameters
    ----------
    value : float
        Itself.
    interval : tuple of float
        The interval of the measured number.
    n : int
        From how many.
    """

    value: float
    interval: tuple[float, float]
    n: int


@dataclass(frozen=True)
class Progress:
    """How far the run is.

    Parameters
    ----------
    steps : int
        Local steps of a rank.
    synchronisations : int
        Averagings so far, compressed and not.
    seconds : float
        Of the slowest rank, pauses left out.
    periods : tuple of tuple of int
        (first round, tau) wherever tau changed, of the kept rounds.
    synchronising : float
        Share of the time in averagings.
    telemetry : float
        Share of the time in telemetry.
    silent_s : float, seconds
        Since the last sign of life of the rank that has been silent for longest.
    ended : int
        Ranks that have let go of the averaging.
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

    Parameters
    ----------
    claim : str
        "Unbiased", "Contractive", "StrictlyContractive" or "NoClaim".
    constant : float or None
        Its omega or alpha.
    error : Measure
        ``mean |C(x) - x|^2/|x|^2``.
    bits : Measure, bits
        mean length of a message.
    declared_bits : float or None, bits
        Its mean, at most; None if nothing is said.
    least_error : float or None
        Below which no operator of the class comes at these bits.
    least_bits : float or None, bits
        At this error.  Both limits are about the worst or a Gaussian vector; one with structure may cost less.
    coordinates : float
        That a message is about, on average: those of a shard where ranks form nodes.
    """

    claim: str
    constant: float | None
    error: Measure
    bits: Measure
    declared_bits: float | None
    least_error: float | None
    least_bits: float | None
    coordinates: float


@dataclass(frozen=True)
class Traffic:
    """Mean bytes of one averaging of one rank.

    Parameters
    ----------
    sent_bytes : float, bytes
        Bytes sent, counted.
    received_bytes : float, bytes
        Bytes received, counted.
    expected_sent_bytes : float, bytes
        Bytes sent, from the messages' lengths.
    expected_received_bytes : float, bytes
        Bytes received, from the messages' lengths.
    """

    sent_bytes: float
    received_bytes: float
    expected_sent_bytes: float
    expected_received_bytes: float


@dataclass(frozen=True)
class Timing:
    """Medians over kept rounds, with order statistics as intervals; rounds that follow each other are not independent.

    Parameters
    ----------
    step_s : Measure, seconds
        Of a local step, everything between averagings included.
    delay_s : Measure, seconds
        Of an averaging, as the last rank to arrive saw it.
    delay_ratio : Measure
        D/Y, from the ends of both.
    waiting_s : float, seconds
        For the slowest rank, mean over ranks.
    alone : bool
        Whether one rank only is heard, whose averagings include its own waiting.
    """

    step_s: Measure
    delay_s: Measure
    delay_ratio: Measure
    waiting_s: float
    alone: bool


@dataclass(frozen=True)
class Drift:
    """How far local models end from their mean.

    Parameters
    ----------
    away : float
        Root mean square of ``|model - mean|``, over that of ``|mean|``.
    kept : float
        ``|mean movement|^2`` over the ``mean |movement|^2``: 1 if all ranks move alike, 1/m if in unrelated directions;
        nan where it is not known.
    n : int
        From how many.
    compressed : bool
        Whether the mean is that of decoded movements, so that ``away`` includes their error.  An unbiased operator's is
        not included: <x_i, C(x_j)> is <x_i, x_j> on average.
    """

    away: float
    kept: float
    n: int
    compressed: bool


@dataclass(frozen=True)
class Findings:
    """All numbers and rows of a report.

    Parameters
    ----------
    ranks : tuple of int
        Those heard, of ``size``.
    size : int
        Number of ranks.
    d : int
        Parameters.
    operator : str
        The compressor, in words.
    schedule : str
        The rule for the local steps, in words.
    mixing : str
        How models are mixed, in words.
    progress : Progress
        How far the run is.
    compressor : Compressor or None
        Realised error and bits; None while nothing was compressed.
    traffic : Traffic or None
        Bytes both ways; None where nothing was counted.
    timing : Timing or None
        D/Y; None before the first averaging.
    drift : Drift or None
        How far ranks move apart; None where nothing was measured.
    retention : float or None
        Share of the gradient that is left at the end of a round, None unless the schedule measures it.
    advice : tuple of Advice
        What other periods would gain.
    comparisons : tuple of Comparison
        The rows with verdicts.
    version : int, optional
        Of the form of the record, for readers of older files.
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
