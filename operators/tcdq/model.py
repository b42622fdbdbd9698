"""Densities of n - u in units of the symbol spacing: one Gaussian, or mixtures of Gaussians chosen by context.

A mixture has weights 0 .. 255 for the standard deviations 2^(m/2) / 4, m = 0, 1, ...  The context of a
coordinate is the mean magnitude of some 16 coordinates before it, on a scale of half octaves (see ``classes``);
neighbouring contexts may share a mixture.  Only decoded values enter, so nothing but the weights is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isqrt

import numpy as np

from .fixed import ROOT_2PI, TAIL_STEP, decay, rate, tail

CLASSES = 16
COMPONENTS = 32
REACH = 128  # densities are tabulated for |n - u| < 128 spacings
WIDEST_SYMBOL = 127
MASS = 8  # a lone Gaussian has weight 2^8, about that of a mixture

# least running sum of magnitudes (in 1/64, 16 times their mean) of classes 1 .. 15: 256, 362, 512, ...
THRESHOLDS = np.array([isqrt((1 << 16) << c) for c in range(CLASSES - 1)], np.int64)


@dataclass(frozen=True)
class Model:
    """What the entropy coder assumes.

    Parameters
    ----------
    sigma : float
        Standard deviation of the Gaussian that serves where no mixture is given.
    starts : tuple of int, optional
        ``starts[c]`` is the number of the mixture of class c; non-decreasing from 0 by steps of 0 or 1.
    mixtures : tuple of tuple of int, optional
        Weights, one tuple per mixture; empty for the Gaussian.
    low : int, optional
        Last bits of each symbol that are sent as they are.
    """

    sigma: float
    starts: tuple[int, ...] = (0,) * CLASSES
    mixtures: tuple[tuple[int, ...], ...] = ()
    low: int = 0

    @property
    def groups(self) -> int:
        """How many densities there are."""
        return max(1, len(self.mixtures))

    def header(self) -> bytes:
        """Return the model as bytes: 0; or 1 + 2 low, the classes at which a mixture begins (bit c), and
        the weights.
        """
        if not self.mixtures:
            return b"\x00"
        mask = sum(1 << c for c in range(CLASSES) if c == 0 or self.starts[c] != self.starts[c - 1])
        return (
            bytes([1 | self.low << 1]) + mask.to_bytes(2, "big") + b"".join(bytes([len(w), *w]) for w in self.mixtures)
        )


def density(model: Model, group: int, bins: int) -> np.ndarray:
    """Return the density at ``|n - u| = (j`` + 1/2)/bins spacings, j = 0 .. 128 bins - 1, up to a factor: int64."""
    if not model.mixtures:
        return _gaussian(model.sigma, bins) << MASS
    parts = _components(bins)
    return sum(w * parts[m] for m, w in enumerate(model.mixtures[group]) if w)


def total_mass(model: Model, group: int) -> int:
    """Return the integral of ``density`` over a spacing's multiples: what its values sum to at one phase,
    on average.
    """
    if not model.mixtures:
        return int(ROOT_2PI * model.sigma * (1 << MASS))
    return sum(model.mixtures[group]) * ROOT_2PI // 4


def tail_mass(model: Model, group: int, reach: int) -> int:
    """Return the part of ``total_mass`` at ``|n - u|`` > reach spacings."""
    if not model.mixtures:
        return total_mass(model, group) * tail(int(TAIL_STEP * reach / model.sigma)) >> 20
    total = 0
    for m, w in enumerate(model.mixtures[group]):
        total += w * (ROOT_2PI // 4) * tail(isqrt((4 * TAIL_STEP * reach) ** 2 >> m)) >> 20
    return total


@lru_cache(maxsize=256)
def _gaussian(sigma: float, bins: int) -> np.ndarray:
    # (2 j + 1)^2 / (8 sigma^2 bins^2), with sigma^2 read as a multiple of 2^-40
    return decay(rate(1 << 40, int(8 * sigma * sigma * bins * bins * 2.0**40)), REACH * bins)


@lru_cache(maxsize=4)
def _components(bins: int) -> np.ndarray:
    """Return densities of the components, each divided by its standard deviation: shape (32, 128 bins)."""
    out = np.empty((COMPONENTS, REACH * bins), np.int64)
    for m in range(COMPONENTS):
        values = decay(rate(16, (8 << m) * bins * bins), REACH * bins)
        out[m] = values * isqrt((1 << 32) >> m) >> 16
    return out


def widest(values: np.ndarray, total: int, bins: int, rarest: int) -> int:
    """Return K: symbols 1 - K .. K are coded; those of probability below 2^-rarest leave it to the escape."""
    rare = np.flatnonzero(values[2 * bins :: bins] < total >> rarest)
    return min(WIDEST_SYMBOL, 2 + int(rare[0])) if rare.size else WIDEST_SYMBOL
