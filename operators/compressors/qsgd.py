"""QSGD: stochastic rounding to uniform levels below a norm, with Elias codes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch

from bounds.claims import Unbiased

from ..bits.bitstream import BitWriter
from ..coding.size_bounds import bucket_bits
from ..kernels import elias, kernels_for
from ..kernels.elias import cpu as elias_cpu
from ..key import Key
from ..message import Messages
from ..operator import Size
from ..pieces import RUN, Runs
from ..quantisers.rounding_variance import extremal_vector, largest_variance
from ..quantisers.scale import TINY
from ..rate import Rate
from ..streamed import Bucketed

CODES = (*elias.CODES, "fixed")


@dataclass(frozen=True)
class QSGD(Bucketed):
    """Round ``s |x_i| / N`` stochastically to an integer level and send N, signs and levels.

    Parameters
    ----------
    x : float tensor, shape (d,)
    levels : int, optional
        s, 1 .. 32768.
    norm : {"l2", "max"}, optional
        N is the Euclidean norm ("l2", rounded up to binary32) or the largest magnitude ("max").
    bucket : int or None, optional
        Treat each run of this many coordinates as a vector of its own; None for one bucket.
    code : {"dense", "sparse", "flag", "fixed"}, optional
        Elias omega code per coordinate, omega(level + 1) and a sign if it is not 0 ("dense"); a non-zero flag, sign and
        omega(level) ("flag"); or per non-zero omega(gap), sign, omega(level), ended by the gap to the end ("sparse").
        A bucket of norm 0 sends its norm only.  Or all norms, then the signed level + s of every coordinate in a field
        of ceil(log2(2 s + 1)) bits ("fixed"): the fastest, and shorter than Elias codes where levels are large; on a
        GPU neither direction leaves the device, while Elias codes are read by the CPU.

    Raises
    ------
    ValueError
        For a parameter out of range or a norm beyond binary32.

    Notes
    -----
    Full tiles of 4096 coordinates draw their words in the tile order of ``kernels.philox``.  Unbiased (each coordinate
    to 2^-32 N/s).  With d the bucket's length, for the Euclidean norm omega = sqrt(d)/s - 1 if s <= sqrt(d)/2, else
    just below d/(4 s^2) (``codes.rounding_variance``); for the largest magnitude omega = (sqrt(1 + (d-1)/s^2) - 1)/2, a
    concave majorant of the rounding variance.  All are reached (algorithm: Alistarh et al. 2017).
    """

    levels: int = 16
    norm: Literal["l2", "max"] = "l2"
    bucket: int | None = None
    code: Literal["dense", "sparse", "flag", "fixed"] = "sparse"

    name = "qsgd"
    head_name = "norm"
    sources = ("alistarh2017",)
    randomness = "private"
    rate = Rate("levels", few=1, many=elias.MOST_LEVELS)
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        if not 1 <= self.levels <= elias.MOST_LEVELS:
            raise ValueError(f"levels must satisfy 1 <= levels <= {elias.MOST_LEVELS}; got levels = {self.levels}")
        if self.norm not in ("l2", "max"):
            raise ValueError(f'norm must be "l2" or "max"; got {self.norm!r}')
        if self.bucket is not None and self.bucket < 1:
            raise ValueError(f"bucket must be at least 1, or None; got bucket = {self.bucket}")
        if self.code not in CODES:
            raise ValueError(f"code must be one of {', '.join(CODES)}; got {self.code!r}")

    def claim(self, d: int) -> Unbiased:
        """Return the sharp omega of the longest bucket."""
        s, length = self.levels, min(d, self.bucket or d)
        if self.norm == "max":
            return Unbiased((math.sqrt(1 + (length - 1) / s**2) - 1) / 2)
        return Unbiased(largest_variance(s, length))

    def witness(self, d: int) -> np.ndarray:
        """Return a vector that reaches omega; only its first bucket is non-zero.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        s, length = self.levels, min(d, self.bucket or d)
        x = np.zeros(d)
        x[:length] = extremal_vector(s, length) if self.norm == "l2" else 1 / (s + math.sqrt(s * s + length - 1))
        x[0] = x[0] if self.norm == "l2" else 1.0
        return x

    def claim_at(self, x: np.ndarray) -> Unbiased:
        """Return the exact relative variance at one non-zero vector, without the rounding of the norm.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        wide = np.ldexp(wide, -np.frexp(np.abs(wide).max())[1])  # so that no square underflows
        variance = 0.0
        for start, stop in self._buckets(wide.size):
            part = np.abs(wide[start:stop])
            scale = float(np.linalg.norm(part) if self.norm == "l2" else part.max())
            if scale:
                rest = np.mod(part * self.levels / scale, 1)
                variance += float((rest * (1 - rest)).sum()) * (scale / self.levels) ** 2
        return Unbiased(variance / float(wide @ wide), tight=True)

    def bits(self, d: int) -> Size:
        """Return the fixed length, or bounds on the mean and the worst length."""
        if self.code == "fixed":
            return super().bits(d)
        length = min(d, self.bucket or d)
        whole, rest = divmod(d, length)
        mean, worst = bucket_bits(self.levels, self.norm, self.code, length)
        if rest:
            last = bucket_bits(self.levels, self.norm, self.code, rest)
            return Size(None, whole * mean + last[0], whole * worst + last[1])
        return Size(None, whole * mean, whole * worst)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(levels=16),
            cls(levels=1),
            cls(levels=4, norm="max", bucket=64, code="dense"),
            cls(levels=127, bucket=512, code="flag"),
            cls(levels=127, norm="max", bucket=128, code="fixed"),
        )

    def _buckets(self, d: int) -> Iterator[tuple[int, int]]:
        step = self.bucket or d
        return ((start, min(start + step, d)) for start in range(0, d, step))

    @property
    def most(self) -> int:  # type: ignore[override]
        """Level of the norm."""
        return self.levels

    @property
    def size(self) -> int | None:  # type: ignore[override]
        """Coordinates of a bucket, None for one bucket."""
        return self.bucket

    @property
    def tight(self) -> bool:  # type: ignore[override]
        """Whether some coordinate of a bucket reaches its norm."""
        return self.norm == "max"

    def _limit(self, d: int) -> float:
        return TINY if self.norm == "max" else TINY * math.sqrt(self.bucket or d)

    def _has_tiles(self, d: int) -> bool:
        return super()._has_tiles(d) or (self.code != "fixed" and (self.bucket or d) > RUN)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        if self.code == "fixed":
            return super()._encode_tensor(x, key)
        d = x.numel()
        norms = self._numbers_of_rows(x, d)
        levels = self._signed(x, 0, norms, [key], d)
        return kernels_for(x).elias.encode(levels, norms, self.bucket or d, self.code, self.levels)

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        if self.code == "fixed":
            return super()._decode_tensor(payload, bits, d, key)
        return elias_cpu.decode(payload, bits, d, self.bucket or d, self.code, self.levels, self.tight)

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages | None:
        if self.code == "fixed":
            return super()._encode_rows(x, keys)
        (m, d), matrix = x.shape, torch.from_numpy(x)
        norms = self._numbers_of_rows(matrix, d)
        levels = np.ascontiguousarray(self._signed(matrix, 0, norms, keys, d).numpy())
        step = min(self.bucket or d, d)
        return elias_cpu.encode_rows(levels, norms.view(m, -1).numpy(), step, self.code, self.levels)

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray | None:
        if self.code == "fixed":
            return super()._decode_rows(messages, d, keys)
        return elias_cpu.decode_rows(messages, d, min(self.bucket or d, d), self.code, self.levels, self.tight)

    def _runs(self, d: int) -> Iterator[slice]:
        """Yield whole buckets or parts of one; with the code "fixed" also whole tiles and whole bytes."""
        if self.code == "fixed":
            yield from super()._runs(d)
            return
        step = min(self.bucket or d, d)
        together = step * max(1, RUN // step)
        for begin in range(0, d, together):
            stop = min(begin + together, d)
            yield from (slice(start, min(start + RUN, stop)) for start in range(begin, stop, RUN))

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        if self.code == "fixed":
            return super()._encode_runs(runs, d, key)
        step, norms, writer, since = min(self.bucket or d, d), self._numbers_of(runs(), d), BitWriter(), 0
        for part, x in runs():
            start, stop, scales = part.start, part.stop, self._of_run(norms, part.start, x.size)
            levels = self._signed(torch.from_numpy(x), start, scales, [key], d).numpy()
            begins, ends = start % step == 0, stop % step == 0 or stop == d
            since = 0 if begins else since
            string = elias_cpu.encode_run(
                levels, scales.numpy(), min(step, x.size), self.code, self.levels, begins=begins, since=since, ends=ends
            )
            writer.append(*string)
            places = np.flatnonzero(levels)
            since = int(x.size - 1 - places[-1]) if places.size else since + x.size
        return writer.finish()

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        if self.code == "fixed":
            yield from super()._decode_runs(payload, bits, d, key)
            return
        reader = elias_cpu.Reader(payload, bits, self.code, self.levels, self.tight)
        step = min(self.bucket or d, d)
        for part in self._runs(d):
            ends = min((part.start // step + 1) * step, d)
            yield reader.read(part, min(step, part.stop - part.start), d, max(0, ends - part.stop))
        reader.finish()
