"""P(a round takes longer than t) from both sides: laws in closed form, or sums of steps on lattices that dominate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .convolution import integer_power
from .correlated import PersistentStragglers
from .law import Law, StepTime
from .quadrature import spread

CELLS = 2**19  # of the lattice of a sum of steps
WRAPPED = 1e-12  # what a damped transform of four times as many cells folds back, at most
NEGLIGIBLE = 1e-13  # a single step beyond the lattice is at most this likely, unless the time budget cuts earlier
BULK_SDS = 12
BELOW_ONE = 1 - 2.0**-53


@dataclass(frozen=True)
class Tail:
    """P(X > t) between ``below`` and ``above``, both non-increasing in t.

    Parameters
    ----------
    lower_s : float, seconds
        X is never smaller, in seconds.
    above : callable
        The tail from above; takes times of any shape, in seconds.
    below : callable
        The tail from below; takes times of any shape, in seconds.
    """

    lower_s: float
    above: Callable[[np.ndarray], np.ndarray]
    below: Callable[[np.ndarray], np.ndarray]


def round_tail(step: StepTime, *, m: int, tau: int, delay_s: float | Law, reach_s: float) -> Tail:
    """Return the time of one round: the slowest worker's tau steps, then an averaging.

    Parameters
    ----------
    delay_s : float or Law, seconds
        Of the averaging, fixed or a law.
    reach_s : float, seconds
        Larger times count as endless.

    Raises
    ------
    ValueError
        For a step law whose rounds depend on each other.
    """
    if isinstance(step, PersistentStragglers):
        law, groups = step.law, step.groups(m)
    elif isinstance(step, Law):
        law, groups = step, (np.ones(1), np.full(1, m))
    else:
        raise ValueError(
            f"rounds must take independent times; got {type(step).__name__}, whose steps are correlated: "
            "use an independent law, such as one fitted to the times of whole rounds"
        )
    compute = _slowest(_sum(law, tau, reach_s), *groups)
    if not isinstance(delay_s, Law):
        return _later(compute, delay_s)
    return _both(compute, Tail(delay_s.lower_s, delay_s.sf, delay_s.sf), reach_s)


def _slowest(one: Tail, scales: np.ndarray, counts: np.ndarray) -> Tail:
    """Return the largest of counts[i] independent copies of scales[i] X, over all i."""

    def largest(tail: Callable[[np.ndarray], np.ndarray], t: np.ndarray) -> np.ndarray:
        log_f = sum(
            count * np.log1p(-np.minimum(tail(t / scale), BELOW_ONE))
            for scale, count in zip(scales, counts, strict=True)
        )
        return np.asarray(-np.expm1(log_f))

    slowest = one.lower_s * float(scales.max())
    return Tail(slowest, lambda t: largest(one.above, t), lambda t: largest(one.below, t))


def _later(one: Tail, delay_s: float) -> Tail:
    return Tail(one.lower_s + delay_s, lambda t: one.above(t - delay_s), lambda t: one.below(t - delay_s))


def _sum(law: Law, tau: int, reach_s: float) -> Tail:
    """Return the sum of tau independent steps."""
    total = law.sum_law(tau)
    if total is not None:
        return Tail(total.lower_s, total.sf, total.sf)
    above_lower = tau * (law.mean_s - law.lower_s) + BULK_SDS * np.sqrt(tau) * spread(law)
    reach = min(reach_s, above_lower + law.quantile(NEGLIGIBLE) - law.lower_s, tau * (law.upper_s - law.lower_s))
    return _on_lattice(law, tau, float(reach))


@lru_cache(maxsize=8)
def _on_lattice(law: Law, tau: int, reach_s: float) -> Tail:
    """Return every step rounded up to a lattice, so that the sum is never smaller; less tau widths it is
    never larger.
    """
    width_s = reach_s / CELLS
    spectrum, damping = _spectrum(rounded_up(law.sf, law.lower_s, width_s, CELLS))
    return _lattice_tail(integer_power(spectrum, tau), damping, tau, tau * law.lower_s, width_s)


def _both(first: Tail, second: Tail, reach_s: float) -> Tail:
    """Return the sum of two independent times, both rounded up to one lattice."""
    width_s = reach_s / CELLS
    spectra = []
    for side in ("above", "below"):
        first_spectrum, damping = _spectrum(rounded_up(getattr(first, side), first.lower_s, width_s, CELLS))
        second_spectrum, _ = _spectrum(rounded_up(getattr(second, side), second.lower_s, width_s, CELLS))
        spectra.append(first_spectrum * second_spectrum)
    above, below = (_lattice_tail(s, damping, 2, first.lower_s + second.lower_s, width_s) for s in spectra)
    return Tail(above.lower_s, above.above, below.below)


def rounded_up(tail: Callable[[np.ndarray], np.ndarray], lower_s: float, width_s: float, cells: int) -> np.ndarray:
    """Return masses at lower_s, lower_s + width_s, ..., shape (cells + 1,), of a time rounded up to the lattice.

    What lies beyond is left out.
    """
    reached = 1 - tail(lower_s + width_s * np.arange(cells + 1))
    return np.diff(np.maximum.accumulate(np.clip(reached, 0.0, 1.0)), prepend=0.0)


def _spectrum(masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the transform of damped masses, four times as long, and the damping."""
    from scipy.fft import rfft

    length = 4 * (masses.size - 1)
    damping = WRAPPED ** (np.arange(masses.size) / length)
    return rfft(masses * damping, length), damping


def _lattice_tail(spectrum: np.ndarray, damping: np.ndarray, terms: int, lower_s: float, width_s: float) -> Tail:
    """Return the tail of a sum of ``terms`` times that were each rounded up, and of the same rounded down."""
    from scipy.fft import irfft

    masses = irfft(spectrum, 4 * (damping.size - 1))[: damping.size] / damping
    beyond = 1 - np.cumsum(masses)
    slack = 10 * WRAPPED + 1e-14 * terms

    def at(t: np.ndarray) -> np.ndarray:
        return np.floor((t - lower_s) / width_s).astype(int)

    def above(t: np.ndarray) -> np.ndarray:
        k = at(t)
        return np.where(k < 0, 1.0, np.clip(beyond[np.clip(k, 0, beyond.size - 1)] + slack, 0.0, 1.0))

    def below(t: np.ndarray) -> np.ndarray:
        k = at(t) + terms + 1
        inside = np.clip(beyond[np.clip(k, 0, beyond.size - 1)] - slack, 0.0, 1.0)
        return np.where(k < 0, 1.0, np.where(k < beyond.size, inside, 0.0))

    return Tail(lower_s, above, below)
