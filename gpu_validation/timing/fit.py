"""Law of measured step times: chosen by likelihood, checked by a goodness-of-fit test."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bounds.runtime import Exponential, Gamma, LogNormal, Pareto, ShiftedExponential, Uniform, Weibull
from bounds.runtime.law import Law
from operators import Key
from operators.random import bits32

# Families whose support begins at the smallest sample (shifted exponential, Pareto, uniform) have their maximum there.
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


FEWEST = 20  # smallest number of samples
REFITS = 199  # bootstrap draws; the smallest p-value is 1/200
REJECTED_BELOW = 0.05


@dataclass(frozen=True)
class LawFit:
    """One family fitted to samples.

    Parameters
    ----------
    family : str
        Name of the family.
    law : Law
        Law of maximum likelihood.
    log_likelihood : float
        Maximum of the log likelihood.
    aic : float
        Akaike's criterion, 2 parameters - 2 log likelihood; smaller is better.
    distance : float
        Kolmogorov-Smirnov distance, the largest difference of the distribution functions.
    p_value : float or None, optional
        Probability of a distance as large if the law were true, from refits to samples of the fitted law.  (Tables
        would be wrong for fitted parameters.)  None for families that were not chosen.
    """

    family: str
    law: Law
    log_likelihood: float
    aic: float
    distance: float
    p_value: float | None = None


@dataclass(frozen=True)
class StepFit:
    """All families fitted to n step times, the best first; only the best is tested.

    Parameters
    ----------
    n : int
        Number of step times.
    fits : tuple of LawFit
        Fits in ascending order of Akaike's criterion.
    """

    n: int
    fits: tuple[LawFit, ...]

    @property
    def best(self) -> LawFit:
        """The fit with the smallest AIC."""
        return self.fits[0]

    @property
    def accepted(self) -> bool:
        """Whether the best law passes the goodness-of-fit test at level REJECTED_BELOW."""
        return self.best.p_value is not None and self.best.p_value >= REJECTED_BELOW

    @property
    def statement(self) -> str:
        """The result as a sentence."""
        best, second = self.fits[:2]
        verdict = "is not rejected" if self.accepted else "is rejected: no law here fits, use the measured times"
        return (
            f"{best.law} has the smallest AIC of {len(self.fits)} laws on {self.n} steps ({second.family} "
            f"+{second.aic - best.aic:.3g}); Kolmogorov-Smirnov distance {best.distance:.3g}, p = {best.p_value:.3g} "
            f"by {REFITS} refitted samples: it {verdict} at {REJECTED_BELOW:g}"
        )


def fit_law(seconds: Sequence[float] | np.ndarray, *, key: Key, families: Sequence[Family] = FAMILIES) -> StepFit:
    """Fit every family to independent step times by maximum likelihood and test the best.

    Parameters
    ----------
    seconds : sequence of float or ndarray, shape (n,), n >= 20, all > 0, not all equal
    key : Key
        Seeds the bootstrap.
    families : sequence of Family, optional
        Candidates, at least two.

    Raises
    ------
    ValueError
        For other samples, or fewer than two families.

    Notes
    -----
    With correlated steps, or steps of unequal workers, the test rejects too often: use batch means, or one worker.
    """
    x = np.sort(np.asarray(seconds, np.float64).reshape(-1))
    if x.size < FEWEST or not np.isfinite(x).all() or x[0] <= 0 or x[0] == x[-1]:
        raise ValueError(
            f"needs at least {FEWEST} finite step times > 0 that are not all equal; got {x.size}"
            + (f" between {x[0]} and {x[-1]}" if x.size else "")
        )
    if len(families) < 2:
        raise ValueError(f"needs at least two families to choose from; got {len(families)}")
    fits = sorted((_fit(family, x) for family in families), key=lambda fit: fit.aic)
    family = next(f for f in families if f.name == fits[0].family)
    return StepFit(x.size, (_tested(family, fits[0], x.size, key), *fits[1:]))


def _fit(family: Family, x: np.ndarray) -> LawFit:
    law = family.fit(x)
    likelihood = float(family.log_density(law, x).sum())
    return LawFit(family.name, law, likelihood, 2 * family.parameters - 2 * likelihood, _distance(law, x))


def _distance(law: Law, x: np.ndarray) -> float:
    """Return sup ``|F_n - F|`` over sorted samples."""
    below = 1 - law.sf(x)
    steps = np.arange(x.size + 1) / x.size
    return float(max((steps[1:] - below).max(), (below - steps[:-1]).max()))


def _tested(family: Family, fit: LawFit, n: int, key: Key) -> LawFit:
    rng = np.random.default_rng(bits32(key, 8))
    as_far = 0
    for row in np.sort(fit.law.sample(rng, (REFITS, n)), axis=1):
        as_far += _distance(family.fit(row), row) >= fit.distance
    p_value = (1 + as_far) / (1 + REFITS)
    return LawFit(fit.family, fit.law, fit.log_likelihood, fit.aic, fit.distance, p_value)
