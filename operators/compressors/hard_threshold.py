"""Keep what reaches an absolute threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import NoClaim

from ..bitstream import BitReader, pack
from ..key import Key
from ..message import CorruptMessage
from ..operator import Operator, Size
from ..scale import TINY
from ..selection import largest_indices
from .top_k import check_fraction, kept, pack_sparse, sparse_bits, unpack_sparse


@dataclass(frozen=True)
class HardThreshold(Operator):
    """Keep the entries with |x_i| >= threshold, the largest ones if they are more than the message may hold.

    threshold : > 0, in the units of x.  Meant for accumulated gradients (wrap it in ErrorFeedback), where
        everything reaches it in the end (Strom 2015; Sahu et al. 2021).
    most : at most max(1, ceil(most d)) entries are sent, which bounds the message.
    x : float tensor, shape (d,).
    No relative constant exists: a vector below the threshold is lost whole.  While at most the allowed number
    reach the threshold, the squared error is below d threshold^2.
    Bits: the count, then the support as Rice-coded gaps and the values in binary32; nothing but the count if
    nothing is sent.
    """

    threshold: float = 0.01
    most: float = 1.0

    name = "hard_threshold"
    randomness = "none"
    equivariant = frozenset({"permutation", "sign"})

    def __post_init__(self) -> None:
        if not TINY <= self.threshold <= 1 / TINY:
            raise ValueError(f"threshold must satisfy 2^-126 <= threshold <= 2^126; got {self.threshold}")
        check_fraction(self.most, None)

    def claim(self, d: int) -> NoClaim:
        """None: the error is bounded absolutely."""
        return NoClaim("the squared error is bounded by d threshold^2, not by a share of |x|^2")

    def bits(self, d: int) -> Size:
        """Length of the fullest message: with k < d entries the support costs too."""
        most = kept(self.most, None, d)
        worst = most.bit_length() + max(sparse_bits(k, d) for k in {most, max(1, most - 1)})
        return Size(None, worst, worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Unbounded and bounded."""
        return cls(threshold=0.01), cls(threshold=1.0, most=0.1)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        most = kept(self.most, None, x.size)
        index = np.flatnonzero(np.abs(x) >= self.threshold)
        if index.size > most:
            index = largest_indices(x, most)
        head = pack(np.array([index.size], np.uint64), np.array([most.bit_length()]))
        if index.size == 0:
            return head
        return pack_sparse(index, x[index], x.size, int(index.size), most.bit_length())

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        most = kept(self.most, None, d)
        reader, out = BitReader(payload, bits), np.zeros(d, np.float32)
        k = reader.read(most.bit_length())
        if k > most:
            raise CorruptMessage(f"{k} entries are announced; at most {most} are sent")
        if k == 0:
            reader.finish()
            return out
        index, values = unpack_sparse(payload, bits, k, d, reader.position)
        if np.abs(values).min() < self.threshold:
            raise CorruptMessage(f"a value is below the threshold {self.threshold}")
        out[index] = values
        return out
