"""Post-local SGD: synchronise at every step at first, then make local steps (Lin et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from .schedule import Observation, Schedule, State, check_tau


@dataclass(frozen=True)
class PostLocalState(State):
    """The largest learning rate so far, and whether local steps have begun.

    Parameters
    ----------
    largest_eta : float, optional
        The learning rate.
    begun : bool, optional
        Whether the switch has happened.
    """

    largest_eta: float = 0.0
    begun: bool = False


@final
@dataclass(frozen=True)
class PostLocal(Schedule):
    """tau = 1, then ``tau`` from the first decay of the learning rate on, or after ``steps``: arXiv:1808.07217.

    A warm-up, in which eta grows, does not count as a decay.  The rule is empirical.

    Parameters
    ----------
    tau : int
        Local steps between averagings after the switch.
    steps : int or None, optional
        Steps before the switch, >= 0, whatever the learning rate does: ``start_localSGD_iter`` of torch's
        ``PostLocalSGDState``.  None waits for the first decay.

    Raises
    ------
    ValueError
        For tau < 1, and steps that are no whole number.
    """

    tau: int
    steps: int | None = None

    def __post_init__(self) -> None:
        check_tau("tau", self.tau)
        if self.steps not in (None, 0):
            check_tau("steps", self.steps)

    def init(self) -> PostLocalState:
        """Return no learning rate seen."""
        return PostLocalState()

    def __call__(self, state: PostLocalState, observation: Observation) -> tuple[PostLocalState, int]:
        """Return 1 before the switch, tau from then on."""
        eta = state.largest_eta if observation.eta is None else observation.eta
        switched = eta < state.largest_eta if self.steps is None else observation.step >= self.steps
        begun = state.begun or switched
        return PostLocalState(max(state.largest_eta, eta), begun), self.tau if begun else 1
