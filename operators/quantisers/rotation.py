"""Random rotations drawn from a key: Haar-distributed for small d, Hadamard transforms with random signs above.

No number of Hadamard rotations is uniform: x = (1, 1/2) only ever goes to (+-3/2, +-1/2)/sqrt 2 or the other way round,
so an operator that needs a uniform rotation stays biased.  Up to ``HAAR_LIMIT`` coordinates the rotation is therefore
Haar's measure itself: the product of d random reflections (Stewart 1980).  With g a Gaussian vector, let H(g) be the
reflection, times -sign(g_1), that takes e_1 to ``g/|g|``.  If Q' is Haar-distributed on R^(d-1) and g is independent of
it, then H(g) diag(1, Q') is on R^d, because its first column is uniform and the others are uniform in the orthogonal
complement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..compilation import jit
from ..kernels import hadamard, kernels_for
from ..key import Key
from ..message import CorruptMessage
from ..random import bits32, normal
from .scale import largest

HAAR_LIMIT = 64  # above, d^2 operations take too long and four Hadamard rotations are close enough
QUANTISER_LIMIT = 256  # of vector quantisers: keys and embeddings are short, and exactness is worth the time
ROUNDS = 4
MODERATE = 2.0**40  # sums of this many times d entries fit binary32, and so do their thousandths
_LARGEST = float(np.finfo(np.float32).max)


@jit
def _reflect(v, gauss, forward):
    """v <- Q v or Q^T v in place;

    Parameters
    ----------
    gauss
        float64, shape (d (d+1)/2,), the vectors of length d, d-1, .., 1.
    """
    d = v.size
    for step in range(d):
        k = d - 1 - step if forward else step  # H(g_k) acts on coordinates k .. d-1
        start = k * d - k * (k - 1) // 2
        g, part = gauss[start : start + d - k], v[k:]
        sign = 1.0 if g[0] >= 0 else -1.0
        norm, along = 0.0, 0.0
        for i in range(g.size):
            norm += g[i] * g[i]
            along += g[i] * part[i]
        norm = np.sqrt(norm)
        along += sign * norm * part[0]
        weight = along / (norm * (norm + abs(g[0])))  # 2 <u, part> / |u|^2 for u = g + sign |g| e_1
        for i in range(g.size):
            part[i] = -sign * (part[i] - weight * g[i])
        part[0] += weight * norm


@dataclass(frozen=True)
class Rotation:
    """An orthogonal matrix of R^d, the same whenever it is built from the same key.

    Parameters
    ----------
    rounds : int, optional
        Of Hadamard transforms, used above ``haar_limit`` coordinates; up to it the matrix is Haar-distributed.

    Notes
    -----
    Works in float64 up to ``haar_limit`` and in binary32 above, where sums of up to d entries must fit.
    """

    d: int
    key: Key
    rounds: int = ROUNDS
    haar_limit: int = HAAR_LIMIT

    @property
    def uniform(self) -> bool:
        """Whether the rotation is Haar-distributed."""
        return self.d <= self.haar_limit

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Return the rotated vector.

        Parameters
        ----------
        x : ndarray
            float32, shape (d,), contiguous; so is the result, a new array.
        """
        return self._turn(x, True)

    def inverse(self, z: np.ndarray) -> np.ndarray:
        """Return the inverse of ``forward``, up to rounding."""
        return self._turn(z, False)

    def _turn(self, x: np.ndarray, forward: bool) -> np.ndarray:
        if self.uniform:
            wide = x.astype(np.float64)
            _reflect(wide, normal(self.key, self.d * (self.d + 1) // 2), forward)
            return wide.astype(np.float32)
        vector = torch.from_numpy(x)
        words = torch.from_numpy(bits32(self.key, hadamard.word_count(self.d, self.rounds)).view(np.int32))
        kernel = kernels_for(vector).hadamard
        return (kernel.rotate if forward else kernel.unrotate)(vector, words, self.rounds).numpy()


def prescale(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Return (x times a power of two, that power): x itself if ``2^-40 <= max|x| <= 2^40``, else with ``max|x|`` near
    1.

    Parameters
    ----------
    x : ndarray
        float32, shape (d,), ``max|x| >= 2^-126``.
    """
    top = float(largest(x))
    if 1 / MODERATE <= top <= MODERATE:
        return x, 1.0
    factor = math.ldexp(1.0, -max(min(math.frexp(top)[1], 126), -126))
    return x * np.float32(factor), factor


def unscale(x: np.ndarray, factor: float) -> np.ndarray:
    """Return x times factor >= 0, in place.

    Raises
    ------
    CorruptMessage
        If an entry then exceeds binary32.
    """
    top = float(largest(x)) * factor
    if top > _LARGEST:
        raise CorruptMessage(f"a decoded entry would be {top:.4g}, which exceeds binary32")
    return np.multiply(x, np.float32(factor), out=x)


# The check that all operators of a fixed number of bits per coordinate share.


def require_bits_per_coordinate(bits_per_coordinate: int, most: int) -> None:
    """Refuse an invalid number of bits per coordinate.

    Parameters
    ----------
    bits_per_coordinate : int, bits
        What a user gives.
    most : int, bits
        The largest that the operator has a grid for.

    Raises
    ------
    ValueError
        Unless it is an integer from 1 to ``most``.
    """
    if bits_per_coordinate not in range(1, most + 1):
        raise ValueError(
            f"bits_per_coordinate must satisfy 1 <= bits_per_coordinate <= {most}; "
            f"got bits_per_coordinate = {bits_per_coordinate}"
        )
