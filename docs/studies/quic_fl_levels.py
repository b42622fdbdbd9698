"""Compute the levels of QUIC-FL: ``python docs/studies/quic_fl_levels.py`` writes them for 1 to 8 bits, in a minute.

The objective is E (R[h, x] - v)^2 of a normal v in [-T, T], for the best unbiased sender of
``operators.quantisers.shared_rounding``.  The mean square of the level is linear between the knots, so that the
expectation and its gradient in R are exact sums of normal masses and moments.  The largest levels have the mean T.  The
levels are symmetric.  The problem is not convex; the least of a few starts is kept.
"""

from __future__ import annotations

import json

import numpy as np
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

from operators.quantisers.shared_rounding import EXACT, LEVELS, SHARED_BITS, mirrored, sender_path

TOP = -float(ndtri(EXACT / 2))
STARTS = 5


def density(v: np.ndarray) -> np.ndarray:
    """Return the standard normal density."""
    return np.exp(-v * v / 2) / np.sqrt(2 * np.pi)


def mean_error(levels: np.ndarray) -> tuple[float, np.ndarray]:
    """Return E (R - v)^2 over normal v between the first and the last knot, and its gradient in the levels.

    Parameters
    ----------
    levels : ndarray
        R, float64, shape (2^l, 2^b), increasing in each row.
    """
    count, width = levels.shape
    knots, squares, moving, before = sender_path(levels)
    slopes = levels[moving, before] + levels[moving, before + 1]
    low, high = knots[:-1], knots[1:]
    mass, first = ndtr(high) - ndtr(low), density(low) - density(high)
    second = mass + low * density(low) - high * density(high)
    share = (first - low * mass) / (high - low)  # of the upper knot
    error = float(squares[:-1] @ (mass - share) + squares[1:] @ share - second.sum())
    # a level R with weight w at the knots where h has it: d/dR = (2 R sum w - sum of slope times w) / 2^l
    weight, sloped = np.zeros((2, knots.size))
    weight[:-1] += mass - share
    weight[1:] += share
    sloped[:-1] += slopes * (mass - share)
    sloped[1:] += slopes * share
    ends = np.full((count, width + 1), knots.size)
    ends[:, 0] = 0
    ends[moving, before + 1] = np.arange(1, knots.size)
    sums = [np.diff(np.concatenate(([0.0], np.cumsum(w)))[ends], axis=1) for w in (weight, sloped)]
    return error, (2 * levels * sums[0] - sums[1]) / count


def with_top(levels: np.ndarray) -> np.ndarray:
    """Return the levels with the largest ones shifted to the mean T, and the smallest to -T."""
    shifted = levels.copy()
    shift = TOP - levels[:, -1].mean()
    shifted[:, -1] += shift
    shifted[:, 0] -= shift
    return shifted


def projected(gradient: np.ndarray) -> np.ndarray:
    """Return the gradient along levels whose largest have a fixed mean."""
    free = gradient.copy()
    free[:, -1] -= free[:, -1].mean()
    free[:, 0] -= free[:, 0].mean()
    return free


def companded(bits: int, shared_bits: int) -> np.ndarray:
    """Return 2^l shifted copies of levels whose density is the cube root of the normal law's."""
    count, width = 2**shared_bits, 2**bits
    place = (np.arange(width) + 0.5 - (np.arange(count)[:, None] + 0.5) / count) / (width - 1)
    low = ndtr(-TOP / np.sqrt(3))
    inside = np.sqrt(3) * ndtri(low + (1 - 2 * low) * np.clip(place, 0, 1))
    return inside + 2 * TOP * (np.minimum(place, 0) + np.maximum(place - 1, 0))


def best_levels(bits: int, shared_bits: int, *, starts: int = STARTS, seed: int = 0) -> tuple[float, np.ndarray]:
    """Return the least error found and its levels, float64, shape (2^l, 2^b).

    Parameters
    ----------
    bits, shared_bits : int
        b and l, both at least 1.
    starts : int, optional
        How many starts; the first is not perturbed.
    seed : int, optional
        Of the perturbations.
    """
    rng, best = np.random.default_rng(seed), (np.inf, np.empty(0))
    shape, scale = (2**shared_bits // 2, 2**bits), 4.0**bits  # brings every error near 1

    def objective(free: np.ndarray) -> tuple[float, np.ndarray]:
        error, gradient = mean_error(with_top(mirrored(free.reshape(shape))))
        gradient = projected(gradient)
        half = gradient[: shape[0]] - gradient[shape[0] :][::-1, ::-1]
        return scale * error, scale * half.ravel()

    for i in range(starts):
        start = companded(bits, shared_bits)
        start = np.sort(start + 0.1 * i / 2**bits * rng.normal(size=start.shape), axis=1)
        free = start[: shape[0]].ravel()
        for _ in range(4):  # a line search can end early where moves change their order
            limits = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 50}
            found = minimize(objective, free, jac=True, method="L-BFGS-B", options=limits)
            free = found.x
        if found.fun / scale < best[0]:
            best = found.fun / scale, with_top(mirrored(found.x.reshape(shape)))
    return best


def main() -> None:
    """Write the levels of the first half of h for all bits."""
    table = {}
    for bits, shared_bits in SHARED_BITS.items():
        error, levels = best_levels(bits, shared_bits)
        print(f"{bits} bits, {shared_bits} shared: mean error {error:.8g}")
        half = levels[: len(levels) // 2].astype(np.float32)
        table[bits] = [[float(str(v)) for v in row] for row in half]
    rows = [f'"{bits}": [\n' + ",\n".join(json.dumps(row) for row in half) + "\n]" for bits, half in table.items()]
    LEVELS.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
