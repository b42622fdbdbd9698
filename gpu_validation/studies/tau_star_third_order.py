"""A problem of known Q on which the third-order bound and its tau are judged.

The Hessian of F on the line is h + Q x, cut to [h - w, h + w]: convex, and Q-Lipschitz with no smaller constant.  The
noise is Gaussian, of kurtosis 3.  With many workers the noise of the mean model is small, so that the price of local
steps shows.

Two runs are measured.  One starts at the minimiser, where the bound is its price and eta L sigma2/m.  The price grows
with Q^2: a bound of half of Q is below what is measured.  The other starts away from it and has a budget of seconds, at
tau_third_order and a quarter, half, twice and four times that tau.

Derivation of the variance of one seed's value f = mean_k F'(xbar_k)^2 over K steps.  The model of a worker changes by a
step with a derivative in [1 - eta L, 1 - eta mu], so the noise n of one worker in one step changes a later xbar by at
most eta/m rho^j |n|, rho = 1 - eta mu.  By the inequality of Gauss and Poincare, Cauchy and Schwarz, and sum rho^j <=
1/(eta mu), Var f <= sigma2 E|grad_n f|^2 <= 4 sigma2 (L/mu)^2 E f/(K m).  E f is at most the proved bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bounds.tau import tau_third_order
from bounds.theorems import pasgd_third_order_convex
from operators import Key
from operators.random import normal

from ..judging.comparisons import mean_row, ratio_row, unjudged_row
from ..judging.verdict import Comparison
from ..records.storage import Record

BLOCKS, SEEDS = 8, 5  # units, and seeds of each
KURTOSIS = 3.0
FACTORS = {0.25: "a quarter", 0.5: "half", 2: "twice", 4: "four times"}
JUDGED = (0.25, 4)  # too few seeds decide about half and twice
SHOWN = "shown beside the judged quarter and four times; 40 seeds are too few to judge it"


@dataclass(frozen=True)
class Bent:
    """F with the Hessian h + Q x, cut to [h - w, h + w], and workers that are entries of a vector.

    Parameters
    ----------
    h, w, Q : float
        Hessian at 0, largest change of it, and its Lipschitz constant; 0 <= w < h.
    eta, sigma2 : float
        Learning rate, and variance of the noise.
    start : float
        Model at the start, within w/Q of 0.
    m : int
        Number of workers.
    """

    h: float = 0.75
    w: float = 0.25
    Q: float = 1.1
    eta: float = 0.04
    sigma2: float = 1.0
    start: float = 0.0
    m: int = 32768

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Return F' at every entry.

        Parameters
        ----------
        x : ndarray
            Models.
        """
        cut = np.clip(x, -self.w / self.Q, self.w / self.Q)
        return self.h * x + self.Q * cut * (x - cut / 2)

    @property
    def arguments(self) -> dict[str, float]:
        """The constants of the theorem."""
        gap = self.h * self.start**2 / 2 + self.Q * self.start**3 / 6
        L = self.h + self.w
        of_descent = {"gap": gap, "eta": self.eta, "L": L, "sigma2": self.sigma2, "m": self.m}
        return of_descent | {"hessian_lipschitz": self.Q, "kurtosis": KURTOSIS}

    def bound(self, tau: int, K: int) -> float:
        """Return the proved bound on the mean of F'(xbar)^2 over K steps.

        Parameters
        ----------
        tau : int
            Local steps of a round.
        K : int
            Steps.
        """
        return float(pasgd_third_order_convex(**self.arguments, tau=tau, K=K))

    def variance(self, tau: int, K: int) -> float:
        """Return an upper bound on the variance of one seed's value, derived above.

        Parameters
        ----------
        tau : int
            Local steps of a round.
        K : int
            Steps.
        """
        ratio = (self.h + self.w) / (self.h - self.w)
        return 4 * self.sigma2 * ratio**2 * self.bound(tau, K) / (K * self.m)

    def value(self, tau: int, K: int, seed: int) -> float:
        """Return the mean of F'(xbar)^2 over the K steps of one seed.

        Parameters
        ----------
        tau : int
            Local steps of a round.
        K : int
            Steps.
        seed : int
            Of the noise.
        """
        x, total = np.full(self.m, self.start), 0.0
        for k in range(K):
            total += float(self.gradient(x.mean())) ** 2
            x = x - self.eta * (self.gradient(x) + np.sqrt(self.sigma2) * normal(Key(seed, step=k), self.m))
            if (k + 1) % tau == 0:
                x = np.full(self.m, x.mean())
        return total / K


