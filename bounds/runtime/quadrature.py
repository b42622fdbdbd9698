"""The expected maximum of independent draws as an integral: E max = a + integral from a of 1 - product of F."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .distribution import Distribution

NODES = 40  # Gauss-Legendre nodes a panel
NEGLIGIBLE = 1e-19  # tail probability from which 1 - F^m = m (1 - F) to rounding
BELOW_ONE = 1 - 2.0**-53


def expected_max_of(law: Distribution, m: int, floor_s: float = 0.0) -> float:
    """Return E max(Y_1, ..., Y_m, floor_s) for m independent draws of a law with finite mean, in seconds."""
    return expected_max_scaled(law, np.ones(1), np.full(1, m), floor_s)


def expected_max_scaled(law: Distribution, scales: np.ndarray, counts: np.ndarray, floor_s: float = 0.0) -> float:
    """Return E of the largest of floor_s and counts[i] independent copies of scales[i] Y, over all i, in seconds.

    scales > 0, counts >= 1, both shape (g,).  Gauss-Legendre panels that halve towards the left end of the
    support (where a density may be singular), have equal width around the bulk, and double towards infinity;
    beyond the last panel the tail of the maximum is the sum of the tails.
    """
    start = max(law.lower_s * float(scales.max()), floor_s)
    edges = np.unique(np.concatenate([_panels(law, float(scale), start) for scale in scales]))
    nodes, weights = gauss_legendre(NODES)
    width = np.diff(edges)
    t = edges[:-1, None] + width[:, None] * nodes
    log_f = sum(
        count * np.log1p(-np.minimum(law.sf(t / scale), BELOW_ONE)) for scale, count in zip(scales, counts, strict=True)
    )
    bulk = float(np.sum(width * (-np.expm1(log_f) @ weights)))
    end = float(edges[-1])
    beyond = sum(c * s * law.excess(max(end / s, law.lower_s)) for s, c in zip(scales, counts, strict=True))
    return start + bulk + float(beyond)


def _panels(law: Distribution, scale: float, start: float) -> np.ndarray:
    """Return edges from ``start`` to where the tail of scale * Y is negligible."""
    end = max(scale * min(law.quantile(NEGLIGIBLE), law.upper_s), start)
    bulk = scale * (law.mean_s + spread(law) * np.arange(-10, 21))
    reach = (end - start) * 2.0 ** -np.arange(0, 80)
    edges = np.concatenate([[start, end], start + reach, bulk])
    return edges[(edges >= start) & (edges <= end)]


def spread(law: Distribution) -> float:
    """Return the width of the bulk: the standard deviation, or a central quantile range if that is infinite."""
    return law.sd_s if np.isfinite(law.sd_s) else law.quantile(0.1) - law.quantile(0.9)


def order_weights(count: int, m: int) -> np.ndarray:
    """Return P(the largest of m draws with replacement is the j-th smallest of ``count`` values), j = 1..count."""
    j = np.arange(count + 1) / count
    return np.diff(j**m)


@lru_cache(maxsize=4)
def gauss_legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, w / 2
