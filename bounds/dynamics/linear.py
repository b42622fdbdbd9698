"""Second moments of any linear method with random choices, exactly.

On a quadratic, most methods move a short vector z (iterate, memories, shifts) by z' = A z + noise, where A is drawn
from a few matrices independently of z.  Then S = E z z^T moves by S' = sum_c w_c A_c S A_c^T + N, without any sampling.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np


def step(moments: np.ndarray, transitions: Sequence[Any], weights: Sequence[float], noise: Any = 0.0) -> np.ndarray:
    """Return one step of the second moments.

    Parameters
    ----------
    moments : ndarray
        (..., n, n).
    transitions : sequence
        Sequence of arrays (..., n, n), taken with probabilities ``weights``.
    noise : optional
        Covariance added, broadcast to (..., n, n).

    Raises
    ------
    ValueError
        If the weights do not sum to 1.
    """
    if abs(sum(weights) - 1) > 1e-12 or len(weights) != len(transitions):
        raise ValueError(f"transitions need one probability each, summing to 1; got {list(weights)}")
    moved = sum(weight * (A @ moments @ np.swapaxes(A, -1, -2)) for weight, A in zip(weights, transitions, strict=True))
    return np.asarray(moved + noise)


def keep_patterns(workers: int, keep: float) -> Iterable[tuple[float, tuple[int, ...]]]:
    """Return (probability, pattern) of every 0/1 pattern of workers that each send with probability ``keep``."""
    for pattern in product((0, 1), repeat=workers):
        sent = sum(pattern)
        yield keep**sent * (1 - keep) ** (workers - sent), pattern
