"""Lloyd-Max quantisers of the standard normal law: levels and distortion, computed and certified.

The optimal N = 2^b level quantiser is symmetric and unique (the density is log-concave, Fleischer 1964); its positive
levels c_1 < .. < c_n, n = N/2, solve ``c_i = E[X | t_(i-1) < X < t_i]`` with t_0 = 0, t_i = (c_i + c_(i+1))/2, t_n =
inf. float64: Newton on c_i - E[..], tridiagonal, from the companding levels.  Ball twin, F_i = c_i P_i - phi(t_(i-1)) +
phi(t_i): the Krawczyk operator K(X) = x - Y F(x) + (1 - Y F'(X))(X - x); if K(X) lies inside X, then X holds a
solution, and by uniqueness it is the quantiser.  At the solution the distortion is 1 - 2 sum_i P_i c_i^2.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from .function import SpecialFunction

MAX_BITS = 8
NEWTON_STEPS = 60


@lru_cache(maxsize=MAX_BITS)
def _positive_levels(bits: int) -> tuple[float, ...]:
    if bits == 1:
        return (math.sqrt(2 / math.pi),)  # E|x|, without what takes .2 s to import

    from scipy.linalg import solve_banded
    from scipy.special import ndtr, ndtri

    n = 2 ** (bits - 1)
    # companding: the best point density is proportional to the cube root of the density, a normal of variance 3
    levels = math.sqrt(3) * ndtri(0.5 + (np.arange(n) + 0.5) / (2 * n))
    for _ in range(NEWTON_STEPS):
        edges = np.concatenate(([0.0], (levels[1:] + levels[:-1]) / 2, [np.inf]))
        density = np.exp(-edges * edges / 2) / math.sqrt(2 * math.pi)
        mass = ndtr(-edges[:-1]) - ndtr(-edges[1:])
        centroid = (density[:-1] - density[1:]) / mass
        upper, lower = np.zeros(n), np.zeros(n)  # half the derivatives of the centroid by t_i and t_(i-1)
        upper[:-1] = density[1:-1] * (edges[1:-1] - centroid[:-1]) / (2 * mass[:-1])
        lower[1:] = density[1:-1] * (centroid[1:] - edges[1:-1]) / (2 * mass[1:])
        banded = np.zeros((3, n))
        banded[0, 1:], banded[1], banded[2, :-1] = -upper[:-1], 1 - upper - lower, -lower[1:]
        residual = levels - centroid
        step = solve_banded((1, 1), banded, residual)
        levels = levels - step
        if np.max(np.abs(step)) <= 4e-16 * levels[-1]:
            break
    return tuple(float(c) for c in levels)


def lloyd_max_levels(bits: int) -> np.ndarray:
    """Return the 2^bits levels in increasing order, unit variance; 1 <= bits <= 8, else ValueError."""
    positive = np.array(_positive_levels(_checked(bits)))
    return np.concatenate((-positive[::-1], positive))


def lloyd_max_thresholds(bits: int) -> np.ndarray:
    """Return the 2^bits - 1 decision thresholds, midway between the levels."""
    levels = lloyd_max_levels(bits)
    return (levels[1:] + levels[:-1]) / 2


def lloyd_max_distortion(bits: int) -> float:
    """Return mean square error of the quantiser on the standard normal law; 1 for 0 bits, the one level 0."""
    from scipy.special import ndtr

    if bits == 0:
        return 1.0
    levels = np.array(_positive_levels(_checked(bits)))
    edges = np.concatenate(([0.0], (levels[1:] + levels[:-1]) / 2, [np.inf]))
    density = np.exp(-edges * edges / 2) / math.sqrt(2 * math.pi)
    # E(X-c)^2 cell by cell, so that small distortions keep their digits
    mass = ndtr(-edges[:-1]) - ndtr(-edges[1:])
    edge_moment = np.concatenate((edges[:-1], [0.0])) * density
    second = mass + edge_moment[:-1] - edge_moment[1:]
    first = density[:-1] - density[1:]
    return float(2 * np.sum(second - 2 * levels * first + levels * levels * mass))


def _checked(bits: int) -> int:
    if bits not in range(1, MAX_BITS + 1):
        raise ValueError(f"Lloyd-Max quantisers are computed for 1 <= bits <= {MAX_BITS}; got bits = {bits}")
    return int(bits)


class LloydMaxDistortion(SpecialFunction):
    """Mean square error of the 2^b level Lloyd-Max quantiser on the standard normal law, b = 0..8."""

    latex_template = r"D_{{\mathrm{{LM}}}}\left({0}\right)"

    @staticmethod
    def kernel(bits: Any) -> Any:
        return np.vectorize(lambda b: lloyd_max_distortion(int(b)), otypes=[float])(bits)

    @staticmethod
    def ball(bits: Any) -> Any:
        from flint import arb, ctx

        return _distortion_ball(_checked(int(float(bits))), ctx.prec) if bits != 0 else arb(1)


@lru_cache(maxsize=64)
def _distortion_ball(bits: int, precision: int) -> Any:
    from flint import ctx

    with ctx.workprec(precision):
        levels = lloyd_max_level_balls(bits)
        mass, _, _ = _cells(levels)
        return 1 - 2 * sum(p * c * c for p, c in zip(mass, levels, strict=True))


def lloyd_max_level_balls(bits: int) -> list[Any]:
    """Return the positive levels as balls at the working precision, certified; not a number if that fails."""
    from flint import arb, arb_mat, ctx

    n = 2 ** (_checked(bits) - 1)
    point = [arb(c) for c in _positive_levels(bits)]
    inverse = arb_mat(_jacobian(point)).inv().mid()
    for _ in range(max(1, math.ceil(math.log2(ctx.prec / 40)) + 1)):  # the same inverse, so about 40 bits a step
        for _ in range(2):
            step = inverse * arb_mat(n, 1, _residual(point))
            point = [(point[i] - step[i, 0]).mid() for i in range(n)]
    radius = arb(0, 2.0 ** (-ctx.prec // 2))
    box = [c + radius for c in point]
    step = inverse * arb_mat(n, 1, _residual(point))
    identity = arb_mat(n, n, [int(i == j) for i in range(n) for j in range(n)])
    contraction = (identity - inverse * arb_mat(_jacobian(box))) * arb_mat(n, 1, [radius] * n)
    image = [point[i] - step[i, 0] + contraction[i, 0] for i in range(n)]
    if not all(b.contains_interior(k) for b, k in zip(box, image, strict=True)):
        return [arb("nan")] * n
    return image


def _cells(levels: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Return masses, thresholds t_0..t_(n-1) and densities phi(t_0)..phi(t_n), the last one 0."""
    from flint import arb

    edges = [arb(0)] + [(a + b) / 2 for a, b in pairwise(levels)]
    tails = [(t / arb(2).sqrt()).erfc() / 2 for t in edges] + [arb(0)]
    density = [(-t * t / 2).exp() / (2 * arb.pi()).sqrt() for t in edges] + [arb(0)]
    return [a - b for a, b in pairwise(tails)], edges, density


def _residual(levels: list[Any]) -> list[Any]:
    mass, _, density = _cells(levels)
    return [c * mass[i] - density[i] + density[i + 1] for i, c in enumerate(levels)]


def _jacobian(levels: list[Any]) -> list[list[Any]]:
    from flint import arb

    n = len(levels)
    mass, edges, density = _cells(levels)
    rows = [[arb(0)] * n for _ in range(n)]
    for i, c in enumerate(levels):
        above = density[i + 1] * (c - edges[i + 1]) / 2 if i + 1 < n else arb(0)
        below = density[i] * (edges[i] - c) / 2 if i else arb(0)
        rows[i][i] = mass[i] + above + below
        if i + 1 < n:
            rows[i][i + 1] = above
        if i:
            rows[i][i - 1] = below
    return rows
