"""AdaComm: more local steps while the loss is high, fewer as it falls (Wang & Joshi 2018, arXiv:1810.08313).

Derivation.  Treat every interval of T_0 seconds as a restart from loss F_l; Theorem 2 gives
tau_l = sqrt(2 (F_l - F_inf) D/(eta_l^3 L^2 sigma2 T_0)).  Divided by the same at l = 0, the unknown constants cancel:
tau_l = tau_0 sqrt((F_l - F_inf)/(F_0 - F_inf)) (eta_0/eta_l)^(3/2).  The paper uses the exponent 1/2 instead, taking
eta L as constant because L is local, and halves tau (gamma) when the loss no longer falls.

Decay.  With a decayed learning rate the paper (recalled) first lets tau come down to 1: at a tau > 1 the error that
remains is not that of the learning rate alone, and a decay would raise tau again before it has fallen.  Whoever decays
asks ``ready_to_decay``, and waits until it says yes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ..runtime.checks import nonnegative
from ..runtime.rounds import count_rounds
from .schedule import LONGEST, Observation, Schedule, State, ceil_up, check_tau


@dataclass(frozen=True)
class AdaCommState(State):
    """tau in use, index of its interval, and what was observed at the start and at the last decision.

    Parameters
    ----------
    tau : int, optional
        Local steps between averagings now.
    interval : int, optional
        Index of the current interval.
    first_loss : float or None, optional
        At the start; None before it.
    first_eta : float or None, optional
        The first learning rate > 0; None before it.
    eta : float or None, optional
        Learning rate of the last observation.
    """

    tau: int = 0
    interval: int = -1
    first_loss: float | None = None
    first_eta: float | None = None
    eta: float | None = None


@final
@dataclass(frozen=True)
class AdaComm(Schedule):
    """tau_l = ceil(tau_0 sqrt((F_l - F_inf)/(F_0 - F_inf)) (eta_0/eta_l)^p), decided once an interval.

    Parameters
    ----------
    tau_0 : int
        Local steps of the first interval.
    interval_s : float, seconds
        T_0, much longer than a round.
    loss_inf : float, optional
        F_inf, if it is known to differ from 0.
    gamma : float or None, optional
        Saturation rule, 0 < gamma < 1: where the formula does not shrink tau and eta did not change, tau becomes max(1,
        min(tau - 1, ceil(gamma tau))); None for the basic rule.
    eta_exponent : float, optional
        p; 0 for a fixed learning rate, 1/2 as published, 3/2 as derived.
    cap : int or None, optional
        Largest tau.
    L : float or None, optional
        Smoothness; adds the cap of Theorem 1, under which eta L > 1 leaves tau = 1.

    Raises
    ------
    ValueError
        For arguments outside these ranges, for a missing loss, or if the first loss is not above loss_inf.

    Notes
    -----
    Needs a loss at the start and whenever an interval begins.  eta_0 is the first learning rate above 0.  Where eta_l
    is 0 or None, eta_0/eta_l counts as 1.  With L, an unknown rate leaves tau = 1, and a rate of 0 sets no cap.
    """

    tau_0: int
    interval_s: float
    loss_inf: float = 0.0
    gamma: float | None = None
    eta_exponent: float = 0.0
    cap: int | None = None
    L: float | None = None

    def __post_init__(self) -> None:
        check_tau("tau_0", self.tau_0)
        if not 0 < self.interval_s < math.inf:
            raise ValueError(f"interval_s must be finite and > 0; got interval_s = {self.interval_s}")
        if self.gamma is not None and not 0 < self.gamma < 1:
            raise ValueError(f"gamma must satisfy 0 < gamma < 1; got gamma = {self.gamma} (None for the basic rule)")
        nonnegative("eta_exponent", self.eta_exponent)
        if not math.isfinite(self.loss_inf):
            raise ValueError(f"loss_inf must be finite; got loss_inf = {self.loss_inf}")
        if self.cap is not None:
            check_tau("cap", self.cap)
        if self.L is not None and not 0 < self.L < math.inf:
            raise ValueError(f"L must be finite and > 0; got L = {self.L}")

    def init(self) -> AdaCommState:
        """Nothing observed yet."""
        return AdaCommState()

    def __call__(self, state: AdaCommState, observation: Observation) -> tuple[AdaCommState, int]:
        """Choose tau if an interval has begun, else keep it."""
        interval = count_rounds(observation.time_s, self.interval_s)
        if interval <= state.interval:
            return state, state.tau
        loss = self._loss(observation)
        first_eta = state.first_eta or observation.eta or None
        if state.first_loss is None:
            if loss <= self.loss_inf:
                raise ValueError(f"the first loss must exceed loss_inf = {self.loss_inf}; got {loss}")
            tau = self._clamp(self.tau_0, observation.eta)
            return AdaCommState(tau, interval, loss, first_eta, observation.eta), tau
        progress = max(loss - self.loss_inf, 0.0) / (state.first_loss - self.loss_inf)
        log_ratio = math.log(first_eta) - math.log(observation.eta) if first_eta and observation.eta else 0.0
        tau = self._proposed(progress, log_ratio)
        tau = self._clamp(self._saturate(state, tau, observation.eta), observation.eta)
        return AdaCommState(tau, interval, state.first_loss, first_eta, observation.eta), tau

    @staticmethod
    def ready_to_decay(state: AdaCommState) -> bool:
        """Return whether tau has come down to 1, so that a decay of the learning rate that is due may be done.

        Parameters
        ----------
        state : AdaCommState
            In use, such as ``PeriodicAveraging.schedule_state``; the same on every rank, hence the answer.

        Notes
        -----
        No before the first decision.  Without gamma tau may stall above 1, and the answer stays no.
        """
        return state.tau == 1

    def _proposed(self, progress: float, log_eta_ratio: float) -> int:
        """Return ceil(tau_0 sqrt(progress) (eta_0/eta)^p), at most LONGEST; by logarithms, for a power may overflow."""
        if progress == 0:
            return 1
        log_tau = math.log(self.tau_0) + math.log(progress) / 2 + self.eta_exponent * log_eta_ratio
        if log_tau > math.log(LONGEST):
            return LONGEST
        if self.eta_exponent == 0:
            return ceil_up(math.sqrt(progress) * self.tau_0)
        return ceil_up(math.exp(log_tau))

    def _saturate(self, state: AdaCommState, tau: int, eta: float | None) -> int:
        if self.gamma is None or tau < state.tau or eta != state.eta:
            return tau  # the saturation rule must not cancel the coupling
        return max(1, min(state.tau - 1, ceil_up(self.gamma * state.tau)))

    def _clamp(self, tau: int, eta: float | None) -> int:
        if self.cap is not None:
            tau = min(tau, self.cap)
        if self.L is not None and eta is None:
            return 1
        if self.L is not None and eta:
            from ..tau.integer import tau_cap  # and sympy with it, which other rules do without

            tau = min(tau, tau_cap(eta_L=Fraction(eta) * Fraction(self.L)) or 1)
        return tau

    @staticmethod
    def _loss(observation: Observation) -> float:
        if observation.loss is None:
            raise ValueError(f"a new interval needs a loss; none was observed at {observation.time_s} s: measure one")
        return observation.loss
