"""Keep the coordinates that reach an absolute threshold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import NoClaim

from ..bits.bitstream import BitReader, pack
from ..coding import sparse_runs
from ..kernels import kernels_for, rice
from ..kernels.backend import zeros
from ..kernels.rice.cpu import unpack
from ..key import Key
from ..message import CorruptMessage
from ..operator import DeviceOperator, Size
from ..pieces import InRuns, Runs
from ..quantisers.scale import TINY
from .top_k import check_fraction, kept


@dataclass(frozen=True)
class HardThreshold(DeviceOperator, InRuns):
    """Keep the entries with ``|x_i|`` >= threshold, or the largest ones if there are too many.

    Parameters
    ----------
    x : float tensor, shape (d,)
    threshold : float, optional
        > 0, in the units of x.  Meant for accumulated gradients: with ErrorFeedback every coordinate eventually
        reaches it (Strom 2015; Sahu et al. 2021).
    most : float, optional
        At most max(1, ceil(most d)) entries are sent, which bounds the message.

    Notes
    -----
    No relative constant exists: a vector below the threshold is lost entirely.  While at most the allowed number
    reach the threshold, the squared error is below d threshold^2.
    Bits: the count, then the support as Rice-coded gaps and the values in binary32; nothing but the count if
    nothing is sent.
    """

    threshold: float = 0.01
    most: float = 1.0

    name = "hard_threshold"
    sources = ("strom2015", "sahu2021")
    randomness = "none"
    projects = True
    equivariant = frozenset({"permutation", "sign"})

    def __post_init__(self) -> None:
        if not TINY <= self.threshold <= 1 / TINY:
            raise ValueError(f"threshold must satisfy 2^-126 <= threshold <= 2^126; got {self.threshold}")
        check_fraction(self.most, None)

    def claim(self, d: int) -> NoClaim:
        """Return ``NoClaim``: the error is bounded absolutely, not relative to x."""
        return NoClaim("the squared error is bounded by d threshold^2, not by a share of |x|^2")

    def bits(self, d: int) -> Size:
        """Return the length of the longest message."""
        most = kept(self.most, None, d)
        worst = most.bit_length() + max(rice.worst_bits(k, d) for k in {most, max(1, most - 1)})
        return Size(None, worst, worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(threshold=0.01), cls(threshold=1.0, most=0.1)

    @property
    def _limit(self) -> float:
        """Threshold in binary32, as compared."""
        return float(np.float32(self.threshold))

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d, most = x.numel(), kept(self.most, None, x.numel())
        index = torch.nonzero(x.abs() >= self._limit).reshape(-1)
        if index.numel() > most:
            index = kernels_for(x).selection.largest(x, most)
        k, width = index.numel(), most.bit_length()
        if k == 0:
            payload, bits = pack(np.array([0], np.uint64), np.array([width]))
            return torch.from_numpy(payload).to(x.device), bits
        return kernels_for(x).rice.pack(index, x[index], d, k, width)

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        most = kept(self.most, None, d)
        k, out = self._read_count(payload.cpu().numpy(), bits, most), zeros(d, payload.device)
        if k == 0:
            return out
        index, values = unpack(payload, bits, k, d, most.bit_length())
        if bool(values.abs().min() < self._limit):
            raise CorruptMessage(f"values must reach the threshold {self.threshold}")
        out[index] = values
        return out

    def _read_count(self, payload: np.ndarray, bits: int, most: int) -> int:
        reader = BitReader(payload, bits)
        k = reader.read(most.bit_length())
        if k > most:
            raise CorruptMessage(f"at most {most} entries can be sent; got {k}")
        if k == 0:
            reader.finish()
        return k

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        most, pattern = kept(self.most, None, d), int(np.float32(self.threshold).view(np.uint32))
        choice = sparse_runs.Kept(pattern, d)
        if most < d and sum(index.size for index, _ in choice.of(runs())) > most:
            choice = sparse_runs.largest(runs, most)
        return sparse_runs.write(runs, choice, d, most.bit_length())

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        most = kept(self.most, None, d)
        if k := self._read_count(payload, bits, most):
            yield from sparse_runs.read(payload, bits, most.bit_length(), k, d, self._runs(d), self._limit)
        else:
            yield from (np.zeros(part.stop - part.start, np.float32) for part in self._runs(d))
