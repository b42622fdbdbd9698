"""The quadratic synchronisation rule: tau grows like eta^-2 (Gu et al. 2024, arXiv:2310.14423)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from .schedule import LONGEST, Observation, Schedule, State, check_tau


@final
@dataclass(frozen=True)
class QSR(Schedule):
    """tau = max(tau_base, floor((growth/eta)^2)), never beyond the steps that are left.

    Parameters
    ----------
    tau_base : int
        The fewest local steps of a round.
    growth : float
        The rule's constant (alpha in the paper), > 0, in units of the learning rate.
    warmup_steps : int, optional
        The first steps, while eta still rises.
    peak_eta : float or None, optional
        The learning rate at which the rule is read during them.

    Raises
    ------
    ValueError
        For arguments outside these ranges, or if a warm-up is given without its peak.

    Notes
    -----
    A generalisation argument, not a bound on the training loss.  At a learning rate of 0 or None tau is tau_base.
    """

    tau_base: int
    growth: float
    warmup_steps: int = 0
    peak_eta: float | None = None

    def __post_init__(self) -> None:
        check_tau("tau_base", self.tau_base)
        if not 0 < self.growth < math.inf:
            raise ValueError(f"growth must be finite and > 0; got growth = {self.growth}")
        if self.warmup_steps < 0:
            raise ValueError(f"warmup_steps must be >= 0; got warmup_steps = {self.warmup_steps}")
        if self.warmup_steps > 0 and not (self.peak_eta and 0 < self.peak_eta < math.inf):
            raise ValueError(f"a warm-up needs peak_eta > 0, the rate at its end; got peak_eta = {self.peak_eta}")

    def init(self) -> State:
        """Nothing to remember."""
        return State()

    def __call__(self, state: State, observation: Observation) -> tuple[State, int]:
        """Return the rule at this learning rate."""
        warm = observation.step < self.warmup_steps and self.peak_eta is not None
        eta = self.peak_eta if warm and self.peak_eta is not None else observation.eta
        ratio = self.growth / eta if eta else 0.0
        tau = LONGEST if ratio > LONGEST**0.5 else max(self.tau_base, math.floor(ratio**2 * (1 + 1e-12)))
        return state, tau if observation.steps_left is None else max(1, min(tau, observation.steps_left))
