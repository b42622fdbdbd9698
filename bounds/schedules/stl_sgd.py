"""Stagewise local SGD: tau rises as the learning rate falls (Shen et al. 2021, arXiv:2006.06377)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from ..runtime.checks import nonnegative
from .schedule import LONGEST, Observation, Schedule, State, check_tau


@dataclass(frozen=True)
class StlSgdState(State):
    """The learning rate of the first stage; None before the first call.

    Parameters
    ----------
    first_eta : float or None, optional
        The first learning rate > 0.
    """

    first_eta: float | None = None


@final
@dataclass(frozen=True)
class StlSgd(Schedule):
    """tau = max(1, floor(tau_0 (eta_0/eta)^p)): with eta halved from stage to stage, tau doubles for p = 1.

    Parameters
    ----------
    tau_0 : int
        Local steps of the first stage.
    exponent : float, optional
        p = 1 if all workers sample the same data, 1/2 (tau grows by sqrt 2 a stage) if they do not.

    Raises
    ------
    ValueError
        For tau_0 < 1 or an exponent < 0.

    Notes
    -----
    At a learning rate of 0 or None tau is tau_0.
    """

    tau_0: int
    exponent: float = 1.0

    def __post_init__(self) -> None:
        check_tau("tau_0", self.tau_0)
        nonnegative("exponent", self.exponent)

    def init(self) -> StlSgdState:
        """Return no learning rate seen."""
        return StlSgdState()

    def __call__(self, state: StlSgdState, observation: Observation) -> tuple[StlSgdState, int]:
        """Return the rule at this learning rate."""
        first = state.first_eta or observation.eta or None
        if not first or not observation.eta:
            return StlSgdState(first), self.tau_0
        log_growth = self.exponent * (math.log(first) - math.log(observation.eta))
        if log_growth > math.log(LONGEST / self.tau_0):
            return StlSgdState(first), LONGEST
        growth = (first / observation.eta) ** self.exponent
        return StlSgdState(first), max(1, int(self.tau_0 * growth * (1 + 1e-12)))
