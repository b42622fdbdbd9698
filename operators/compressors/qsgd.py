"""QSGD: stochastic rounding to uniform levels below a norm, with Elias codes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch

from bounds.claims import Unbiased

from .. import rows
from ..bits.bitstream import BitWriter, float_bytes, read_floats
from ..coding.size_bounds import bucket_bits
from ..kernels import Kernels, elias, kernels_for
from ..kernels import levels as rounding
from ..kernels.elias import cpu as elias_cpu
from ..kernels.philox import TILE, Stream
from ..key import Key
from ..message import CorruptMessage, Messages
from ..operator import DeviceOperator, Size
from ..pieces import RUN, Runs
from ..quantisers.rounding_variance import extremal_vector, largest_variance
from ..quantisers.scale import TINY, round_up_to_float32, tops_and_sums, total
from ..random import stream, stream_of_rows
from ..rate import Rate
from ..streamed import Streamed

CODES = (*elias.CODES, "fixed")
_INFINITY = 0x7F800000  # binary32 pattern


@dataclass(frozen=True)
class QSGD(DeviceOperator, Streamed):
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

    def _norms(self, kernels: Kernels, x: torch.Tensor, step: int) -> torch.Tensor:
        """Return the norms of the buckets, float32."""
        return kernels.norms.largest(x, step) if self.norm == "max" else kernels.norms.euclidean(x, step)

    def _sent(self, scales: torch.Tensor, step: int, top: Callable[[], float]) -> torch.Tensor:
        """Return the transmitted norms: all 0 for a negligible vector."""
        limit = TINY if self.norm == "max" else TINY * math.sqrt(step)
        negligible = bool(scales.max() < limit) and top() < TINY
        return torch.zeros_like(scales) if negligible else scales

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d, step, kernels = x.numel(), self.bucket or x.numel(), kernels_for(x)
        scales, words = self._norms(kernels, x, step), stream(key, d, x.device)
        sent = self._sent(scales, step, lambda: float(x.abs().max()))
        if self.code == "fixed":
            room = 4 * sent.numel()
            payload = kernels.levels.encode(x, step, sent.double(), self.levels, words, room)
            payload[:room] = float_bytes(sent)
            return payload, self._length(d)
        levels = kernels.levels.signed(x, step, sent.double(), self.levels, words)
        return kernels.elias.encode(levels, sent, step, self.code, self.levels)

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        m, d = x.shape
        step = min(self.bucket or d, d)
        vector = torch.from_numpy(rows.filled(x, step).reshape(-1))
        kernels = kernels_for(vector)
        sent = self._norms(kernels, vector, step).numpy().reshape(m, -1)
        tops = kernels.norms.largest(vector, vector.numel() // m).numpy()
        limit = TINY if self.norm == "max" else TINY * math.sqrt(self.bucket or d)
        sent[(sent.max(axis=1) < limit) & (tops < TINY)] = 0
        words = stream_of_rows(keys, d).words
        assert words is not None
        drawn = torch.from_numpy(rows.filled(words.numpy().reshape(m, d), step).reshape(-1))
        scales = torch.from_numpy(sent.reshape(-1).astype(np.float64))
        levels = kernels.levels.signed(vector, step, scales, self.levels, Stream(0, 0, drawn)).numpy()
        levels = levels.reshape(m, -1)[:, :d]
        if self.code == "fixed":
            return rows.joined(
                self._length(d), rows.floats(sent), rows.packed(levels + np.int32(self.levels), self.width)
            )
        return elias_cpu.encode_rows(np.ascontiguousarray(levels), sent, step, self.code, self.levels)

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        step = min(self.bucket or d, d)
        if self.code != "fixed":
            return elias_cpu.decode_rows(messages, d, step, self.code, self.levels, self.norm == "max")
        payload, buckets = messages.rows(self._length(d)), -(-d // step)
        sent = rows.read_floats(payload[:, : 4 * buckets])
        levels = rows.filled(rows.unpacked(payload[:, 4 * buckets :], d, self.width) - self.levels, step)
        by_bucket = levels.reshape(len(messages), buckets, step)
        tops = np.abs(by_bucket).max(axis=2)
        if not np.isfinite(sent).all() or np.signbit(sent).any() or (tops > np.where(sent > 0, self.levels, 0)).any():
            raise CorruptMessage("some norm or some level is out of range")
        if self.norm == "max" and ((tops == self.levels) != (sent > 0)).any():
            raise CorruptMessage("the largest coordinate of a bucket must reach its norm")
        spacings = sent.astype(np.float64) / self.levels
        return (spacings[:, :, None] * by_bucket).astype(np.float32).reshape(len(messages), -1)[:, :d]

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        if self.code == "fixed":
            return self._decode_fixed(payload, bits, d)
        return elias_cpu.decode(payload, bits, d, self.bucket or d, self.code, self.levels, self.norm == "max")

    def _decode_fixed(self, payload: torch.Tensor, bits: int, d: int) -> torch.Tensor:
        self._check_bits(bits, d)
        sent = self._read_norms(payload[: self._head_bytes(d)])
        out, reached = self._scaled(payload[4 * sent.numel() :], d, self.bucket or d, sent)
        self._check([reached.cpu()], sent.cpu())
        return out

    def _head_bytes(self, d: int) -> int:
        return 4 * -(-d // (self.bucket or d))

    def _read_norms(self, head: torch.Tensor) -> torch.Tensor:
        sent = read_floats(head)
        patterns = sent.view(torch.int32)
        if bool(((patterns < 0) | (patterns >= _INFINITY)).any()):
            raise CorruptMessage("a norm must be finite and not negative")
        return sent

    def _scaled(self, fields: torch.Tensor, n: int, step: int, sent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Decode n coordinates; return them and whether each bucket reaches its norm."""
        spacings = sent.double() / self.levels
        out, reached, valid = kernels_for(fields).levels.decode(fields, n, step, spacings, self.levels)
        if not valid:
            raise CorruptMessage(f"levels must be at most {self.levels}, and 0 in a bucket of norm 0")
        return out, reached

    @property
    def width(self) -> int:  # type: ignore[override]
        """Bits per level with the code "fixed"."""
        return rounding.width_of(self.levels)

    def _unit(self, d: int) -> int:
        return math.lcm(TILE, min(d, self.bucket or 1))

    def _of_run(self, norms: torch.Tensor, start: int, n: int) -> tuple[torch.Tensor, int]:
        """Return (the norms of the buckets in a run, the coordinates per bucket)."""
        step = self.bucket
        return (norms, n) if step is None else (norms[start // step : -(-(start + n) // step)], step)

    def _survey(self, x: np.ndarray) -> np.ndarray:
        """Return maximum and sum per tile if there is one bucket, else maximum and norm per bucket."""
        if self.bucket is None:
            return tops_and_sums(x, squares=True)
        vector = torch.from_numpy(x)
        kernels = kernels_for(vector)
        tops, norms = kernels.norms.largest(vector, self.bucket), self._norms(kernels, vector, self.bucket)
        return torch.stack([tops, norms], dim=1).double().numpy()

    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, torch.Tensor]:
        top = float(survey[:, 0].max())
        if self.bucket is not None:
            norms = survey[:, 1]
        else:
            norms = np.array([top if self.norm == "max" else round_up_to_float32(math.sqrt(total(survey[:, 1])))])
        sent = self._sent(torch.from_numpy(norms.astype(np.float32)), self.bucket or d, lambda: top)
        return sent.numpy().astype(">f4").view(np.uint8), sent

    def _fields(self, x: np.ndarray, start: int, head: torch.Tensor, key: Key) -> np.ndarray:
        vector, (norms, step) = torch.from_numpy(x), self._of_run(head, start, x.size)
        words = stream(key, x.size, start=start)
        return kernels_for(vector).levels.encode(vector, step, norms.double(), self.levels, words).numpy()

    def _read_head(self, head: np.ndarray) -> torch.Tensor:
        return self._read_norms(torch.from_numpy(head))

    def _values(self, fields: np.ndarray, start: int, head: torch.Tensor, out: np.ndarray) -> torch.Tensor:
        """Decode one run; return whether each bucket reaches its norm."""
        norms, step = self._of_run(head, start, out.size)
        values, reached = self._scaled(torch.from_numpy(fields), out.size, step, norms)
        out[:] = values.numpy()
        return reached

    def _check(self, answers: list[torch.Tensor], head: torch.Tensor) -> None:
        reached = torch.cat(answers)
        if self.norm == "max" and not torch.equal(reached if self.bucket else reached.any(0, keepdim=True), head > 0):
            raise CorruptMessage("the largest coordinate of a bucket must reach its norm")

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

    def _norms_of(self, runs: Runs, d: int) -> torch.Tensor:
        """Return the transmitted norms of the buckets for Elias codes: float32."""
        step, norms, tiles, top = min(self.bucket or d, d), [], [], 0.0
        for part, x in runs():
            vector, rows = torch.from_numpy(x), tops_and_sums(x, squares=True)
            top = max(top, float(rows[:, 0].max()))
            if step <= RUN:
                norms.append(self._norms(kernels_for(vector), vector, step))
                continue
            tiles.append(rows)
            if part.stop % step == 0 or part.stop == d:
                rows, tiles = np.concatenate(tiles), []
                norm = rows[:, 0].max() if self.norm == "max" else round_up_to_float32(math.sqrt(total(rows[:, 1])))
                norms.append(torch.tensor([norm], dtype=torch.float32))
        return self._sent(torch.cat(norms), self.bucket or d, lambda: top)

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        if self.code == "fixed":
            return super()._encode_runs(runs, d, key)
        step, sent, writer, since = min(self.bucket or d, d), self._norms_of(runs, d), BitWriter(), 0
        for part, x in runs():
            vector, norms, width = (
                torch.from_numpy(x),
                sent[part.start // step : -(-part.stop // step)],
                min(step, x.size),
            )
            words = stream(key, x.size, start=part.start, d=d)
            levels = kernels_for(vector).levels.signed(vector, width, norms.double(), self.levels, words).numpy()
            begins, ends = part.start % step == 0, part.stop % step == 0 or part.stop == d
            since = 0 if begins else since
            string = elias_cpu.encode_run(
                levels, norms.numpy(), width, self.code, self.levels, begins=begins, since=since, ends=ends
            )
            writer.append(*string)
            places = np.flatnonzero(levels)
            since = int(x.size - 1 - places[-1]) if places.size else since + x.size
        return writer.finish()

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        if self.code == "fixed":
            yield from super()._decode_runs(payload, bits, d, key)
            return
        reader = elias_cpu.Reader(payload, bits, self.code, self.levels, self.norm == "max")
        step = min(self.bucket or d, d)
        for part in self._runs(d):
            ends = min((part.start // step + 1) * step, d)
            yield reader.read(part, min(step, part.stop - part.start), d, max(0, ends - part.stop))
        reader.finish()
