"""One way to average among which a run may choose, described by numbers, and how long those not tried yet will take.

Beyond latency and coding, the time of an averaging is proportional to the bytes that pass a rank's link: seconds =
latency + bytes/bandwidth + coding.  So averagings of two lengths determine the time of every other length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import fmean, median
from typing import Any, Self

from ..runtime.checks import nonnegative


@dataclass(frozen=True)
class Candidate:
    """An operator with its exchange.

    Parameters
    ----------
    name : str
        Of the operator.
    link_bytes : float, bytes
        That one rank sends in an averaging.
    error : float, optional
        omega, the relative squared error of a message, unbiased; 0 for whole models.
    coding_s : float, seconds, optional
        That a rank encodes and decodes in an averaging.
    twice : bool, optional
        Whether the mean is compressed once more, as in two shots.

    Raises
    ------
    ValueError
        For a number below 0.
    """

    name: str
    link_bytes: float
    error: float = 0.0
    coding_s: float = 0.0
    twice: bool = False

    def __post_init__(self) -> None:
        for field in fields(self)[1:4]:
            nonnegative(field.name, getattr(self, field.name))

    @classmethod
    def restored(cls, data: Mapping[str, Any]) -> Self:
        """Return the candidate from its fields.

        Parameters
        ----------
        data : mapping
            By name.
        """
        return cls(**data)

    def noise(self, error: float, *, spread: float, senders: int) -> float:
        """Return the squared error of the mean, over the squared mean movement.

        Parameters
        ----------
        error : float
            omega of a message.
        spread : float
            Mean squared movement of a rank over that of the mean, 1 to ``senders``.
        senders : int
            That compress, with independent errors.

        Raises
        ------
        ValueError
            For a number below 0.
        """
        omega = nonnegative("error", error)
        once = omega * nonnegative("spread", spread) / senders
        return once + omega * (1 + once) if self.twice else once


def predicted_delays(candidates: Sequence[Candidate], delays_s: Sequence[Sequence[float]]) -> list[float | None]:
    """Return seconds of an averaging by every candidate: the median of those measured, else by the line through others.

    Parameters
    ----------
    candidates : sequence of Candidate
        All.
    delays_s : sequence of sequence of float, seconds
        Measured with each, coding included; empty where it was not tried.

    Returns
    -------
    list of float or None
        None where it was not tried and fewer than two lengths were.

    Notes
    -----
    The line is fitted by least squares; neither latency nor seconds a byte are below 0.
    """
    measured = [median(window) if window else None for window in delays_s]
    points = [(c.link_bytes, max(s - c.coding_s, 0.0)) for c, s in zip(candidates, measured, strict=True) if s]
    line = _line(points)
    if line is None:
        return measured
    latency_s, s_per_byte = line
    return [
        latency_s + s_per_byte * c.link_bytes + c.coding_s if seconds is None else seconds
        for c, seconds in zip(candidates, measured, strict=True)
    ]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Return (latency, seconds a byte), None for fewer than two lengths."""
    if len({length for length, _ in points}) < 2:
        return None
    mean_bytes, mean_s = fmean(length for length, _ in points), fmean(seconds for _, seconds in points)
    across = sum((length - mean_bytes) ** 2 for length, _ in points)
    slope = sum((length - mean_bytes) * (seconds - mean_s) for length, seconds in points) / across
    slope = max(slope, 0.0)
    if slope * mean_bytes <= mean_s:
        return mean_s - slope * mean_bytes, slope
    return 0.0, sum(length * s for length, s in points) / sum(length * length for length, _ in points)
