"""One bit per coordinate and two reconstruction values per column."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import StrictlyContractive

from ..compilation import jit
from ..kernels import kernels_for
from ..kernels.threads import mapped
from ..key import Key
from ..message import CorruptMessage
from ..pieces import InRuns, Runs
from ..quantisers.scale import TINY, largest
from ..streamed import FixedLength


@jit
def _means(x, length, means):
    """Compute per column the mean of the entries >= 0 and the mean magnitude of the others; 0 for an empty class."""
    for c in range(means.shape[0]):
        above, below, n_below = 0.0, 0.0, 0
        stop = min(x.size, (c + 1) * length)
        for i in range(c * length, stop):
            v = np.float64(x[i])
            if v < 0:
                below -= v
                n_below += 1
            else:
                above += v
        n_above = stop - c * length - n_below
        means[c, 0] = above / n_above if n_above else 0.0
        means[c, 1] = below / n_below if n_below else 0.0


@jit
def _rebuild(signs, length, means, out):
    """Fill ``out`` from signs +1 and -1; return False if the means of a column do not fit its signs."""
    for c in range(means.shape[0]):
        start, stop = c * length, min(out.size, (c + 1) * length)
        plus, minus, n_below = means[c, 0], means[c, 1], 0
        for i in range(start, stop):
            below = signs[i] < 0
            n_below += below
            out[i] = -minus if below else plus
        if (n_below > 0) != (minus > 0) or (n_below == stop - start and plus > 0):
            return False  # an empty class has mean 0
    return True


@dataclass(frozen=True)
class OneBitSGD(FixedLength, InRuns):
    """Send the sign of each entry and, per column, the mean of its non-negative and of its negative entries.

    Parameters
    ----------
    x
        Float tensor, shape (d,); 0 and -0 count as non-negative; an empty class has mean 0.
    shape : tuple of int or None, optional
        (rows, columns) of x in C order; None cuts x into runs of ceil(sqrt(d)) entries as columns.

    Raises
    ------
    ValueError
        If shape does not hold d entries.

    Notes
    -----
    Strictly contractive with alpha = 1 - 1/n, n entries in the longest column, reached by a one-hot column; per column
    ``1 - alpha = (S+^2/n+ + S-^2/n-)/|x|^2 >= |x|_1^2/(n |x|^2)`` by Cauchy-Schwarz (algorithm: Seide et al. 2014, with
    error feedback). d bits and 64 a column.
    """

    shape: tuple[int, int] | None = None

    name = "one_bit_sgd"
    width = 1
    sources = ("seide2014",)
    randomness = "none"
    projects = True
    equivariant = frozenset({"scale", "sign"})

    def column(self, d: int) -> int:
        """Return the number of entries in the longest column.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        if self.shape is None:
            return math.isqrt(d - 1) + 1
        rows, columns = self.shape
        if rows * columns != d:
            raise ValueError(f"shape must hold d = {d} entries; got shape = {self.shape}")
        return rows

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = 1 - 1/n for columns of n entries."""
        return StrictlyContractive(1 - 1 / self.column(d))

    def _count(self, d: int) -> int:
        return 2 * -(-d // self.column(d))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)

    @property
    def whole_only(self) -> str:  # type: ignore[override]
        """Reason why a vector with a fixed shape cannot be encoded in pieces, or ""."""
        if self.shape is None:
            return ""
        return f"columns must be runs of the vector (shape = None); got shape = {self.shape}"

    def _unit(self, d: int) -> int:
        """Return the run granularity: whole columns, with signs in whole bytes."""
        return math.lcm(8, self.column(d))

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        if self.shape is not None and self.column(x.size):
            x = np.ascontiguousarray(x.reshape(self.shape).T).reshape(-1)
        return self._encode_runs(lambda: [(part, x[part]) for part in self._runs(x.size)], x.size, key)

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        length, bits, head = self.column(d), self._length(d), self._head_bytes(d)
        means, payload = np.zeros((-(-d // length), 2), np.float32), np.zeros((bits + 7) // 8, np.uint8)

        def survey(run: tuple[slice, np.ndarray]) -> float:
            part, x = run
            _means(x, length, means[part.start // length : -(-part.stop // length)])
            return float(largest(x))

        def write(run: tuple[slice, np.ndarray]) -> None:
            part, x = run
            vector = torch.from_numpy(x)
            payload[head + part.start // 8 : head + -(-part.stop // 8)] = kernels_for(vector).signs.pack(vector).numpy()

        if max(mapped(survey, runs(), d=d)) >= TINY:
            payload[:head] = self._head(means.reshape(-1))
            mapped(write, runs(), d=d)
        return payload, bits

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        out, means, parts = np.empty(d, np.float32), self._read_means(payload, bits, d), list(self._runs(d))
        mapped(lambda part: self._decode_run(payload, means, part, out[part], d), parts, d=d)
        return out if self.shape is None else np.ascontiguousarray(out.reshape(self.shape[::-1]).T).reshape(-1)

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        means = self._read_means(payload, bits, d)
        for part in self._runs(d):
            out = np.empty(part.stop - part.start, np.float32)
            self._decode_run(payload, means, part, out, d)
            yield out

    def _read_means(self, payload: np.ndarray, bits: int, d: int) -> np.ndarray:
        self._check_bits(bits, d)
        means = payload[: self._head_bytes(d)].view(">f4").astype(np.float32).reshape(-1, 2)
        if not np.isfinite(means).all() or np.signbit(means).any():
            raise CorruptMessage("the means of a column must be finite and not negative")
        return means

    def _decode_run(self, payload: np.ndarray, means: np.ndarray, part: slice, out: np.ndarray, d: int) -> None:
        """Decode one run into ``out``."""
        length, head = self.column(d), self._head_bytes(d)
        signs = torch.from_numpy(payload[head + part.start // 8 : head + -(-part.stop // 8)])
        negative = kernels_for(signs).signs.unpack(signs, out.size).numpy()
        if not _rebuild(negative, length, means[part.start // length : -(-part.stop // length)], out):
            raise CorruptMessage("the means of a column must fit its signs")
