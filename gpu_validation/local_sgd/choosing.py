"""What a rule is told that chooses the operator too: measurements, and what an averaging did to the movements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .clock import Clock
from .period import PeriodController
from .schedule_inputs import Row
from .sensing import NUMBERS, MeasuredInputs
from .worker import Worker

MOVEMENTS = 3  # numbers of a row: error2, norm2 and mean2 of Measured.shared


class ChoosingInputs(MeasuredInputs):
    """The measurements of the workers hosted here, with those of their movements; the same ones travel later."""

    numbers = NUMBERS + MOVEMENTS

    def __init__(self, workers: Sequence[Worker], periods: PeriodController, ranks: Sequence[int]) -> None:
        super().__init__(workers, periods, ranks)
        self._movements: list[tuple[float, ...]] = [(math.nan,) * MOVEMENTS for _ in workers]

    def rows(self, clock: Clock) -> list[Row]:
        """Return clock, learning rate and measurements of every worker, and then those of its movement."""
        return [[*row, *of_movement] for row, of_movement in zip(super().rows(clock), self._movements, strict=True)]

    def note_movements(self, movements: Sequence[tuple[float, float, float]]) -> None:
        """Keep what the averaging has done to the movements for the next rows.

        Parameters
        ----------
        movements : sequence of (float, float, float)
            Of every worker hosted here: squared error of its message, squared norm of its movement and of the decoded
            mean.
        """
        self._movements = list(movements)

    def state_dict(self) -> dict[str, Any]:
        """Return what is known but not sent yet."""
        return {**super().state_dict(), "movements": [list(row) for row in self._movements]}

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Continue where ``state_dict`` was taken."""
        super().load_state_dict(state)
        assert state is not None  # checked above
        self._movements = [tuple(row) for row in state["movements"]]
