"""Maxima of m standard normal variables, and the large-tau approximation that they give."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .checks import positive_integer
from .law import Law
from .quadrature import gauss_legendre

REACH = 40.0  # the normal density underflows beyond
PANELS = 160


@lru_cache(maxsize=256)
def normal_max_moment(m: int, order: int = 1) -> float:
    """Return E Z^order of the maximum Z of m independent standard normal variables, order 1 or 2.

    The integral of z^order m phi(z) Phi(z)^(m-1) by Gauss-Legendre panels.

    Parameters
    ----------
    m : int
        Number of workers; 1 <= m, an integer.
    order : int, optional
        Which moment of the maximum.

    Raises
    ------
    ValueError
        For m < 1.
    """
    from scipy.special import log_ndtr

    m = positive_integer("m", m)
    nodes, weights = gauss_legendre(40)
    edges = np.linspace(-REACH, REACH, PANELS + 1)
    z = edges[:-1, None] + np.diff(edges)[:, None] * nodes
    log_density = math.log(m) - z**2 / 2 - math.log(2 * math.pi) / 2 + (m - 1) * log_ndtr(z)
    return float(np.sum(np.diff(edges) * ((z**order * np.exp(log_density)) @ weights)))


def approximate_expected_max(law: Law, *, m: int, tau: int) -> float:
    """Return E max of the mean of tau steps by the central limit theorem with a skewness term, in seconds.

    mean + sd/sqrt(tau) [e_m + skewness/(6 sqrt(tau)) (E Z_{m:m}^2 - 1)]: within 1.1 % for exponential steps at tau =
    4..10, m = 16..64 (4.6-15 % low without the skewness term), useless for heavy tails.

    Parameters
    ----------
    law : Law
        Law of one step's time.
    m : int
        Number of workers; 1 <= m, an integer.
    tau : int
        Local steps between two averagings.

    Raises
    ------
    ValueError
        If the skewness does not exist.
    """
    m, tau = positive_integer("m", m), positive_integer("tau", tau)
    if not math.isfinite(law.skewness):
        raise ValueError(f"the approximation needs a third moment; {law} has none: use expected_max")
    skew = law.skewness / (6 * math.sqrt(tau)) * (normal_max_moment(m, 2) - 1)
    return law.mean_s + law.sd_s / math.sqrt(tau) * (normal_max_moment(m) + skew)
