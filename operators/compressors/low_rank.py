"""Two thin factors of the vector as a matrix, from one power iteration with a new Gaussian start."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Contractive, StrictlyContractive

from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..quantisers.rotation import prescale
from ..quantisers.scale import energy, nearest, negligible
from ..quantisers.thin_products import orthonormal, times, times_transposed, transposed_times
from ..random import normal
from .random_k import pack_values, unpack_values

ROUNDING = 1e-5  # exceeds the rounding of norms near 1 in binary32
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class LowRank(Operator):
    """Read x as an m x n matrix M row by row; send P = orth(M G), G Gaussian, and Q = M^T P; decode P Q^T.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  Where r (m + n) >= d, x itself is sent and nothing is lost.
    rank : int, optional
        r >= 1, columns of G, P and Q.
    shape : tuple of int or None, optional
        (m, n) with m n = d; None for the near-square m = floor(sqrt(d)), n = ceil(d/m), zeros filling the rest.

    Raises
    ------
    ValueError
        If rank < 1, if shape does not fit d, or if ``|x|`` exceeds binary32.

    Notes
    -----
    Contractive with alpha = 1 - r/min(m, n), reached by a flat spectrum.  Proof: let s_i be the singular values, k =
    min(m, n) of them, l_i the leverage of row i of diag(s) G', G' Gaussian; the captured energy is sum s_i^2 E l_i with
    sum l_i = r.  A leverage grows with its own s_i and falls with the others, so E l_i is ordered like s_i, and
    Chebyshev's sum inequality gives at least (r/k) sum s_i^2.  This is PowerSGD (Vogels et al. 2019) without its warm
    start, which has no constant: see ``PowerSGD``. 32 r (m + n) bits, or 32 d.
    """

    rank: int = 1
    shape: tuple[int, int] | None = None

    name = "low_rank"
    sources = ("vogels2019",)
    randomness = "private"
    equivariant = frozenset({"sign"})

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"rank must be at least 1; got rank = {self.rank}")
        if self.shape is not None and (len(self.shape) != 2 or min(self.shape) < 1):
            raise ValueError(f"shape must be two positive numbers, or None; got shape = {self.shape}")

    def matrix_shape(self, d: int) -> tuple[int, int]:
        """Return the matrix shape (m, n) at dimension d.

        Parameters
        ----------
        d : int
            Number of coordinates.

        Raises
        ------
        ValueError
            If the fixed shape has another product.
        """
        if self.shape is None:
            m = math.isqrt(d)
            return m, -(-d // m)
        if self.shape[0] * self.shape[1] != d:
            raise ValueError(f"shape {self.shape} holds {self.shape[0] * self.shape[1]} entries; got d = {d}")
        return self.shape

    def is_exact(self, d: int) -> bool:
        """Return whether x itself is sent because two factors would not be shorter.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return self.rank * sum(self.matrix_shape(d)) >= d

    def claim(self, d: int) -> Contractive:
        """Return alpha = 1 - r/min(m, n), or 0 where x itself is sent."""
        if self.is_exact(d):
            return StrictlyContractive(0.0, tight=True)
        return Contractive(1 - self.rank / min(self.matrix_shape(d)))

    def witness(self, d: int) -> np.ndarray | None:
        """Return a flat-spectrum vector that reaches alpha, or None where the padding prevents it.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        m, n = self.matrix_shape(d)
        if self.is_exact(d) or n < m:
            return None
        matrix = np.zeros((m, n))
        matrix[np.arange(m), (np.arange(m) + 1) % m] = 1
        return matrix.reshape(-1)[:d]

    def bits(self, d: int) -> Size:
        """Return 32 r (m + n) bits, or 32 d where x itself is sent."""
        return Size.fixed(32 * (d if self.is_exact(d) else self.rank * sum(self.matrix_shape(d))))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(4)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        if self.is_exact(x.size):
            return pack_values(x)
        p, q = self.factors(x, normal(key, self.rank * self.matrix_shape(x.size)[1]))
        return pack_values(np.concatenate([p.reshape(-1), q.reshape(-1)]))

    def factors(self, x: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the factors (P, Q) of one power iteration: float32, shapes (m, r) and (n, r).

        Parameters
        ----------
        x : float32, shape (d,)
        start : ndarray
            float64, n r entries, not far from 1: the columns of G in C order.
        """
        m, n = self.matrix_shape(x.size)
        if negligible(x):
            return np.zeros((m, self.rank), np.float32), np.zeros((n, self.rank), np.float32)
        y, factor = prescale(x)
        nearest((1 + ROUNDING) * math.sqrt(energy(y)) / factor)  # no entry of Q or of what is decoded is larger
        padded = np.zeros(m * n, np.float32)
        padded[: x.size] = y
        matrix = padded.reshape(m, n)
        p = orthonormal(times(matrix, start.reshape(n, self.rank))).astype(np.float32)
        return p, (transposed_times(matrix, p) / factor).astype(np.float32)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        if self.is_exact(d):
            return unpack_values(payload, bits, d)
        m, n = self.matrix_shape(d)
        values = unpack_values(payload, bits, self.rank * (m + n))
        p, q = values[: self.rank * m].reshape(m, -1), values[self.rank * m :].reshape(n, -1)
        longest = [float(np.sqrt((f.astype(np.float64) ** 2).sum(axis=1).max())) for f in (p, q)]
        if longest[0] > 1 + ROUNDING or longest[1] > _LARGEST:
            raise CorruptMessage(f"row norms of the factors must be at most 1 and fit binary32; got {longest}")
        return times_transposed(p, q).reshape(-1)[:d]