STILL, STILL_STEPS = Bent(), 900
AWAY = Bent(start=0.08, m=8192)
DELAY_STEPS, TIME_STEPS = 4, 1500  # D and T over Y


def claimed() -> int:
    """Return the tau of the third-order bound for the run that starts away."""
    best = tau_third_order(**AWAY.arguments, delay_s=DELAY_STEPS, time_s=TIME_STEPS).integer
    assert best is not None  # there is noise
    return best


def steps(tau: int) -> int:
    """Return local steps of all whole rounds in the budget.

    Parameters
    ----------
    tau : int
        Local steps of a round.
    """
    return tau * (TIME_STEPS // (tau + DELAY_STEPS))


def around(tau: int) -> dict[float, int]:
    """Return a tau and what it is compared with, by their factors.

    Parameters
    ----------
    tau : int
        The claimed one.
    """
    return {1: tau} | {factor: max(1, round(factor * tau)) for factor in FACTORS}


def measure_third(block: int) -> Record:
    """Return the values of some seeds, still and away.

    Parameters
    ----------
    block : int
        Which seeds.
    """
    tau, seeds = claimed(), range(SEEDS * block, SEEDS * (block + 1))
    rounds = STILL_STEPS // tau
    away = {str(each): [AWAY.value(each, steps(each), seed) for seed in seeds] for each in around(tau).values()}
    return {"claimed": tau, "still": [STILL.value(tau, tau * rounds, seed) for seed in seeds], "away": away}


def third_rows(records: Sequence[Record], level: float) -> list[Comparison]:
    """Judge the bound still and away at its tau, and that tau against others.

    Parameters
    ----------
    records : sequence of Record
        Of ``measure_third``.
    level : float
        Probability of a false VIOLATED, of each row.
    """
    if not records:
        return []
    tau = records[0]["claimed"]
    about: dict[str, Any] = {"operator": "whole models", "quantity": "mean of |grad F|^2 over the steps", "tau": tau}
    about["theorem"] = pasgd_third_order_convex.name
    values = [value for record in records for value in record["still"]]
    still, away = (f"Hessian {each.Q:g}-Lipschitz, m = {each.m}" for each in (STILL, AWAY))
    rows = [
        mean_row(
            values,
            STILL.bound(tau, STILL_STEPS // tau * tau),
            "upper",
            level=level,
            variance=STILL.variance(tau, STILL_STEPS // tau * tau),
            workload=f"{still}, from the minimiser",
            **about,
        )
    ]
    ours = _away(records, tau)
    if ours is None:
        return rows
    bound, variance = AWAY.bound(tau, steps(tau)), AWAY.variance(tau, steps(tau))
    rows.append(mean_row(ours, bound, "upper", level=level, variance=variance, workload=away, **about))
    for factor, other in around(tau).items():
        theirs = _away(records, other)
        if factor != 1 and theirs is not None:
            rows.append(_ratio_row(ours, theirs, tau, other, factor, away, level))
    return rows


def _away(records: Sequence[Record], tau: int) -> list[float] | None:
    """Return the values at a tau, None if it was not measured."""
    if str(tau) not in records[0]["away"]:
        return None
    return [value for record in records for value in record["away"][str(tau)]]


def _ratio_row(
    ours: list[float], theirs: list[float], tau: int, other: int, factor: float, workload: str, level: float
) -> Comparison:
    quantity = f"mean of |grad F|^2: {FACTORS[factor]} the tau of the third-order bound over that tau"
    about: dict[str, Any] = {"operator": "whole models", "workload": workload, "quantity": quantity, "tau": other}
    if factor not in JUDGED:
        ratios = [a / b for a, b in zip(theirs, ours, strict=True)]
        return unjudged_row(ratios, SHOWN, theorem="tau_third_order", **about)
    variances = AWAY.variance(other, steps(other)), AWAY.variance(tau, steps(tau))
    return ratio_row(theirs, ours, variances, level=level, theorem="tau_third_order", **about)
