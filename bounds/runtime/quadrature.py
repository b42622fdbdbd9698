"""The expected maximum of m draws as an integral of the tail: E max = a + integral from a of 1 - F^m."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .law import Law

NODES = 40  # Gauss-Legendre nodes a panel
NEGLIGIBLE = 1e-19  # m P(Y > t) below this ends the integral


def expected_max_of(law: Law, m: int, floor_s: float = 0.0) -> float:
    """E max(Y_1, ..., Y_m, floor_s) for m independent draws of a law with finite mean, in seconds.

    Gauss-Legendre panels that halve towards the left end of the support (where a density may be singular),
    have equal width around the bulk, and double towards infinity.
    """
    start = max(law.lower_s, floor_s)
    edges = _panels(law, m, start)
    nodes, weights = _gauss_legendre()
    width = np.diff(edges)
    t = edges[:-1, None] + width[:, None] * nodes
    tail = -np.expm1(m * np.log1p(-np.minimum(law.sf(t), 1 - 2.0**-53)))
    return start + float(np.sum(width * (tail @ weights)))


def _panels(law: Law, m: int, start: float) -> np.ndarray:
    """Edges from ``start`` to where m P(Y > t) is negligible."""
    end = max(law.quantile(NEGLIGIBLE / m), start)
    if end <= start:
        return np.array([start, start])
    bulk = law.mean_s + _spread(law) * np.arange(-10, 21)
    reach = (end - start) * 2.0 ** -np.arange(0, 64)
    edges = np.concatenate([[start, end], start + reach, bulk])
    return np.unique(edges[(edges >= start) & (edges <= end)])


def _spread(law: Law) -> float:
    """The width of the bulk: the standard deviation, or a central quantile range if that is infinite."""
    return law.sd_s if np.isfinite(law.sd_s) else law.quantile(0.1) - law.quantile(0.9)


@lru_cache(maxsize=1)
def _gauss_legendre() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2
