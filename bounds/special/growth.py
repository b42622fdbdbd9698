"""Means and sums of growing powers over the steps of a round, also where nothing grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from .function import SpecialFunction

MEAN_BELOW = 0.1  # |n y| below which the float kernel sums the series; the first term left out is < 1e-19 of the sum
MEAN_TERMS = 12


class MeanGrowth(SpecialFunction):
    """MeanGrowth(y, n) = (1/n) sum_{r<n} (1 + (1+y) + ... + (1+y)^(r-1)) = (((1+y)^n - 1)/y - n)/(n y).

    y >= -1, n >= 1 (any real n; a sum for integers); equal to (n - 1)/2 at y = 0 and increasing in y.
    In hypergeometric form (n-1)/2 2F1(1, 2-n; 3; -y), whose series is used near 0.
    """

    latex_template = r"\mathrm{{MeanGrowth}}\left({}, {}\right)"
    nargs = 2

    @staticmethod
    def kernel(y: Any, n: Any) -> Any:
        """Evaluate in float64 with relative error below 1e-13 wherever the value is finite."""
        y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
        with np.errstate(all="ignore"):
            grown = np.expm1((n - 1) * np.log1p(y))  # the powers up to n - 1: n itself would cancel at n near 1
            far = np.where(n == 1, 0.0, (grown * ((1 + y) / y) - (n - 1)) / (n * y))
        return np.where(np.abs(n * y) < MEAN_BELOW, _mean_series(np.clip(y, -MEAN_BELOW, MEAN_BELOW), n), far)

    @staticmethod
    def ball(y: Any, n: Any) -> Any:
        """Evaluate in ball arithmetic; a ball y that straddles 0 needs a higher precision."""
        if y.is_zero():
            return (n - 1) / 2
        return (((1 + y) ** n - 1) / y - n) / (n * y)


def _mean_series(y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the binomial series of the definition, sum_k C(n, k+2) y^k / n."""
    term = total = (n - 1) / 2
    with np.errstate(all="ignore"):
        for k in range(MEAN_TERMS):
            term = term * (n - 2 - k) / (k + 3) * y
            total = total + term
    return total


PAIR_BELOW = 0.5  # |n y (2 + y)| below which the float kernel sums the series; what is left out is < 1e-18 of the sum
PAIR_TERMS = 14


class PairGrowth(SpecialFunction):
    """PairGrowth(y, n) = (1/n) sum_{k<n} 2 (1+y) s_k s_{k-1}/(2+y), s_k = 1 + (1+y) + ... + (1+y)^(k-1).

    y > -1, n >= 1 (any real n; a sum for integers).  With s_k = ((1+y)^k - 1)/y and geometric sums it is ::

        (2/y) (MeanGrowth(y (2+y), n) - MeanGrowth(y, n)) = (2/n) sum_{j>=1} C(n, j+2) y^(j-1) ((2+y)^j - 1),

    equal to (n - 1)(n - 2)/3, the mean of k (k - 1), at y = 0.
    """

    latex_template = r"\mathrm{{PairGrowth}}\left({}, {}\right)"
    nargs = 2

    @staticmethod
    def kernel(y: Any, n: Any) -> Any:
        """Evaluate in float64 with relative error below 1e-11 for n >= 2 wherever the value is finite."""
        y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
        with np.errstate(all="ignore"):
            far = 2 * (MeanGrowth.kernel(y * (2 + y), n) - MeanGrowth.kernel(y, n)) / y
        near = np.abs(n * y * (2 + y)) < PAIR_BELOW
        return np.where(near, _pair_series(np.where(near, y, 0.0), n), far)

    @staticmethod
    def ball(y: Any, n: Any) -> Any:
        """Evaluate in ball arithmetic; a ball y that straddles 0 needs a higher precision."""
        if y.is_zero():
            return (n - 1) * (n - 2) / 3
        return 2 * (MeanGrowth.ball(y * (2 + y), n) - MeanGrowth.ball(y, n)) / y


def _pair_series(y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Return the binomial series of the definition; y^(j-1) ((2+y)^j - 1) is w_j with w_{j+1} = y ((2+y) w_j + y^(j-1)
    (1+y)).
    """
    binomial = (n - 1) * (n - 2) / 6  # C(n, j + 2)/n
    weight, power = 1 + y, np.ones_like(y)
    total = binomial * weight
    with np.errstate(all="ignore"):
        for j in range(1, PAIR_TERMS):
            binomial = binomial * (n - 2 - j) / (j + 3)
            weight = y * ((2 + y) * weight + power * (1 + y))
            power = power * y
            total = total + binomial * weight
    return 2 * total


SQUARE_BELOW = 1.0  # |n y| below which the float kernel sums the series; the first term left out is < 1e-19 of the sum
SQUARE_TERMS = 20


class SquareGrowth(SpecialFunction):
    """SquareGrowth(y, n) = sum_{k<n} k (k-1) (1+y)^(n-1-k) = 2 sum_{j>=3} C(n, j) y^(j-3), y >= 0, integer n >= 1."""

    latex_template = r"\mathrm{{SquareGrowth}}\left({}, {}\right)"
    nargs = 2

    @staticmethod
    def kernel(y: Any, n: Any) -> Any:
        """Evaluate in float64 with relative error below 1e-11 wherever the value is finite."""
        y, n = np.broadcast_arrays(np.asarray(y, float), np.asarray(n, float))
        with np.errstate(all="ignore"):
            far = 2 * n * (MeanGrowth.kernel(y, n) - (n - 1) / 2) / y
        return np.where(n * y < SQUARE_BELOW, _square_series(np.minimum(y, SQUARE_BELOW), n), far)

    @staticmethod
    def ball(y: Any, n: Any) -> Any:
        """Evaluate in ball arithmetic; a ball y that straddles 0 needs a higher precision."""
        if y.is_zero():
            return n * (n - 1) * (n - 2) / 3
        return 2 * n * (MeanGrowth.ball(y, n) - (n - 1) / 2) / y


def _square_series(y: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The binomial series of the definition."""
    term = total = n * (n - 1) * (n - 2) / 3
    with np.errstate(all="ignore"):
        for k in range(SQUARE_TERMS):
            term = term * (n - 3 - k) / (k + 4) * y
            total = total + term
    return total
