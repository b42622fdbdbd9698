"""What the ranks of a run measured around an averaging, reduced to the few numbers that all of them share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Measured:
    """What is known at an averaging; None where it is not.

    Parameters
    ----------
    compute_s : float or None, seconds, optional
        The local steps of the round that has just ended, on one worker, mean over workers.
    wait_s : float or None, seconds, optional
        The slowest worker's time minus that mean.
    delay_s : float or None, seconds, optional
        The averaging before this one, as the last worker to arrive saw it, which had nobody to wait for.
    lost : float or None, optional
        Of the probe after that averaging: the mean over workers of <u - h, u>, where h is a worker's gradient in its
        last local step and u the one at the mean.
    fresh : float or None, optional
        Of the same probe: the mean over workers of <u, u>.
    loss_jump : float or None, optional
        mean loss at the averaged model minus mean loss where h was.
    error2 : float or None, optional
        Of the averaging before this one: the mean over workers of the squared error of their messages.
    norm2 : float or None, optional
        Of the same: the mean over workers of the squared norm of their movements.
    mean2 : float or None, optional
        Of the same: the squared norm of the decoded mean movement.
    bend2 : float or None, optional
        Of the probe: the mean over workers of the squared bend of their losses (``steady``).
    curve : float or None, optional
        Of the same: the mean over workers of <h - u, y - x>/2, y being where h was and x the mean model.
    turn : float or None, optional
        Cosine of the angle between the mean movements of the two averagings before this one.
    workers : int, optional
        That have measured.

    Raises
    ------
    ValueError
        For nan and infinities, and for negative times or fresh.
    """

    compute_s: float | None = None
    wait_s: float | None = None
    delay_s: float | None = None
    lost: float | None = None
    fresh: float | None = None
    loss_jump: float | None = None
    error2: float | None = None
    norm2: float | None = None
    mean2: float | None = None
    bend2: float | None = None
    curve: float | None = None
    turn: float | None = None
    workers: int = 1

    def __post_init__(self) -> None:
        for name, value in tuple(self.__dict__.items()):
            if value is None or name == "workers":
                continue
            object.__setattr__(self, name, float(value))
            if not math.isfinite(value):
                raise ValueError(f"{name} must be finite; got {name} = {value}")
            if value < 0 and name not in ("lost", "loss_jump", "curve", "turn"):
                raise ValueError(f"{name} must be >= 0; got {name} = {value}")

    @classmethod
    def shared(cls, rows: Iterable[Sequence[float]]) -> Self:
        """From the rows of all ranks: (compute_s, averaging_s, lost, fresh, loss_jump, bend, curve, turn), nan for what
        is not known; or these and (error2, norm2, mean2).

        Parameters
        ----------
        rows : iterable of sequence of float
            One row of numbers of every worker.

        Notes
        -----
        averaging_s
            From arrival to departure, the wait for others included.  Sums are rounded once, so that the order of the
            ranks does not matter; ranks that know nothing are left out.
        """
        table = [tuple(row) for row in rows]
        computed, averaged, jumps = _column(table, 0), _column(table, 1), _column(table, 4)
        sent = [row[8:] for row in table if len(row) > 8 and all(map(math.isfinite, row[8:]))]
        bent = [row for row in table if math.isfinite(row[5]) and math.isfinite(row[6])]
        probed = [row for row in table if math.isfinite(row[2]) and math.isfinite(row[3])]
        mean = _applied(_mean, computed)
        return cls(
            compute_s=mean,
            wait_s=None if mean is None else max(0.0, max(computed) - mean),
            delay_s=_applied(min, averaged),
            lost=_applied(_mean, _column(probed, 2)),
            fresh=_applied(_mean, _column(probed, 3)),
            loss_jump=_applied(_mean, jumps),
            error2=_applied(_mean, _column(sent, 0)),
            norm2=_applied(_mean, _column(sent, 1)),
            mean2=_applied(_mean, _column(sent, 2)),
            bend2=_applied(_mean, [row[5] ** 2 for row in bent]),
            curve=_applied(_mean, _column(bent, 6)),
            turn=_applied(_mean, _column(table, 7)),
            workers=max(1, len(table)),
        )


def _column(table: Sequence[Sequence[float]], index: int) -> list[float]:
    return [row[index] for row in table if math.isfinite(row[index])]


def _applied(function: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    return function(values) if values else None


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
