"""Keep the largest magnitudes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numba
import numpy as np

from bounds.claims import StrictlyContractive

from ..bitstream import flush, padded, put, read_field
from ..codes import rice
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..selection import largest_indices

VALUE_BITS = 32


def kept(fraction: float | None, k: int | None, d: int) -> int:
    """How many of d coordinates a sparsifier keeps: k, or max(1, ceil(fraction d)) with the decimal's value.

    Raises ValueError if k > d.
    """
    if k is None:
        return max(1, math.ceil(Fraction(repr(fraction)) * d))
    if k > d:
        raise ValueError(f"k must satisfy 1 <= k <= d = {d}; got k = {k}")
    return k


def check_fraction(fraction: float | None, k: int | None) -> None:
    """Raises ValueError unless exactly one of the two is given, and it is in range."""
    if (fraction is None) == (k is None):
        raise ValueError(f"give exactly one of fraction and k; got fraction = {fraction}, k = {k}")
    if fraction is not None and not 0 < fraction <= 1:
        raise ValueError(f"fraction must satisfy 0 < fraction <= 1; got fraction = {fraction}")
    if k is not None and k < 1:
        raise ValueError(f"k must satisfy 1 <= k <= d; got k = {k}")


@numba.njit(cache=True, nogil=True)
def _write(head, head_bits, gaps, r, patterns, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    state = put(out, (np.uint64(0), 0, 0), head, head_bits)
    if gaps.size:
        state = put(out, state, r, rice.PARAMETER_BITS)
        state = rice.write(gaps, r, out, state)
    for pattern in patterns:
        state = put(out, state, pattern, VALUE_BITS)
    flush(out, state)


def pack_sparse(
    index: np.ndarray, values: np.ndarray, d: int, head: int = 0, head_bits: int = 0
) -> tuple[np.ndarray, int]:
    """(payload, bits) of a field of 0 to 32 bits, then k >= 1 float32 values at increasing positions.

    No support is sent if k = d.
    """
    gaps = np.diff(index, prepend=-1) - 1 if index.size < d else index[:0]
    r, support_bits = rice.best_parameter(gaps, d) if gaps.size else (0, 0)
    bits = head_bits + (rice.PARAMETER_BITS if gaps.size else 0) + support_bits + VALUE_BITS * values.size
    out = np.zeros((bits + 7) // 8, np.uint8)
    _write(head, head_bits, gaps, r, values.view(np.uint32), out)
    return out, bits


@numba.njit(cache=True, nogil=True)
def _read_values(padded_payload, position, patterns):  # type: ignore[no-untyped-def]  # pragma: no cover
    for j in range(patterns.size):
        patterns[j] = np.uint32(rice.window(padded_payload, position) >> np.uint64(32))
        position += 32


def unpack_sparse(payload: np.ndarray, bits: int, k: int, d: int, position: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(index, values) of ``pack_sparse`` after a head that ends at ``position``.

    Raises CorruptMessage for anything else.
    """
    support_at = position + (rice.PARAMETER_BITS if k < d else 0)
    if bits < support_at + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; got {bits}")
    buffer, index = padded(payload), np.arange(k)
    if k < d:
        r = int(read_field(buffer, position, rice.PARAMETER_BITS))
        position = rice.read(buffer, support_at, bits, r, d, index)
        if position < 0:
            raise CorruptMessage(f"the support is not {k} increasing positions below {d}")
        if rice.best_parameter(np.diff(index, prepend=-1) - 1, d)[0] != r:
            raise CorruptMessage(f"Rice parameter {r} is not the one an encoder chooses for this support")
    if bits != position + VALUE_BITS * k:
        raise CorruptMessage(f"{k} values need {VALUE_BITS * k} bits; {bits - position} remain")
    patterns = np.empty(k, np.uint32)
    _read_values(buffer, position, patterns)
    values = patterns.view(np.float32)
    if not np.isfinite(values).all():
        raise CorruptMessage("a value is NaN or infinite")
    return index, values


def sparse_bits(k: int, d: int) -> int:
    """The most bits that k values among d coordinates take: the worst total gap d - k at the best parameter."""
    if k == d:
        return VALUE_BITS * d
    return VALUE_BITS * k + rice.PARAMETER_BITS + min(k * (1 + r) + ((d - k) >> r) for r in range(32))


@dataclass(frozen=True)
class TopK(Operator):
    """Keep the k entries of largest magnitude, exactly.

    fraction or k : k = max(1, ceil(fraction d)); exactly one of the two is given.
    x : float tensor, shape (d,), d >= k; ties go to the lower index.
    Strictly contractive with alpha = 1 - k/d, reached by equal magnitudes; at x exactly the share of energy
    left out (Aji & Heafield 2017; Stich et al. 2018).
    Bits: the support as Rice-coded gaps and k values in binary32.  Raises ValueError if k > d.
    """

    fraction: float | None = None
    k: int | None = None

    name = "topk"
    randomness = "none"
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        check_fraction(self.fraction, self.k)

    def claim(self, d: int) -> StrictlyContractive:
        """alpha = 1 - k/d."""
        return StrictlyContractive(1 - kept(self.fraction, self.k, d) / d)

    def claim_at(self, x: np.ndarray) -> StrictlyContractive:
        """The exact alpha of one non-zero vector: its tail's share of the energy."""
        squares = np.sort(np.asarray(x, np.float64) ** 2)
        return StrictlyContractive(float(squares[: -kept(self.fraction, self.k, x.size)].sum() / squares.sum()), True)

    def bits(self, d: int) -> Size:
        """No vector takes more than the worst support; shorter gaps take less."""
        worst = sparse_bits(kept(self.fraction, self.k, d), d)
        return Size(exact=worst if worst == VALUE_BITS * d else None, expected_upper=worst, worst_case=worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """One per cent, a third, one coordinate, all of them."""
        return cls(fraction=0.01), cls(fraction=0.3), cls(k=1), cls(fraction=1.0)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        index = largest_indices(x, kept(self.fraction, self.k, x.size))
        return pack_sparse(index, x[index], x.size)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        index, values = unpack_sparse(payload, bits, kept(self.fraction, self.k, d), d)
        out = np.zeros(d, np.float32)
        out[index] = values
        return out
