"""Families of step-time laws: maximum likelihood and density of each.

Families whose support begins at the smallest sample (shifted exponential, Pareto, uniform) have their maximum there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bounds.runtime import Exponential, Gamma, LogNormal, Pareto, ShiftedExponential, Uniform, Weibull
from bounds.runtime.law import Law

NEWTON_STEPS = 60
CONVERGED = 1e-12


@dataclass(frozen=True)
class Family:
    """A parametric family of laws.

    Parameters
    ----------
    name : str
        Name of the family.
    parameters : int
        Number of free parameters.
    fit : callable
        Map from samples, shape (n,), in seconds, not all equal, to the law of maximum likelihood.
    log_density : callable
        Map from (law, samples) to the log density at each sample, -inf outside the support.
    """

    name: str
    parameters: int
    fit: Callable[[np.ndarray], Law]
    log_density: Callable[[Any, np.ndarray], np.ndarray]


def _gamma(x: np.ndarray) -> Gamma:
    """Solve log k - psi(k) = log mean - mean log by Newton's method, from Minka's start."""
    from scipy.special import polygamma, psi

    s = math.log(x.mean()) - float(np.log(x).mean())
    k = (3 - s + math.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    for _ in range(NEWTON_STEPS):
        step = (math.log(k) - float(psi(k)) - s) / (1 / k - float(polygamma(1, k)))
        k = max(k - step, k / 10)
        if abs(step) < CONVERGED * k:
            break
    return Gamma(k, float(x.mean()) / k)


def _weibull(x: np.ndarray) -> Weibull:
    """Solve sum x^k log x / sum x^k - 1/k = mean log by Newton's method, in y = x / max to avoid overflow."""
    largest = float(x.max())
    y = np.log(x / largest)
    k = 1.2825 / float(y.std())  # the sd of log x is pi / (sqrt(6) k)
    for _ in range(NEWTON_STEPS):
        w = np.exp(k * y)
        first, second = (float(w @ y**i / w.sum()) for i in (1, 2))
        step = (first - 1 / k - float(y.mean())) / (second - first**2 + 1 / k**2)
        k = max(k - step, k / 10)
        if abs(step) < CONVERGED * k:
            break
    return Weibull(largest * float(np.exp(k * y).mean()) ** (1 / k), k)


def _gamma_density(law: Gamma, x: np.ndarray) -> np.ndarray:
    from scipy.special import gammaln

    return (law.shape - 1) * np.log(x) - x / law.scale - float(gammaln(law.shape)) - law.shape * math.log(law.scale)


def _log_normal_density(law: LogNormal, x: np.ndarray) -> np.ndarray:
    z = (np.log(x) - law.log_mean) / law.log_sd
    return -np.log(x) - z**2 / 2 - math.log(law.log_sd) - math.log(2 * math.pi) / 2


def _weibull_density(law: Weibull, x: np.ndarray) -> np.ndarray:
    z = x / law.scale
    return math.log(law.shape / law.scale) + (law.shape - 1) * np.log(z) - z**law.shape


def _pareto_density(law: Pareto, x: np.ndarray) -> np.ndarray:
    inside = math.log(law.exponent) + law.exponent * math.log(law.minimum) - (law.exponent + 1) * np.log(x)
    return np.where(x >= law.minimum, inside, -np.inf)


def _shifted_density(law: ShiftedExponential, x: np.ndarray) -> np.ndarray:
    return np.where(x >= law.shift, -(x - law.shift) / law.scale - math.log(law.scale), -np.inf)


def _uniform_density(law: Uniform, x: np.ndarray) -> np.ndarray:
    return np.where((x >= law.low) & (x <= law.high), -math.log(law.high - law.low), -np.inf)


FAMILIES = (
    Family("Exponential", 1, lambda x: Exponential(float(x.mean())), lambda law, x: -x / law.mean - math.log(law.mean)),
    Family(
        "ShiftedExponential",
        2,
        lambda x: ShiftedExponential(float(x.min()), float(x.mean() - x.min())),
        _shifted_density,
    ),
    Family("Gamma", 2, _gamma, _gamma_density),
    Family("LogNormal", 2, lambda x: LogNormal(float(np.log(x).mean()), float(np.log(x).std())), _log_normal_density),
    Family(
        "Pareto",
        2,
        lambda x: Pareto(float(x.min()), x.size / float(np.log(x / x.min()).sum())),
        _pareto_density,
    ),
    Family("Uniform", 2, lambda x: Uniform(float(x.min()), float(x.max())), _uniform_density),
    Family("Weibull", 2, _weibull, _weibull_density),
)
