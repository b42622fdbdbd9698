"""Post-local SGD: synchronise at every step until the learning rate first decays (Lin et al. 2020)."""

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
    """tau = 1, then ``tau`` from the first decay of the learning rate on (arXiv:1808.07217; empirical).

    A warm-up, in which eta grows, does not count as a decay.

    Parameters
    ----------
    tau : int
        Local steps between averagings after the switch.

    Raises
    ------
    ValueError
        For tau < 1.
    """

    tau: int

    def __post_init__(self) -> None:
        check_tau("tau", self.tau)

    def init(self) -> PostLocalState:
        """Return no learning rate seen."""
        return PostLocalState()

    def __call__(self, state: PostLocalState, observation: Observation) -> tuple[PostLocalState, int]:
        """Return 1 before the first decay, tau from then on."""
        eta = state.largest_eta if observation.eta is None else observation.eta
        begun = state.begun or eta < state.largest_eta
        return PostLocalState(max(state.largest_eta, eta), begun), self.tau if begun else 1
