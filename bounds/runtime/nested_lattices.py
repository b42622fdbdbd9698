"""Expected maximum of sums of steps of infinite variance: fine lattices around the bulk, coarser ones further out.

Let S be the sum of tau steps less their smallest value.  E max of m of them is the integral of 1 - F^m, taken in ranges
[0, R_0), [R_0, R_1), ... with R_{j+1} = FACTOR R_j, each on its own lattice of [0, R_j) and on one twice as wide
(Richardson, as in ``convolution``).  One lattice alone would be too coarse for the bulk or end long before the tail is
negligible.  The lattices are damped, so that sums beyond their end do not fold back.  From the last one on, one large
step dominates, P(S > t) = tau P(Y > t - (tau - 1) mean) up to a relative error of about tau P(Y > t).
"""

from __future__ import annotations

import numpy as np

from .convolution import integer_power, split_tail
from .distribution import Distribution
from .quadrature import expected_max_of

BULK_CELLS, CELLS = 2**17, 2**15  # of the first lattice and of the others
BULK_SCALES = 8  # of the step that is exceeded once in a sum, beyond the mean
FACTOR = 8  # ratio of successive ends
FAR = 1e4  # the last lattice ends beyond this many means
FOLDED = 1e-8  # what a damped transform of four times as many cells folds back, times what lies beyond those
BELOW_ONE = 1 - 2.0**-53


def expected_max_of_heavy_sum(law: Distribution, tau: int, m: int) -> float:
    """Return E max of m independent sums of tau steps, in seconds; the law has a finite mean and unbounded support."""
    mean = tau * (law.mean_s - law.lower_s)
    begin, end, cells = 0, mean + BULK_SCALES * (law.quantile(min(0.25, 1 / tau)) - law.lower_s), BULK_CELLS
    total = 0.0
    while True:
        fine = _integral(law, tau, m, end / cells, begin, cells)
        coarse = _integral(law, tau, m, 2 * end / cells, begin // 2, cells // 2)
        total += (4 * fine - coarse) / 3
        if end > FAR * mean:
            break
        begin, end, cells = CELLS // FACTOR, FACTOR * end, CELLS
    alone = max(tau * law.lower_s + end - (tau - 1) * law.mean_s, law.lower_s)
    return tau * law.lower_s + total + expected_max_of(law, tau * m, alone) - alone


def waiting_below(law: Distribution, tau: int, m: int, floor_s: float) -> float:
    """Return E max(floor_s - M, 0) for M the longest of m sums of tau steps, in seconds: the integral of F^m below.

    The lattices end at ``floor_s``, so that the error is even in their width.
    """
    reach = floor_s - tau * law.lower_s
    fine, coarse = (_integral(law, tau, m, reach / cells, 0, cells) for cells in (BULK_CELLS, BULK_CELLS // 2))
    return max(reach - (4 * fine - coarse) / 3, 0.0)


def _integral(law: Distribution, tau: int, m: int, width_s: float, begin: int, cells: int) -> float:
    """Return the integral of P(max of m sums > t) over the cells from ``begin`` on, t above tau lower_s."""
    from scipy.fft import irfft, rfft

    length = 4 * cells
    damping = FOLDED ** (np.arange(cells) / length)
    spectrum = rfft(split_tail(law, width_s, cells) * damping, length)
    masses = irfft(integer_power(spectrum, tau), length)[:cells] / damping
    tail = np.clip(1 - np.cumsum(masses)[begin:], 0.0, BELOW_ONE)
    return width_s * float(-np.expm1(m * np.log1p(-tail)).sum())
