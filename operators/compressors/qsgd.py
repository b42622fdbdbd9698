"""Levels in buckets, each below a scale; QSGD rounds to them stochastically and has Elias codes too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch

from bounds.claims import Unbiased

from .. import rows
from ..bits.bitstream import BitWriter, float_bytes, read_floats
from ..coding.fixed_width import pack_fixed
from ..coding.size_bounds import bucket_bits
from ..kernels import Kernels, elias, kernels_for
from ..kernels.elias import cpu as elias_cpu
from ..kernels.levels import width_of
from ..kernels.philox import TILE, Stream, to_nearest
from ..key import Key
from ..message import CorruptMessage, Messages
from ..operator import Size
from ..pieces import RUN, Runs
from ..quantisers.rounding_variance import extremal_vector, largest_variance
from ..quantisers.scale import TINY, round_up_to_float32, tops_and_sums, total
from ..random import stream, stream_of_rows
from ..rate import Rate
from ..streamed import Format

CODES = (*elias.CODES, "fixed")
_INFINITY = 0x7F800000  # binary32 pattern


def _flat(x: torch.Tensor, step: int) -> torch.Tensor:
    """Return a vector, or all rows of a matrix in one, each filled with zeros up to a multiple of ``step``."""
    return x if x.dim() == 1 else torch.from_numpy(rows.filled(x.numpy(), step)).view(-1)


class Bucketed(Format):
    """A ``Format`` of levels -most .. most in buckets, whose scales are the head; see ``kernels.levels``.

    Attributes
    ----------
    most : int
        The level of a coordinate as large as its scale.
    size : int or None
        Coordinates of a bucket; None for one bucket.
    tight : bool
        Whether the scale is the largest magnitude, which some coordinate reaches, and not the Euclidean norm.
    nearest : bool
        Whether to round to nearest, not stochastically.
    """

    most: int
    size: int | None
    tight: bool = True
    nearest: bool = False
    head_name = "scale"

    @property
    def width(self) -> int:  # type: ignore[override]
        """Bits of a level in a field."""
        return width_of(self.most)

    def _limit(self, d: int) -> float:
        """Return below which scale a bucket without larger coordinates than ``TINY`` is negligible; 0: none is."""
        return 0.0

    def _count(self, d: int) -> int:
        return -(-d // (self.size or d))

    def _unit(self, d: int) -> int:
        return math.lcm(TILE, min(d, self.size or 1))

    def _scales(self, kernels: Kernels, vector: torch.Tensor, step: int) -> torch.Tensor:
        """Return the scale of each ``step`` coordinates: float32."""
        return kernels.norms.largest(vector, step) if self.tight else kernels.norms.euclidean(vector, step)

    def _sent(self, scales: torch.Tensor, tops: torch.Tensor, d: int) -> torch.Tensor:
        """Return the scales as sent: 0 in vectors whose scales and largest magnitudes, ``tops``, are negligible."""
        vectors = scales.view(-1, self._count(d))
        negligible = (vectors.amax(1) < self._limit(d)) & (tops < TINY)
        return torch.where(negligible[:, None], 0.0, vectors).view(-1)

    def _numbers_of_rows(self, x: torch.Tensor, d: int, kernels: Kernels | None = None) -> torch.Tensor:
        step, limit = min(self.size or d, d), self._limit(d)
        scales = self._scales(kernels or kernels_for(x), _flat(x, step), step)
        if limit and scales.min() < limit:
            return self._sent(scales, x.view(-1, d).abs().amax(1), d)
        return scales

    def _has_tiles(self, d: int) -> bool:
        """Return whether runs may end within buckets."""
        return self.size is None

    def _numbers_of(self, parts: Iterable[tuple[slice, np.ndarray]], d: int) -> torch.Tensor:
        scales, tops, size = [], [], min(self.size or d, d)
        if self._has_tiles(d):
            tiles, n = np.concatenate([tops_and_sums(x, squares=True) for _, x in parts]), -(-size // TILE)
            buckets = np.split(tiles, range(n, len(tiles), n))
            tops = [torch.tensor([bucket[:, 0].max()]).float() for bucket in buckets]
            scales = (
                tops
                if self.tight
                else [torch.tensor([round_up_to_float32(math.sqrt(total(bucket[:, 1])))]) for bucket in buckets]
            )
        else:
            for _, x in parts:
                vector = torch.from_numpy(x)
                scales.append(self._scales(kernels_for(vector), vector, size))
                tops.append(vector.abs().max().view(1))
        return self._sent(torch.cat(scales), torch.cat(tops).max(), d)

    def _head(self, numbers: torch.Tensor) -> torch.Tensor:
        return float_bytes(numbers)

    def _read_head(self, head: np.ndarray | torch.Tensor) -> torch.Tensor:
        numbers = read_floats(torch.as_tensor(head))
        patterns = numbers.view(torch.int32)
        if bool(((patterns < 0) | (patterns >= _INFINITY)).any()):
            raise CorruptMessage(f"a {self.head_name} must be finite and not negative")
        return numbers

    def _of_run(self, numbers: torch.Tensor, start: int, n: int) -> torch.Tensor:
        """Return the scales of the buckets of a run."""
        if self.size is None or (start == 0 and n > self.size * (numbers.numel() - 1)):
            return numbers
        return numbers[start // self.size : -(-(start + n) // self.size)]

    def _words(self, x: torch.Tensor, step: int, start: int, keys: Sequence[Key], d: int | None = None) -> Stream:
        """Return the words of a run, or of all rows."""
        if self.nearest:
            return to_nearest(x.device)
        if x.dim() == 1:
            return stream(keys[0], x.numel(), x.device, start=start, d=d)
        words = stream_of_rows(keys, x.shape[1]).words
        assert words is not None
        return Stream(0, 0, _flat(words.view(x.shape), step))

    def _signed(
        self, kernels: Kernels, x: torch.Tensor, start: int, scales: torch.Tensor, keys: Sequence[Key], d: int
    ) -> torch.Tensor:
        """Return the levels of a run of a vector of d coordinates, or of all rows: int32."""
        n = x.shape[-1]
        step = min(self.size or n, n)
        words = self._words(x, step, start, keys, d)
        levels = kernels.levels.signed(_flat(x, step), step, scales.double(), self.most, words)
        return levels if x.dim() == 1 else levels.view(len(x), -1)[:, :n]

    def _packed(
        self, x: torch.Tensor, start: int, scales: torch.Tensor, keys: Sequence[Key], room: int
    ) -> torch.Tensor:
        """Return the fields of a run, or of all rows, behind some bytes, by a kernel that rounds and packs."""
        step = min(self.size or x.shape[-1], x.shape[-1])
        words = self._words(x, step, start, keys)
        return kernels_for(x).levels.encode(x.view(-1), step, scales.double(), self.most, words, room)

    def _is_one(self, n: int) -> bool:
        """Return whether fields of rows of n coordinates are those of one vector with buckets of the same length."""
        return n * self.width % 8 == 0 and n % min(self.size or n, n) == 0

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d, room = x.numel(), self._head_bytes(x.numel())
        numbers = self._numbers_of_rows(x, d)
        payload = self._packed(x, 0, numbers, [key], room)
        payload[:room] = self._head(numbers)
        return payload, self._length(d)

    def _pack(self, x: torch.Tensor, start: int, numbers: torch.Tensor, keys: Sequence[Key]) -> torch.Tensor:
        if x.dim() == 1:
            return self._packed(x, start, self._of_run(numbers, start, x.numel()), keys, 0)
        if self._is_one(x.shape[1]):
            return self._packed(x, 0, numbers, keys, 0).view(len(x), -1)
        levels = self._signed(kernels_for(x), x, start, numbers, keys, x.shape[1]) + self.most
        return torch.from_numpy(rows.packed(levels.numpy().view(np.uint32), self.width))

    def _unpack(
        self, fields: torch.Tensor, n: int, start: int, numbers: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        step, filled, packed, scales = min(self.size or n, n), n, fields.view(-1), numbers
        if fields.dim() == 1:
            scales = self._of_run(numbers, start, n)
        elif self._is_one(n):
            filled = n * len(fields)
        else:
            levels = rows.filled(rows.unpacked(fields.numpy(), n, self.width), step, self.most)
            packed, filled = torch.from_numpy(pack_fixed(levels.reshape(-1), self.width)), levels.size
        spacings = scales.double() / self.most
        out, reached, valid = kernels_for(fields).levels.decode(packed, filled, step, spacings, self.most)
        if not valid:
            raise CorruptMessage(f"levels must be at most {self.most}, and 0 in a bucket of {self.head_name} 0")
        return out if fields.dim() == 1 else out.view(len(fields), -1)[:, :n], reached

    def _check(self, answers: list[torch.Tensor], numbers: torch.Tensor) -> None:
        if not self.tight:
            return
        reached = torch.cat(answers) if len(answers) > 1 else answers[0]
        if len(reached) > len(numbers):
            reached = reached.any(0, keepdim=True)
        if not torch.equal(reached, numbers > 0):
            raise CorruptMessage(f"the largest coordinate of a bucket must reach its {self.head_name}")


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
        With these three a bucket of norm 0 sends its norm only.  Or all norms, then the signed level + s of every
        coordinate in a field of ceil(log2(2 s + 1)) bits ("fixed"): the fastest, and shorter than Elias codes where
        levels are large; on a GPU neither direction leaves the device, while Elias codes are read by the CPU.

    Raises
    ------
    ValueError
        For a parameter out of range or a norm beyond binary32.

    Notes
    -----
    Full tiles of 4096 coordinates draw their words in the tile order of ``kernels.philox``.  Unbiased (each coordinate
    to 2^-32 N/s).  With d the bucket's length, for the Euclidean norm omega = sqrt(d)/s - 1 if s <= sqrt(d)/2, else
    just below d/(4 s^2) (``quantisers.rounding_variance``); for the largest magnitude omega = (sqrt(1 + (d-1)/s^2) -
    1)/2, a concave majorant of the rounding variance.  All are reached (algorithm: Alistarh et al. 2017).
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
        d, kernels = x.numel(), kernels_for(x)
        norms = self._numbers_of_rows(x, d, kernels)
        levels = self._signed(kernels, x, 0, norms, [key], d)
        return kernels.elias.encode(levels, norms, self.bucket or d, self.code, self.levels)

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        if self.code == "fixed":
            return super()._decode_tensor(payload, bits, d, key)
        return elias_cpu.decode(payload, bits, d, self.bucket or d, self.code, self.levels, self.tight)

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages | None:
        if self.code == "fixed":
            return super()._encode_rows(x, keys)
        (m, d), matrix = x.shape, torch.from_numpy(x)
        kernels = kernels_for(matrix)
        norms = self._numbers_of_rows(matrix, d, kernels)
        levels = np.ascontiguousarray(self._signed(kernels, matrix, 0, norms, keys, d).numpy())
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
            run = torch.from_numpy(x)
            levels = self._signed(kernels_for(run), run, start, scales, [key], d).numpy()
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
