"""How many local steps, and how many of them while an average is under way: when hiding the average pays.

With n = D/Y, A = 2 gap/(eta T) and B = (1 - 1/m) eta^2 L^2 sigma2 the bound of ``pasgd_overlap_runtime`` is, up to what
neither tau nor delta enters::

    A (Y + max(0, D - delta Y)/tau) + B (tau - 1 + 2 delta).

In delta it is linear up to n and grows beyond, so that for every tau one of three is best: nothing in flight, as much
as hides the average (n, rounded either way), or as much as the learning rate and the round allow, if that is less.  No
tau beyond both n and the best blocking one can be best.

Over real numbers and with a small learning rate, with tau* = sqrt(A D/B) of blocking rounds and u = n/tau*: the best
overlapped round is tau = delta = n where tau* >= sqrt(3) n and tau = delta = tau*/sqrt(3) elsewhere.  In units of A Y,
blocking costs 1 + 2u and overlap 1 + 3 u^2 or 2 sqrt(3) u; it pays iff tau* > 2 (sqrt(3) - 1) n = 1.464 n, and by a
factor of (3 + sqrt(21))/6 = 1.264 at most, at u = (sqrt(21) - 3)/6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..bound import ROUNDING_SLACK
from ..theorems.seconds import pasgd_overlap_runtime
from .arguments import float_arguments

_SLACK = ROUNDING_SLACK / 2  # the bound itself forgives twice as much
EVERY_INTEGER = 10**6  # beyond, tau is searched to six digits


@dataclass(frozen=True)
class TauOverlap:
    """The integers that minimise the bound of ``pasgd_overlap_runtime``.

    Parameters
    ----------
    tau : int
        Local steps of a round.
    in_flight : int
        Of them, those made while the average is under way; 0 where waiting is best.
    error : float
        The bound there.
    blocking_tau : int
        The best tau of workers that wait.
    blocking_error : float
        The bound there.
    """

    tau: int
    in_flight: int
    error: float
    blocking_tau: int
    blocking_error: float

    @property
    def pays(self) -> bool:
        """Whether the bound is lower with averages in flight than without."""
        return self.in_flight > 0


def tau_overlap(
    *, gap: Any, delay_s: Any, step_s: Any, eta: Any, L: Any, sigma2: Any, time_s: Any, m: Any
) -> TauOverlap:
    """Return the best tau and number of steps in flight, of those that the learning rate allows.

    Parameters
    ----------
    gap : number
        F(x_1) - inf F, >= 0.
    delay_s : number, seconds
        Time of one averaging, >= 0.
    step_s : number, seconds
        Time of one local step, > 0.
    eta : number
        Learning rate, > 0.
    L : number
        Smoothness constant of F, > 0.
    sigma2 : number
        Variance of one worker's mini-batch gradient, >= 0.
    time_s : number, seconds
        Wall-clock budget, > 0.
    m : int
        Workers, >= 1.

    Raises
    ------
    ValueError
        For arguments outside these ranges, and if eta L > 1, where no tau is covered.
    """
    given = float_arguments(
        "tau_overlap", gap=gap, delay_s=delay_s, step_s=step_s, eta=eta, L=L, sigma2=sigma2, time_s=time_s, m=m
    )
    if given["step_s"] == 0:
        raise ValueError(f"tau_overlap needs step_s > 0; got step_s = {step_s}")
    eta_L = given["eta"] * given["L"]
    if eta_L > 1 + ROUNDING_SLACK:
        raise ValueError(f"no tau is covered where eta L > 1; got eta L = {eta_L}")
    hiding = given["delay_s"] / given["step_s"]
    tau = _taus(given, eta_L, hiding)
    most = _most_in_flight(eta_L, tau)
    shapes = [np.minimum(delta, most) for delta in (0.0, np.floor(hiding), np.ceil(hiding))]
    points = np.array([(t, delta) for shape in shapes for t, delta in zip(tau, shape, strict=True)])
    errors = np.asarray(pasgd_overlap_runtime(**given, tau=points[:, 0], in_flight=points[:, 1]))
    waiting, best = int(errors[: len(tau)].argmin()), int(errors.argmin())
    return TauOverlap(
        int(points[best, 0]), int(points[best, 1]), float(errors[best]), int(tau[waiting]), float(errors[waiting])
    )


def _taus(given: dict[str, float], eta_L: float, hiding: float) -> np.ndarray:
    """Return the tau that can be best: up to the larger of n and the blocking tau*, within the learning rate's cap."""
    cap = np.floor((1 + np.sqrt(1 + 4 * max(1 + _SLACK - eta_L, 0) / eta_L**2)) / 2)
    price = 2 * given["gap"] / (given["eta"] * given["time_s"]) * given["delay_s"]
    noise = (1 - 1 / given["m"]) * eta_L**2 * given["sigma2"]
    blocking = np.sqrt(price / noise) if noise > 0 else np.inf
    top = min(cap, np.ceil(max(hiding, blocking)) + 1)
    if top <= EVERY_INTEGER:
        return np.arange(1.0, top + 1)
    return np.unique(np.round(np.geomspace(1, top, EVERY_INTEGER)))


def _most_in_flight(eta_L: float, tau: np.ndarray) -> np.ndarray:
    """Return the largest delta <= tau that the condition of ``pasgd_overlap`` allows at each tau, by its square root.

    The condition reads ``tau (tau - 1)/2 <= room`` at delta = 0 and, from delta = 1 on, ``delta^2/2 + (2 tau - 1/2)
    delta + tau (tau - 3)/2 <= room``.
    """
    room = (1 + _SLACK - eta_L) / (2 * eta_L**2)
    b = 2 * tau - 0.5
    rest = np.maximum(room - tau * (tau - 3) / 2, 0.0)
    root = np.floor(2 * rest / (b + np.sqrt(b**2 + 2 * rest)))
    return np.clip(root, 0.0, tau)
