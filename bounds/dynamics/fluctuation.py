"""How far one run of models A and B scatters around its mean, exactly: means and variances of quadratic statistics.

The workers' errors e of one coordinate form a vector of n = m entries.  For p runs side by side, which see the same
noise and average with periods of their own, n = m p.  A step is e_i' = f_i e_i - eta xi_i with
f_i = 1 - eta lambda (1 + z_i); an averaging puts the mean of a run in the place of its workers.  z and xi are
symmetric, independent over workers, steps and coordinates, with variances ``noise_growth`` and s and one ``kurtosis``.

Derivation.  Odd moments of the noise vanish, so the moments of even order are closed::

    E e_a e_b        -> E f_a f_b E e_a e_b + eta^2 s [a, b are one worker],
    E e_a e_b e_c e_d -> E f_a f_b f_c f_d E e_a e_b e_c e_d
                        + sum over the 6 pairs of eta^2 s [pair is one worker] E f f E e e of the other two
                        + eta^4 E xi_a xi_b xi_c xi_d.

For y = e^T W e, E y_k e e^T moves like the second moments with eta^2 s E y_k in the place of eta^2 s, which gives
E y_k y_l and so the variance of an average over steps.  Coordinates are independent: means and variances add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from .quadratic import Quadratic


@dataclass(frozen=True)
class Spread:
    """Mean and variance of a statistic over the runs: of its average over the steps, and after the last one.

    Parameters
    ----------
    mean : float
        Mean of the average over the steps.
    variance : float
        Variance of the average over the steps.
    last_mean : float
        Mean of the value after the last step.
    last_variance : float
        Variance of the value after the last step.
    """

    mean: float
    variance: float
    last_mean: float
    last_variance: float


def spread(
    problem: Quadratic,
    *,
    eta: float,
    m: int,
    taus: Sequence[int],
    K: int,
    weights: np.ndarray,
    noise_growth: float = 0.0,
    kurtosis: float = 3.0,
    power: int = 2,
) -> Spread:
    """Return law of sum_j lambda_j^power e_j^T W e_j: its average before each of K steps, and its value after them.

    Parameters
    ----------
    taus : sequence of int
        Averaging period of each run side by side, whole rounds of which make K steps.
    weights : ndarray
        W, shape (p m, p m), p = len(taus): ``at_mean(m)`` for ``|grad F|^2`` at the workers' mean, ``at_workers(m)``
        for its mean over the workers, or a combination.
    kurtosis : float, optional
        E xi^4 / (E xi^2)^2, 3 for a Gaussian.
    power : int, optional
        1 for F, with half the weights.

    Raises
    ------
    ValueError
        If a period does not divide K, or W has another shape.
    """
    n = m * len(taus)
    if K < 1 or any(tau < 1 or K % tau for tau in taus) or weights.shape != (n, n):
        raise ValueError(f"need whole rounds and weights of shape {(n, n)}; got K = {K}, {taus}, {weights.shape}")
    kinds, counts = np.unique(np.stack([problem.eigenvalues, problem.start, problem.noise]), axis=1, return_counts=True)
    total = np.zeros(4)
    for (curvature, start, noise), count in zip(kinds.T, counts, strict=True):
        coordinate = _Coordinate(eta * curvature, eta**2 * noise, noise_growth, kurtosis, m, tuple(taus))
        total += count * coordinate.moments(start, K, curvature**power * weights)
    mean, variance, last_mean, last_variance = map(float, total)
    return Spread(mean, max(0.0, variance), last_mean, max(0.0, last_variance))  # 0 but for rounding


def at_mean(m: int) -> np.ndarray:
    """Return the weights of the square at the workers' mean, shape (m, m)."""
    return np.full((m, m), 1 / m**2)


def at_workers(m: int) -> np.ndarray:
    """Return the weights of the mean square at the workers, shape (m, m)."""
    return np.eye(m) / m


class _Coordinate:
    """The moments of one coordinate.

    Parameters
    ----------
    x : float
        eta lambda.
    v : float
        eta^2 s.
    """

    def __init__(self, x: float, v: float, growth: float, kurtosis: float, m: int, taus: tuple[int, ...]) -> None:
        self.m, self.taus, self.n, self.v = m, taus, m * len(taus), v
        a, g = 1 - x, x**2 * growth
        powers = np.array([1, a, a**2 + g, a**3 + 3 * a * g, a**4 + 6 * a**2 * g + kurtosis * g**2])
        worker = np.arange(self.n) % m
        self.same = (worker[:, None] == worker).astype(float)
        places = np.indices((self.n,) * 4)
        shares = [(worker[places] == w).sum(axis=0) for w in range(m)]  # how often a worker stands in an entry
        self.f4 = np.prod([powers[share] for share in shares], axis=0)
        self.f2 = np.where(self.same > 0, powers[2], powers[1] ** 2)
        even = np.prod([np.array([1.0, 0, 1, 0, kurtosis])[share] for share in shares], axis=0)
        self.noise4 = v**2 * even

    def moments(self, start: float, K: int, W: np.ndarray) -> np.ndarray:
        """Return mean, variance, last mean, last variance of e^T W e from e = start."""
        second, fourth = np.full((self.n,) * 2, start**2), np.full((self.n,) * 4, start**4)
        joint, masses, sums = np.empty((0, self.n, self.n)), np.empty(0), np.zeros(2)
        for k in range(K + 1):
            value = float(np.sum(W * second))
            weighted = np.tensordot(W, fourth, 2)
            square = float(np.sum(W * weighted))
            if k == K:
                break
            sums += value, square + 2 * float(np.sum(joint * W))
            joint, masses = np.concatenate([joint, weighted[None]]), np.append(masses, value)
            fourth = self._fourth(fourth, second)
            second = self.f2 * second + self.v * self.same
            joint = self.f2 * joint + self.v * self.same * masses[:, None, None]
            P = self._averaging(k + 1)
            if P is not None:
                second, joint = P @ second @ P.T, P @ joint @ P.T
                for axis in range(4):
                    fourth = np.moveaxis(np.tensordot(P, fourth, (1, axis)), 0, axis)
        mean = sums[0] / K
        return np.array([mean, sums[1] / K**2 - mean**2, value, square - value**2])

    def _fourth(self, fourth: np.ndarray, second: np.ndarray) -> np.ndarray:
        moved = self.f4 * fourth + self.noise4
        kept = self.f2 * second
        for pair in combinations(range(4), 2):
            noisy = [self.n if axis in pair else 1 for axis in range(4)]
            others = [1 if axis in pair else self.n for axis in range(4)]
            moved = moved + self.v * self.same.reshape(noisy) * kept.reshape(others)
        return moved

    def _averaging(self, k: int) -> np.ndarray | None:
        """Return the matrix of the averagings after k steps, None if there are none."""
        due = [k % tau == 0 for tau in self.taus]
        if not any(due):
            return None
        blocks = [np.full((self.m, self.m), 1 / self.m) if mean else np.eye(self.m) for mean in due]
        P = np.zeros((self.n, self.n))
        for i, block in enumerate(blocks):
            P[i * self.m : (i + 1) * self.m, i * self.m : (i + 1) * self.m] = block
        return P
