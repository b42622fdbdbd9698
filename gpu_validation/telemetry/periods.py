"""Predicted gains of other periods, from measurements and stated assumptions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bounds import AssumptionViolated
from bounds.schedules.gradient_retention import LARGEST, best_integer
from bounds.tau import tau_star
from bounds.theorems import pasgd_compressed_runtime, pasgd_runtime

from .account import Header


@dataclass(frozen=True)
class Known:
    """Known constants of the problem; None for unknown ones.

    Parameters
    ----------
    L : float or None, optional
        Smoothness of the loss, > 0.
    sigma2 : float or None, optional
        Variance of one worker's mini-batch gradient, > 0.
    gap : float or None, optional
        F at the start minus inf F, > 0.
    time_s : float or None, seconds, optional
        Time of the whole run, > 0; None takes the time so far.

    Raises
    ------
    ValueError
        Unless the constants are positive and finite.
    """

    L: float | None = None
    sigma2: float | None = None
    gap: float | None = None
    time_s: float | None = None

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{name} must be finite and > 0; got {name} = {value}: leave unknown ones out")


@dataclass(frozen=True)
class Situation:
    """Measurements of a run; nan if missing.

    Parameters
    ----------
    tau : int
        Local steps of the last rounds.
    step_s : float, seconds
        Median time of a local step.
    delay_s : float, seconds
        Median time of an averaging without waiting.
    decline : float or None
        Share of the gradient lost per local step.
    away2_a_step : float
        ``mean |model - mean|^2`` at the end of a round, over its steps.
    loss : float
        Loss of the first kept round.
    eta : float
        Learning rate of the last step.
    seconds : float
        Time since the start of the run.
    """

    tau: int
    step_s: float
    delay_s: float
    decline: float | None
    away2_a_step: float
    loss: float
    eta: float
    seconds: float


@dataclass(frozen=True)
class Advice:
    """Advice of one rule on a better period.

    Parameters
    ----------
    rule : str
        Name of the rule.
    tau : int or None
        Best period; None for "as long as the loss permits".
    factor : float
        Gain at this period, >= 1.
    of : str
        Quantity that the gain multiplies.
    assuming : tuple of str
        Assumptions that were not measured.
    """

    rule: str
    tau: int | None
    factor: float
    of: str
    assuming: tuple[str, ...]


def advise(header: Header, now: Situation, known: Known) -> list[Advice]:
    """Return the advice of each rule whose inputs are known.

    Parameters
    ----------
    header : Header
        Settings of the run.
    now : Situation
        Measurements of the run.
    known : Known
        Constants that the user knows.
    """
    if not (now.step_s > 0 and now.delay_s >= 0 and now.tau >= 1):
        return []
    advices = [_time_alone(now)]
    if now.decline is not None:
        advices.append(_by_retention(now, now.decline))
    theorem = _by_theorem(header, now, known)
    return advices if theorem is None else [*advices, theorem]


def _time_alone(now: Situation) -> Advice:
    factor = 1 + now.delay_s / now.step_s / now.tau
    return Advice("time alone", None, factor, "local steps per second, at most", ("longer rounds lose no progress",))


def _by_retention(now: Situation, decline: float) -> Advice:
    """Return the choice of ``schedule="auto"``."""
    n = now.delay_s / now.step_s
    best = best_integer(delay_ratio=n, decline=decline)

    def rate(tau: int) -> float:
        return float(np.maximum(1 - decline * np.arange(min(tau, LARGEST)), 0).sum()) / (tau + n)

    factor = rate(best) / rate(now.tau) if rate(now.tau) > 0 else math.inf
    assuming = (f"a local step loses {decline:.3g} of the gradient, as measured by the schedule's probes",)
    return Advice("gradient retention", best, max(1.0, factor), "progress per second", assuming)


def _by_theorem(header: Header, now: Situation, known: Known) -> Advice | None:
    """Return tau_star of Theorem 2 of Wang and Joshi, with estimates in place of unknown constants."""
    assuming: list[str] = []
    if not now.eta > 0:
        return None
    sigma2 = known.sigma2
    if sigma2 is None:
        if not (header.plain_sgd and now.away2_a_step > 0 and header.size > 1):
            return None
        sigma2 = now.away2_a_step / (now.eta**2 * (1 - 1 / header.size))
        assuming.append(f"sigma2 = {sigma2:.3g} from the drift, if all of it is noise of plain SGD")
    gap = known.gap
    if gap is None:
        if not 0 < now.loss < math.inf:
            return None
        gap = now.loss
        assuming.append(f"gap = {gap:.3g}, the first loss, if inf F is 0")
    L = known.L
    if L is None:
        L = _largest_load(now.tau) / now.eta
        assuming.append(f"L = {L:.3g}, the largest for which the theorem covers eta and tau")
    time_s = known.time_s or now.seconds
    if known.time_s is None:
        assuming.append(f"T = {time_s:.3g} s, the time so far")
    chosen = tau_star(gap=gap, delay_s=now.delay_s, eta=now.eta, L=L, sigma2=sigma2, time_s=time_s)
    best = chosen.integer
    if best is None:
        return None
    omega = header.declared.constant if header.declared and header.declared.kind == "Unbiased" else None
    arguments = {"gap": gap, "eta": now.eta, "L": L, "sigma2": sigma2, "m": header.size, "time_s": time_s}
    arguments |= {"step_s": now.step_s, "delay_s": now.delay_s}
    bound = pasgd_runtime if omega is None else pasgd_compressed_runtime
    arguments |= {} if omega is None else {"omega": omega}
    try:
        factor = bound(tau=now.tau, **arguments) / bound(tau=best, **arguments)
    except AssumptionViolated:
        factor = math.nan
        assuming.append("the bound does not cover this learning rate with both periods, so no gain is stated")
    return Advice("tau_star", best, factor, "the bound on the squared gradient norm, worst case", tuple(assuming))


def _largest_load(tau: int) -> float:
    """Return the largest u = eta L with u + u^2 tau (tau - 1) <= 1."""
    c = tau * (tau - 1)
    return 2 / (1 + math.sqrt(1 + 4 * c))
