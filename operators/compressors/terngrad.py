"""TernGrad: each coordinate becomes minus, zero or plus the largest magnitude."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import torch

from bounds.claims import NoClaim, Unbiased

from .. import rows
from ..bits.bitstream import float_bytes
from ..kernels import kernels_for, trits
from ..kernels.philox import TILE
from ..key import Key
from ..message import CorruptMessage, Messages
from ..operator import DeviceOperator
from ..quantisers.scale import TINY, tops_and_sums, total
from ..random import stream, stream_of_rows
from ..streamed import Streamed

SCALE_BYTES = 4


@dataclass(frozen=True)
class TernGrad(DeviceOperator, Streamed):
    """Send ``m = max|x|`` and, per coordinate, sign(x_i) with probability ``|x_i|/m``, else 0; decode m times that.

    Parameters
    ----------
    x : float tensor, shape (d,)
    clip : float or None, optional
        None, or c > 0: clip x to c times its root mean square first (the paper uses 2.5 standard deviations of
        gradients, whose mean is near 0).  Clipping is biased, so nothing is claimed then.
    scale : float or None, optional
        None, or a number that all workers agreed on beforehand, at least every ``|x_i|`` (scaler sharing): it is not
        sent, and sums of n messages are multiples of it between -n and n.  The variance is then scale ``|x|_1 -
        |x|^2``, which no multiple of ``|x|^2`` bounds.

    Raises
    ------
    ValueError
        If ``|x_i|`` exceeds a shared scale.

    Notes
    -----
    Full tiles of 4096 coordinates draw their words in the tile order of ``kernels.philox``.  Unbiased (each coordinate
    to 2^-32 m) with omega = (sqrt(d) - 1)/2, reached at (1, t, .., t) with t = 1/(1 + sqrt(d)); at x exactly ``max|x|
    |x|_1/|x|^2 - 1`` (algorithm: Wen et al. 2017).  Five ternary digits per byte, 1.6 d bits, and 32 for m.
    """

    clip: float | None = None
    scale: float | None = None

    name = "terngrad"
    sources = ("wen2017",)
    width = Fraction(8, 5)
    randomness = "private"
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        for field in ("clip", "scale"):
            value = getattr(self, field)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"{field} must be positive and finite, or None; got {field} = {value}")
        if self.scale is not None and float(np.float32(self.scale)) != self.scale:
            raise ValueError(f"scale must be a binary32 number; got {self.scale}: use {float(np.float32(self.scale))}")

    @classmethod
    def sharing(cls, maxima: Iterable[float]) -> Self:
        """Return the operator with a scale that all workers share: the largest of their ``max|x|``.

        Parameters
        ----------
        maxima : iterable of float
            The workers' ``max|x|``.
        """
        scale = max(maxima, default=0.0)
        return cls(scale=float(scale)) if scale >= TINY else cls()

    def claim(self, d: int) -> Unbiased | NoClaim:
        """Return omega = (sqrt(d) - 1)/2, or ``NoClaim`` with clipping or a shared scale."""
        if self.clip is not None:
            return NoClaim(f"clipping to {self.clip} root mean squares is biased")
        if self.scale is not None:
            return NoClaim("the variance is scale |x|_1 - |x|^2: no multiple of |x|^2 bounds it")
        return Unbiased((math.sqrt(d) - 1) / 2)

    def witness(self, d: int) -> np.ndarray:
        """Return the vector (1, t, ..., t), t = 1/(1 + sqrt(d)), that reaches omega.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return np.where(np.arange(d) == 0, 1.0, 1 / (1 + math.sqrt(d)))

    def claim_at(self, x: np.ndarray) -> Unbiased:
        """Return the exact relative variance at one non-zero vector without clipping.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.abs(np.asarray(x, np.float64))
        scale = self.scale or wide.max()
        return Unbiased(max(0.0, float(scale * wide.sum() / (wide @ wide) - 1)), tight=True)

    def mean_at(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the clipped vector and its exact relative variance.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        energy = float(wide @ wide)
        limit = self.clip * math.sqrt(energy / wide.size) if self.clip is not None else math.inf
        mean = np.clip(wide, -limit, limit)
        scale = self.scale or float(np.abs(mean).max())
        return mean, max(0.0, (scale * float(np.abs(mean).sum()) - float(mean @ mean)) / energy)

    def _head_bytes(self, d: int) -> int:
        return 0 if self.scale else SCALE_BYTES

    def _length(self, d: int) -> int:
        return 8 * self._head_bytes(d) + trits.trit_bits(d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(clip=2.5)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d = x.numel()
        kernels = kernels_for(x)
        top = kernels.norms.largest(x, d).item()
        if self.clip is not None and top >= TINY:
            limit = self._limit(kernels.norms.energy(x, d).item(), d)
            x, top = x.clamp(-limit, limit), min(top, limit)
        scale, rate = self._scale_and_rate(top)
        room = self._head_bytes(d)
        payload = kernels.trits.encode(x, rate, stream(key, d, x.device), room)
        if room:
            payload[:room] = float_bytes(torch.tensor([scale], dtype=torch.float32, device=x.device))
        return payload, 8 * room + trits.trit_bits(d)

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        (m, d), vector = x.shape, torch.from_numpy(x.reshape(-1))
        kernels = kernels_for(vector)
        tops = kernels.norms.largest(vector, d).double().numpy()
        if self.clip is not None:
            limits = np.array([self._limit(energy, d) for energy in kernels.norms.energy(vector, d).tolist()])
            limits = np.where(tops >= TINY, limits, math.inf)
            x, tops = np.clip(x, -limits[:, None], limits[:, None]).astype(np.float32), np.minimum(tops, limits)
        scale, _ = self._scale_and_rate(float(tops.max()))
        scales = np.where(tops >= TINY, tops if self.scale is None else scale, 0.0)
        levels = kernels.levels.signed(
            torch.from_numpy(x.reshape(-1)), d, torch.from_numpy(scales), 1, stream_of_rows(keys, d)
        )
        digits = levels.numpy().reshape(m, d) + 1
        heads = [] if self.scale else [rows.floats(scales.reshape(m, 1))]
        return rows.joined(8 * SCALE_BYTES * len(heads) + trits.trit_bits(d), *heads, trits.packed_rows(digits))

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        payload, room = messages.rows(self._length(d)), self._head_bytes(d)
        scales = rows.read_floats(payload[:, :room]) if room else np.full((len(messages), 1), self.scale, np.float32)
        levels, valid = trits.unpacked_rows(payload[:, room:], d)
        if not (valid and np.isfinite(scales).all()) or np.signbit(scales).any():
            raise CorruptMessage("some scale is not finite or negative, or some byte of digits is impossible")
        if room and (levels.any(axis=1) != (scales[:, 0] > 0)).any():
            raise CorruptMessage("some digit must not be 0 if, and only if, the scale is positive")
        return levels * scales

    def _limit(self, energy: float, d: int) -> float:
        """Return the clipping magnitude of a vector of this energy."""
        return math.inf if self.clip is None else float(np.float32(self.clip * math.sqrt(energy / d)))

    def _scale_and_rate(self, top: float) -> tuple[float, float]:
        """Return the scale and its inverse, rounded up so that ``top`` reaches 1."""
        scale = (top if top >= TINY else 0.0) if self.scale is None else self.scale
        if top > scale > 0:
            raise ValueError(f"|x_i| must not exceed the shared scale {scale}; got {top}: agree on the maximum")
        return scale, 0.0 if top < TINY else math.nextafter(1 / scale, math.inf)

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        self._check_bits(bits, d)
        room = self._head_bytes(d)
        scale = self._read_head(payload[:room].cpu().numpy())
        out, some, valid = kernels_for(payload).trits.decode(payload[room:], d, scale)
        if not valid:
            raise CorruptMessage("a byte of ternary digits must be below 3^5 = 243")
        self._check([some], scale)
        return out

    def _unit(self, d: int) -> int:
        return 5 * TILE  # five digits per byte

    def _survey(self, x: np.ndarray) -> np.ndarray:
        return tops_and_sums(x, squares=True)

    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, tuple[float, float]]:
        top = float(survey[:, 0].max())
        limit = self._limit(total(survey[:, 1]), d) if top >= TINY else math.inf
        scale, rate = self._scale_and_rate(min(top, limit))
        return np.array([] if self.scale else [scale], ">f4").view(np.uint8), (rate, limit)

    def _fields(self, x: np.ndarray, start: int, head: tuple[float, float], key: Key) -> np.ndarray:
        rate, limit = head
        vector = torch.from_numpy(x)
        clipped = vector.clamp(-limit, limit) if limit < math.inf else vector
        return kernels_for(vector).trits.encode(clipped, rate, stream(key, x.size, start=start)).numpy()

    def _read_head(self, head: np.ndarray) -> float:
        if self.scale is not None:
            return self.scale
        scale = float(head.view(">f4")[0])
        if not math.isfinite(scale) or np.signbit(scale):
            raise CorruptMessage(f"the scale must be finite and not negative; got {scale}")
        return scale

    def _values(self, fields: np.ndarray, start: int, head: float, out: np.ndarray) -> bool:
        """Decode one run; return whether any digit is not 0."""
        packed = torch.from_numpy(fields)
        values, some, valid = kernels_for(packed).trits.decode(packed, out.size, head)
        if not valid:
            raise CorruptMessage("a byte of ternary digits must be below 3^5 = 243")
        out[:] = values.numpy()
        return some

    def _check(self, answers: list[bool], head: float) -> None:
        if self.scale is None and any(answers) != (head > 0):
            raise CorruptMessage("some digit must not be 0 if, and only if, the scale is positive")
