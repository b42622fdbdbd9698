"""How often rounds of independent random length fit into a time: E N and E 1/max(N, 1) between certified ends.

Let S_n be the end of round n and N = max{n : S_n <= T}.  Since P(N >= n) = P(S_n <= T), summation by parts gives ::

    E N = sum_{n >= 1} P(S_n <= T),     E 1/max(N, 1) = 1 - sum_{n >= 2} P(S_n <= T)/(n (n - 1)).

Both are monotone in the law of a round: longer rounds, fewer of them.  Two ways to ends that are certain up to
rounding:

Lattice.  A round rounded up (down) to a lattice is never shorter (longer).  With its generating function P(z) the
two sums over n have the generating functions P/(1 - P) and P + (1 - P) log(1 - P), whose coefficients one Fourier
transform gives; on a circle of radius below 1 what it folds back is negligible, and the coefficients are >= 0.

Moments, for many rounds.  For every b, S_n > T only if one of the n rounds exceeds b or the n rounds cut at b together
exceed T; Cantelli's inequality bounds the latter by n v/(n v + (T - n mu)^2), mu and v being mean and variance of
min(X, b).  Cut rounds end earlier, and by Wald's identity E N + 1 <= (T + b)/mu (Lorden's inequality for bounded
rounds), so that E 1/max(N, 1) >= 1/(E N + 1) >= mu/(T + b) by Jensen.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..interval import Interval
from .tails import Tail, rounded_up

CELLS = 2**15
FOLDED = 1e-12  # what the damped transform of four times as many cells folds back
ROUNDING = 1e-10  # absolute, of the sums of CELLS coefficients; a test holds them against exact values
TIMES = 2**13  # at which a tail is looked up for its moments
SMALLEST = 1e-5  # of these times above the smallest round, in mean rounds
FINENESS = 1.004  # ratio of successive numbers of rounds
CUTS = 32
SLACK = 1e-9  # relative, of the float sums over moments

Ends = tuple[np.ndarray, np.ndarray]


def expected_on_lattice(tail: Tail, width_s: float) -> Ends:
    """Lower and upper ends of E N(T) at T = 0, width_s, ..., CELLS * width_s."""
    slack = ROUNDING * (1 + np.arange(CELLS + 1))
    longer, shorter = _sums(tail, width_s, lambda p: p / (1 - p))
    return np.maximum(longer - slack, 0.0), shorter + slack


def inverse_on_lattice(tail: Tail, width_s: float) -> Ends:
    """Lower and upper ends of E 1/max(N(T), 1) at the same times."""
    longer, shorter = _sums(tail, width_s, lambda p: p + (1 - p) * np.log(1 - p))
    return np.clip(1 - shorter - ROUNDING, 0.0, 1.0), np.clip(1 - longer + ROUNDING, 0.0, 1.0)


def _sums(tail: Tail, width_s: float, series: Callable[[np.ndarray], np.ndarray]) -> Ends:
    """Return sums of the first k + 1 coefficients of a series in P, the law of a round made longer and made shorter."""
    from scipy.fft import irfft, rfft

    longer = rounded_up(tail.above, 0.0, width_s, CELLS)
    shorter = rounded_up(lambda t: tail.below(t + width_s), 0.0, width_s, CELLS)
    length = 4 * CELLS
    damping = FOLDED ** (np.arange(CELLS + 1) / length)
    spectra = (series(rfft(masses * damping, length)) for masses in (longer, shorter))
    first, second = (np.cumsum(irfft(spectrum, length)[: CELLS + 1] / damping) for spectrum in spectra)
    return first, second


def by_moments(tail: Tail, time_s: float, scale_s: float) -> tuple[Interval, Interval]:
    """Return E N and E 1/max(N, 1) at one time, which is many rounds long;

    Parameters
    ----------
    scale_s : float, seconds
        About one round.
    """
    above_lower = np.concatenate([[0.0], np.geomspace(SMALLEST * scale_s, time_s - tail.lower_s, TIMES)])
    cut, width, squares = tail.lower_s + above_lower[1:], np.diff(above_lower), np.diff(above_lower**2)
    high, low = tail.above(tail.lower_s + above_lower), tail.below(cut)
    most, least = np.cumsum(width * high[:-1]), np.cumsum(width * low)  # of E min(X, cut) - lower_s
    variance = np.maximum(np.cumsum(squares * high[:-1]) - least**2, 0.0)
    fewest = float(np.max((tail.lower_s + least) / (time_s + cut)))  # 1/(E N + 1) at least

    pick = np.linspace(0, cut.size - 1, CUTS).astype(int)
    n = _counts(2 / fewest)
    late = _late(n[1:], time_s, tail.lower_s + most[pick], variance[pick], high[1:][pick])
    inverse = 1 / n[-1] + float(late @ (1 / n[:-1] - 1 / n[1:]))
    expected = float((1 - late) @ np.diff(n))
    return (
        Interval(expected * (1 - SLACK), (1 / fewest - 1) * (1 + SLACK)),
        Interval(fewest * (1 - SLACK), min(inverse * (1 + SLACK), 1.0)),
    )


def _counts(most: float) -> np.ndarray:
    """Return whole numbers from 1 to beyond ``most``: all at first, then growing by the factor FINENESS."""
    powers = FINENESS ** np.arange(math.ceil(math.log(most) / math.log(FINENESS)) + 1)
    return np.unique(np.ceil(powers))


def _late(n: np.ndarray, time_s: float, mean: np.ndarray, variance: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """Return P(S_n > T) at most, the least over the cuts: arrays of shapes (n,) and (cuts,) to shape (n,)."""
    n = n[:, None]
    room = np.maximum(time_s - n * mean, 0.0)
    with np.errstate(invalid="ignore"):
        cantelli = np.where(room > 0, n * variance / (n * variance + room**2), 1.0)
    return np.asarray(np.minimum(n * beyond + cantelli, 1.0).min(axis=1))
