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

from ..kernels import kernels_for, trits
from ..kernels.philox import TILE
from ..key import Key
from ..message import CorruptMessage
from ..quantisers.scale import TINY
from ..random import stream, stream_of_rows
from ..streamed import Format


@dataclass(frozen=True)
class TernGrad(Format):
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

    @property
    def head_name(self) -> str:  # type: ignore[override]
        """The word for the number in the head, empty where all workers share the scale."""
        return "" if self.scale else "scale"

    def _length(self, d: int) -> int:
        return 8 * self._head_bytes(d) + trits.trit_bits(d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(clip=2.5)

    def _unit(self, d: int) -> int:
        return 5 * TILE  # five digits per byte

    def _statistics(self, x: torch.Tensor, step: int) -> np.ndarray:
        vector, norms = x.view(-1), kernels_for(x).norms
        tops = norms.largest(vector, step).double()
        sums = tops if self.clip is None else norms.energy(vector, step)
        return torch.stack([tops, sums], dim=1).cpu().numpy()

    def _number(self, top: float, total: float, d: int) -> float:
        if self.clip is not None:
            top = min(top, float(np.float32(self.clip * math.sqrt(total / d))))
        if top > (self.scale or math.inf):
            raise ValueError(f"|x_i| must not exceed the shared scale {self.scale}; got {top}: agree on the maximum")
        return top if top >= TINY else 0.0

    def _pack(self, x: torch.Tensor, start: int, numbers: Sequence[float], keys: Sequence[Key]) -> torch.Tensor:
        kernels, n = kernels_for(x), x.shape[-1]
        if self.clip is not None:
            limits = torch.tensor(numbers, device=x.device).view(-1, 1)
            x = x.view(-1, n).clamp(-limits, limits).view(x.shape)
        scales = [top and (self.scale or top) for top in numbers]
        if x.dim() == 1:
            rate = math.nextafter(1 / scales[0], math.inf) if scales[0] else 0.0  # a magnitude of the scale reaches 1
            return kernels.trits.encode(x, rate, stream(keys[0], n, x.device, start=start))
        wide = torch.tensor(scales, dtype=torch.float64)
        levels = kernels.levels.signed(x.view(-1), n, wide, 1, stream_of_rows(keys, n))
        return torch.from_numpy(trits.packed_rows(levels.view(x.shape).numpy() + 1))

    def _unpack(
        self, fields: torch.Tensor, n: int, start: int, numbers: Sequence[float]
    ) -> tuple[torch.Tensor, list[bool]]:
        if fields.dim() == 1:
            values, some, valid = kernels_for(fields).trits.decode(fields, n, self.scale or numbers[0])
            others = [some]
        else:
            levels, valid = trits.unpacked_rows(fields.numpy(), n)
            others = (levels != 0).any(axis=1).tolist()
            scales = np.array([self.scale] if self.scale else numbers, np.float32)
            values = torch.from_numpy(levels * scales[:, None])
        if not valid:
            raise CorruptMessage("a byte of ternary digits must be below 3^5 = 243")
        return values, others

    def _check(self, answers: list[list[bool]], numbers: Sequence[float]) -> None:
        """Raise CorruptMessage unless some digit of a vector is not 0 exactly where its scale is positive."""
        for number, others in zip(numbers, zip(*answers, strict=True), strict=False):
            if any(others) != (number > 0):
                raise CorruptMessage("some digit must not be 0 if, and only if, the scale is positive")
