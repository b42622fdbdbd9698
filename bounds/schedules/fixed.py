"""The same number of local steps throughout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from .schedule import Observation, Schedule, State, check_tau


@final
@dataclass(frozen=True)
class Fixed(Schedule):
    """tau local steps in every round; tau = 1 is fully synchronous SGD.

    Parameters
    ----------
    tau : int
        Local steps of every round.

    Raises
    ------
    ValueError
        For tau < 1.
    """

    tau: int

    def __post_init__(self) -> None:
        check_tau("tau", self.tau)

    def init(self) -> State:
        """Nothing to remember."""
        return State()

    def __call__(self, state: State, observation: Observation) -> tuple[State, int]:
        """Return always tau."""
        return state, self.tau
