"""Inputs of a rule that also chooses the operator: measurements and effects of the averaging on the movements."""

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
    """Measurements of the workers hosted here and of their movements; each is sent with the next averaging."""

    numbers = NUMBERS + MOVEMENTS

    def __init__(self, workers: Sequence[Worker], periods: PeriodController, ranks: Sequence[int]) -> None:
        super().__init__(workers, periods, ranks)
        self._movements: list[tuple[float, ...]] = [(math.nan,) * MOVEMENTS for _ in workers]

    def rows(self, clock: Clock) -> list[Row]:
        """Return clock, learning rate and measurements of every worker, followed by those of its movement."""
        return [[*row, *of_movement] for row, of_movement in zip(super().rows(clock), self._movements, strict=True)]

    def note_movements(self, movements: Sequence[tuple[float, float, float]]) -> None:
        """Store (error2, norm2, mean2) of every worker hosted here for the next rows.

        They are the squared error of its message, the squared norm of its movement and that of the decoded mean.
        """
        self._movements = list(movements)

    def state_dict(self) -> dict[str, Any]:
        """Return the measurements that are not sent yet."""
        return {**super().state_dict(), "movements": [list(row) for row in self._movements]}

    def load_state_dict(self, state: Mapping[str, Any] | None) -> None:
        """Restore a state of ``state_dict``."""
        super().load_state_dict(state)
        assert state is not None  # checked above
        self._movements = [tuple(row) for row in state["movements"]]
