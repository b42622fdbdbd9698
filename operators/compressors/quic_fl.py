"""QUIC-FL: rotate, round without bias to levels chosen by shared random bits, send the few large entries exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Unbiased
from bounds.special.sphere_quantiser import cell_moments

from ..bits.bitstream import BitReader, copy_bits, pack, padded
from ..coding.fixed_width import pack_fixed
from ..coding.support_set import decode_support, encode_support, support_bits
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..quantisers.rotation import HAAR_LIMIT, Rotation, prescale, require_bits_per_coordinate, unscale
from ..quantisers.scale import energy, nearest, negligible, round_up_to_float32
from ..quantisers.shared_rounding import (
    MAX_BITS,
    largest_variance,
    mean_variance,
    round_with_shared,
    shared_grid,
    shared_numbers,
    unpack_shared,
)
from ..random import bits32
from ..rate import Rate

NORM_BYTES = 4
ROTATION, ROUNDING, SHARED = 0, 1, 2  # folds of the key
PIECE = 1 << 16  # coordinates, a multiple of 8
ROUNDS = 1  # the rounding is unbiased whatever the rotation
SLACK = 1e-4  # exceeds the rounding error of the rotation


@dataclass(frozen=True)
class QUICFL(Operator):
    """Send rotated coordinates beyond T exactly, and the others as b bits read with shared random bits.

    Parameters
    ----------
    x : float tensor, shape (d,)
    bits_per_coordinate : int, optional
        b, 1 <= b <= 8.

    Raises
    ------
    ValueError
        For other bits, or if the largest decoded vector exceeds binary32.

    Notes
    -----
    Let ``v = z sqrt(d)/|x|``, z the rotated x.  T = 3.097; a normal v_i exceeds it once in 512 times.  For each
    coordinate sender and receiver draw l bits h from the key, which contains the rank: every client has its own (l = 6,
    5, 4, 4 at 1 to 4 bits, then 3, 3, 2, 2).  The sender draws a coin of its own.  Code x means the level R[h, x],
    whose mean over h and the coin is v_i.  ``quantisers.shared_rounding`` explains the levels.

    Unbiased (each coordinate to 2^-32 of a step), whatever the rotation, and without an inverse scale.

    d <= 64 : the rotation is Haar-distributed, and omega, the mean variance of a coordinate of the sphere of
    radius sqrt(d), is exact for every x.

    d > 64 : one Hadamard rotation; omega is the largest mean variance of any v with ``|v|^2 = d`` (3.41, 0.640, 0.135,
    0.0328 at 1 to 4 bits).  On most vectors the error is that of normal v: 1.465, 0.2135, 0.04264, 0.00951.  The
    authors' code has 1.466, 0.2154, 0.04316, 0.00969 (Ben Basat et al. 2022).

    Bits: 32 for ``|x|``, b per coordinate, the number of exact entries, 32 for each, and their positions.
    """

    bits_per_coordinate: int = 2

    name = "quic_fl"
    sources = ("benbasat2022",)
    randomness = "shared"
    rate = Rate("bits_per_coordinate", few=1, many=MAX_BITS)
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        require_bits_per_coordinate(self.bits_per_coordinate, MAX_BITS)

    def claim(self, d: int) -> Unbiased:
        """Return the exact omega for d <= 64, the worst case over rotated vectors above."""
        if d <= HAAR_LIMIT:
            return Unbiased(mean_variance(self.bits_per_coordinate, d), tight=True)
        return Unbiased(largest_variance(self.bits_per_coordinate))

    @property
    def top(self) -> float:
        """Threshold T in binary32."""
        return float(shared_grid(self.bits_per_coordinate).top)

    def most(self, d: int) -> int:
        """Return the largest possible number of entries beyond T, given ``|v|^2 = d``.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return min(d, int(d * (1 + SLACK) / self.top**2))

    def ceiling(self, d: int) -> float:
        """Return a bound on ``|C(x) - x|^2/|x|^2`` of a single draw: a level and T in every coordinate.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return (float(np.abs(shared_grid(self.bits_per_coordinate).levels).max()) + self.top) ** 2

    def bits(self, d: int) -> Size:
        """Return the message length, or its upper bounds.

        For d <= 64 the mean number of exact entries is known, and log2 C(d, k) is concave in k (Jensen).
        """
        most = self.most(d)
        fixed = 8 * NORM_BYTES + self.bits_per_coordinate * d + most.bit_length()
        if most == 0:
            return Size.fixed(fixed)
        worst = fixed + 32 * most + math.floor(support_bits(d, most))
        if d > HAAR_LIMIT:
            return Size(None, worst, worst)
        mean = d * float(cell_moments(d, np.array([self.top, np.inf]))[0][0])
        support = (math.lgamma(d + 1) - math.lgamma(mean + 1) - math.lgamma(d - mean + 1)) / math.log(2)
        return Size(None, min(worst, fixed + 32 * mean + support + 2), worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(1), cls(4)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        d, b = x.size, self.bits_per_coordinate
        fixed, beyond = np.zeros(NORM_BYTES + (b * d + 7) // 8, np.uint8), np.zeros(d, np.bool_)
        exact, norm = np.empty(0, np.float32), 0.0
        if not negligible(x):
            y, factor = prescale(x)
            norm = round_up_to_float32(math.sqrt(energy(y)) / factor)
            largest = float(np.abs(shared_grid(b).levels).max())
            nearest((1 + largest) * norm)  # |decoded| is smaller, so it fits binary32
            v = Rotation(d, key.fold_in(ROTATION), ROUNDS).forward(y)
            unit = np.float32(math.sqrt(d) / (norm * factor))
            self._pack_rounded(v, unit, key, fixed[NORM_BYTES:], beyond)
            exact = v[beyond] * unit
        fixed[:NORM_BYTES] = np.array([norm], ">f4").view(np.uint8)
        count = pack(np.array([exact.size], np.uint64), np.array([self.most(d).bit_length()]))
        values = exact.astype(">f4").view(np.uint8), 32 * exact.size
        return joined((fixed, 8 * NORM_BYTES + b * d), count, values, encode_support(beyond, exact.size))

    def _pack_rounded(self, v: np.ndarray, unit: np.float32, key: Key, out: np.ndarray, beyond: np.ndarray) -> None:
        """Write the codes of v times unit run by run; mark entries beyond T in ``beyond`` and write code 0 for them."""
        b, grid = self.bits_per_coordinate, shared_grid(self.bits_per_coordinate)
        tables = grid.knots, grid.moving, grid.codes, grid.start, grid.per_unit, grid.first
        for start in range(0, v.size, PIECE):
            piece = v[start : start + PIECE]
            codes = np.empty(piece.size, np.uint32)
            words = bits32(key.fold_in(ROUNDING), piece.size, start=start)
            shared = shared_numbers(key.fold_in(SHARED), piece.size, start=start)
            round_with_shared(piece, unit, grid.top, *tables, shared, words, codes)
            outside = codes > 255
            beyond[start : start + PIECE] = outside
            codes[outside] = 0
            out[b * start // 8 : (b * (start + piece.size) + 7) // 8] = pack_fixed(codes, b)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        b, most = self.bits_per_coordinate, self.most(d)
        reader = BitReader(payload, bits)
        norm = reader.read_float()
        reader.position += b * d
        k = reader.read(most.bit_length())
        if k > most or reader.remaining < 32 * k:
            raise CorruptMessage(f"at most {most} exact entries fit; got {k} with {reader.remaining} bits left")
        values = np.empty(4 * k, np.uint8)
        copy_bits(padded(payload), reader.position, 32 * k, values)
        exact = values.view(">f4").astype(np.float32)
        beyond = np.flatnonzero(decode_support(payload, reader.position + 32 * k, bits, d, k))
        if not ((np.abs(exact) > self.top) & (np.abs(exact) <= (1 + SLACK) * math.sqrt(d))).all():
            raise CorruptMessage(f"exact entries must lie between {self.top} and sqrt(d)")
        levels, v = shared_grid(b).levels / np.float32(math.sqrt(d)), np.empty(d, np.float32)
        shared = shared_numbers(key.fold_in(SHARED), d)
        unpack_shared(payload[NORM_BYTES:], b, levels, shared, v)
        if norm == 0:
            beyond = np.arange(d)
        if (v[beyond] != levels[shared[beyond] % len(levels), 0]).any() or (norm == 0 and k):
            raise CorruptMessage("exact entries, and all entries of a zero vector, must have the first code")
        if norm == 0:
            return np.zeros(d, np.float32)
        v[beyond] = exact / np.float32(math.sqrt(d))
        return unscale(Rotation(d, key.fold_in(ROTATION), ROUNDS).inverse(v), norm)


def joined(*parts: tuple[np.ndarray, int]) -> tuple[np.ndarray, int]:
    """Concatenate several bit strings (payload, bits) into one."""
    total = sum(bits for _, bits in parts)
    out, position = np.zeros((total + 7) // 8 + 1, np.uint8), 0
    for payload, bits in parts:
        n, shift = (bits + 7) // 8, position & 7
        out[position >> 3 : (position >> 3) + n] |= payload[:n] >> shift
        if shift:
            out[(position >> 3) + 1 : (position >> 3) + 1 + n] |= payload[:n] << (8 - shift)
        position += bits
    return out[: (total + 7) // 8], total
