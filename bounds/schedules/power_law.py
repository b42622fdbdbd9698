"""tau as a power of the number of the round: increasing, decreasing, and when Theorem 3 lets it converge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from ..runtime.checks import nonnegative
from .schedule import Observation, Schedule, State, ceil_up, check_tau


@dataclass(frozen=True)
class RoundState(State):
    """Rounds decided so far.

    Parameters
    ----------
    rounds : int, optional
        Number of calls.
    """

    rounds: int = 0


@final
@dataclass(frozen=True)
class Increasing(Schedule):
    """tau_r = ceil(tau_0 r^exponent) in round r = 1, 2, ...; exponent >= 0.

    For decaying learning rates; ``increasing_converges`` says which.

    Parameters
    ----------
    tau_0 : int
        Local steps of the first round.
    exponent : float
        Power of the round's number.
    cap : int or None, optional
        Largest tau, None for none.

    Raises
    ------
    ValueError
        For arguments outside the ranges.
    """

    tau_0: int
    exponent: float
    cap: int | None = None

    def __post_init__(self) -> None:
        _check(self.tau_0, self.exponent)
        if self.cap is not None:
            check_tau("cap", self.cap)

    def init(self) -> RoundState:
        """Return no round done."""
        return RoundState()

    def __call__(self, state: RoundState, observation: Observation) -> tuple[RoundState, int]:
        """Return the next power."""
        tau = ceil_up(self.tau_0 * float(state.rounds + 1) ** self.exponent)
        return RoundState(state.rounds + 1), tau if self.cap is None else min(tau, self.cap)


@final
@dataclass(frozen=True)
class Decreasing(Schedule):
    """tau_r = max(1, ceil(tau_0 r^-exponent)) in round r = 1, 2, ...; exponent >= 0.

    For a fixed learning rate: as the gradient falls, the noise of the local steps weighs more.

    Parameters
    ----------
    tau_0 : int
        Local steps of the first round.
    exponent : float
        Power of the round's number.

    Raises
    ------
    ValueError
        For arguments outside the ranges.
    """

    tau_0: int
    exponent: float

    def __post_init__(self) -> None:
        _check(self.tau_0, self.exponent)

    def init(self) -> RoundState:
        """Return no round done."""
        return RoundState()

    def __call__(self, state: RoundState, observation: Observation) -> tuple[RoundState, int]:
        """Return the next power."""
        return RoundState(state.rounds + 1), ceil_up(self.tau_0 * float(state.rounds + 1) ** -self.exponent)


def increasing_converges(*, eta_exponent: float, tau_exponent: float) -> bool:
    """Return whether Theorem 3 drives the gradient to zero for eta_r = c r^-a and tau_r = r^b, given a small enough c.

    a = eta_exponent, b = tau_exponent; the conditions are those of ``power_schedule_converges``.

    Parameters
    ----------
    eta_exponent : float
        Power of the step's number by which eta falls.
    tau_exponent : float
        Power of the round's number by which tau grows.
    """
    from ..theorems.local_sgd import power_schedule_converges

    return power_schedule_converges(eta_exponent, tau_exponent)


def _check(tau_0: int, exponent: float) -> None:
    check_tau("tau_0", tau_0)
    nonnegative("exponent", exponent)
