"""Results of a run's accounts: typed numbers, and rows with verdicts."""

from __future__ import annotations

from dataclasses import dataclass

from ..judging.verdict import Comparison
from .periods import Advice

VERSION = 1


@dataclass(frozen=True)
class Measure:
    """A number with a 95 % interval.

    Parameters
    ----------
    value : float
        Estimate.
    interval : tuple of float
        Ends of its 95 % interval.
    n : int
        Number of observations.
    """

    value: float
    interval: tuple[float, float]
    n: int


@dataclass(frozen=True)
class Progress:
    """Progress of the run.

    Parameters
    ----------
    steps : int
        Local steps of a rank.
    synchronisations : int
        Averagings so far, compressed or not.
    seconds : float
        Time of the slowest rank, without pauses.
    periods : tuple of tuple of int
        (first round, tau) at every change of tau, over the kept rounds.
    synchronising : float
        Share of the time in averagings.
    telemetry : float
        Share of the time in telemetry.
    silent_s : float, seconds
        Time since the last line of the rank that has been silent longest.
    ended : int
        Ranks that have closed the averaging.
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
    """Length and error of the messages, over all reporting ranks.

    Parameters
    ----------
    claim : str
        "Unbiased", "Contractive", "StrictlyContractive" or "NoClaim".
    constant : float or None
        omega or alpha of the claim.
    error : Measure
        Mean ``|C(x) - x|^2/|x|^2``.
    bits : Measure, bits
        Mean length of a message.
    declared_bits : float or None, bits
        Declared upper limit of the mean length; None without one.
    least_error : float or None
        Lower limit of the error for the operator's class at these bits.
    least_bits : float or None, bits
        Lower limit of the bits for the operator's class at this error.  Both limits hold for the worst or a Gaussian
        vector; a vector with structure may need less.
    coordinates : float
        Mean number of coordinates per message: those of a shard in nodes.
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
    """Mean bytes of one rank per averaging.

    Parameters
    ----------
    sent_bytes : float, bytes
        Bytes sent, as counted.
    received_bytes : float, bytes
        Bytes received, as counted.
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
    """Medians over kept rounds, with order statistics as intervals; successive rounds are not independent.

    Parameters
    ----------
    step_s : Measure, seconds
        Time of a local step, including everything between averagings.
    delay_s : Measure, seconds
        Time of an averaging, seen by the last rank to arrive.
    delay_ratio : Measure
        D/Y; its interval is from the ends of both intervals.
    waiting_s : float, seconds
        Mean wait of a rank for the slowest.
    alone : bool
        Whether only one rank has reported, whose averagings include its own waiting.
    """

    step_s: Measure
    delay_s: Measure
    delay_ratio: Measure
    waiting_s: float
    alone: bool


@dataclass(frozen=True)
class Drift:
    """Distance of the local models from their mean at the end of rounds.

    Parameters
    ----------
    away : float
        Root mean square of ``|model - mean|``, over that of ``|mean|``.
    kept : float
        ``|mean movement|^2`` over the mean of ``|movement|^2``: 1 if all movements are equal, 1/m if they are
        orthogonal; nan if unknown.
    n : int
        Number of observations.
    compressed : bool
        Whether ``away`` includes the error of decoded movements.  The error of an unbiased operator is not included,
        for <x_i, C(x_j)> is <x_i, x_j> on average.
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
        Ranks that have reported, of ``size``.
    size : int
        Number of ranks.
    d : int
        Number of averaged parameters.
    operator : str
        Specification of the compressor.
    schedule : str
        Representation of the rule for local steps.
    mixing : str
        Representation of the mixing mode.
    progress : Progress
        Progress of the run.
    compressor : Compressor or None
        Realised error and bits; None if nothing was compressed.
    traffic : Traffic or None
        Bytes in both directions; None if not counted.
    timing : Timing or None
        D/Y; None before the first averaging.
    drift : Drift or None
        Distance between models; None if not measured.
    retention : float or None
        Share of the gradient left at the end of a round; None unless the schedule measures it.
    advice : tuple of Advice
        Predicted gains of other periods.
    comparisons : tuple of Comparison
        Rows with verdicts.
    version : int, optional
        Format of the record, for readers of older files.
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
