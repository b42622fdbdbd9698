"""Top-k: keep the coordinates of largest magnitude."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
import torch

from bounds.claims import StrictlyContractive

from ..coding import sparse_runs
from ..kernels import kernels_for, rice
from ..kernels.backend import scattered
from ..kernels.rice.cpu import pack_rows, unpack, unpack_rows
from ..key import Key
from ..message import Messages
from ..operator import DeviceOperator, Size
from ..pieces import InRuns, Runs
from ..rate import Rate


@lru_cache(maxsize=1024)  # fractions are slow, and every message needs one
def kept(fraction: float | None, k: int | None, d: int) -> int:
    """Return how many of d coordinates are kept: k, or max(1, ceil(fraction d)) with the exact decimal.

    Raises
    ------
    ValueError
        If k > d.
    """
    if k is None:
        return max(1, math.ceil(Fraction(repr(fraction)) * d))
    if k > d:
        raise ValueError(f"k must satisfy 1 <= k <= d = {d}; got k = {k}")
    return k


def check_fraction(fraction: float | None, k: int | None) -> None:
    """Raise ValueError unless exactly one of fraction and k is given and in range."""
    if (fraction is None) == (k is None):
        raise ValueError(f"give exactly one of fraction and k; got fraction = {fraction}, k = {k}")
    if fraction is not None and not 0 < fraction <= 1:
        raise ValueError(f"fraction must satisfy 0 < fraction <= 1; got fraction = {fraction}")
    if k is not None and k < 1:
        raise ValueError(f"k must satisfy 1 <= k <= d; got k = {k}")


@dataclass(frozen=True)
class TopK(DeviceOperator, InRuns):
    """Keep the k coordinates of largest magnitude, exactly.

    Parameters
    ----------
    x
        Float tensor, shape (d,), d >= k; ties go to the lower index.
    fraction : float or None, optional
        Share of the coordinates that are kept: k = max(1, ceil(fraction d)).
    k : int or None, optional
        Number of coordinates that are kept; exactly one of the two is given.

    Raises
    ------
    ValueError
        If k > d.

    Notes
    -----
    Strictly contractive with alpha = 1 - k/d, reached by equal magnitudes; at x exactly the share of energy left out
    (Aji & Heafield 2017; Stich et al. 2018).  Bits: the support as Rice-coded gaps and k values in binary32.
    """

    fraction: float | None = None
    k: int | None = None

    name = "topk"
    sources = ("aji2017", "stich2018")
    randomness = "none"
    rate = Rate("fraction", few=2.0**-30, many=1.0)
    projects = True
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        check_fraction(self.fraction, self.k)

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = 1 - k/d."""
        return StrictlyContractive(1 - kept(self.fraction, self.k, d) / d)

    def claim_at(self, x: np.ndarray) -> StrictlyContractive:
        """Return the exact alpha at one non-zero vector: the dropped share of its energy.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        squares = np.sort(np.asarray(x, np.float64) ** 2)
        return StrictlyContractive(float(squares[: -kept(self.fraction, self.k, x.size)].sum() / squares.sum()), True)

    def bits(self, d: int) -> Size:
        """Return the bits of the worst support; shorter gaps take fewer."""
        worst = rice.worst_bits(kept(self.fraction, self.k, d), d)
        return Size(exact=worst if worst == rice.VALUE_BITS * d else None, expected_upper=worst, worst_case=worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(fraction=0.01), cls(fraction=0.3), cls(k=1), cls(fraction=1.0)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        kernels = kernels_for(x)
        index = kernels.selection.largest(x, kept(self.fraction, self.k, x.numel()))
        return kernels.rice.pack(index, x[index], x.numel())

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        index, values = unpack(payload, bits, kept(self.fraction, self.k, d), d)
        return scattered(d, index, values)

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        d = x.shape[1]
        k = kept(self.fraction, self.k, d)
        index = np.sort(np.argsort(-np.abs(x), axis=1, kind="stable")[:, :k], axis=1)
        return pack_rows(index, np.take_along_axis(x, index, 1), d)

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        index, values = unpack_rows(messages, kept(self.fraction, self.k, d), d)
        out = np.zeros((len(messages), d), np.float32)
        np.put_along_axis(out, index, values, 1)
        return out

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        return sparse_runs.write(runs, sparse_runs.largest(runs, kept(self.fraction, self.k, d)), d)

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        return sparse_runs.read(payload, bits, 0, kept(self.fraction, self.k, d), d, self._runs(d))
