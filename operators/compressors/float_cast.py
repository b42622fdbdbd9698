"""Casts to 16-bit and 8-bit floating point, scaled so that nothing overflows."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, Self

import numpy as np
import torch

from bounds.claims import StrictlyContractive, Unbiased

from ..coding.minifloat import NEAREST, cells, nearest_alpha, round_floats, scale_numbers, stochastic_omega, values
from ..key import Key
from ..message import CorruptMessage
from ..operator import Randomness
from ..quantisers.scale import largest
from ..random import bits32_of_rows
from ..streamed import Streamed

ZERO_EXPONENT = 150  # the head is 0 for the zero vector, else 150 + exponent of the largest magnitude
HIGHEST = 127  # exponent of the largest magnitude that rounding up cannot move beyond binary32


class Format(NamedTuple):
    """Width in bits, significant bits with the leading one, exponents of the smallest normal and largest number."""

    width: int
    significant: int
    lowest: int
    highest: int


FORMATS = {
    "fp16": Format(16, 11, -14, 14),
    "bf16": Format(16, 8, -126, 126),
    "e4m3": Format(8, 4, -6, 7),
    "e5m2": Format(8, 3, -14, 14),
}


@dataclass(frozen=True)
class FloatCast(Streamed):
    """Multiply by a power of two, round to a short floating-point format, and multiply back.

    Parameters
    ----------
    x
        Float tensor, shape (d,), ``max|x| <= 2^127``.
    format : {"fp16", "bf16", "e4m3", "e5m2"}, optional
        "fp16", "bf16", or with 8 bits "e4m3", "e5m2".
    rounding : {"nearest", "stochastic"}, optional
        "nearest", ties to even, or "stochastic" between the two neighbours, linear in the number.

    Raises
    ------
    ValueError
        For a parameter out of range or a larger magnitude.

    Notes
    -----
    The power of two brings ``max|x|`` into [2^E, 2^(E+1)), where 2^(E+1) is still a number of the format, so nothing
    overflows; small numbers end in the format's subnormal ones or in 0.  With h = 2^(1 - significant bits) and 2^-D the
    smallest normal number relative to 2^E (D = 28, 252, 13, 28), q = (d - 1) h^2 4^-D is the part of underflow, and the
    constants are sharp (``coding.minifloat``): nearest is strictly contractive with alpha = (h^2 + q)/((2 + h)^2 + q);
    stochastic is unbiased (each number to 2^-32 of its spacing) with omega = (h^2 + q)/(4 (1 + h)) while that is below
    h/2. 16 bits for the power, then 16 or 8 bits per coordinate; negative zero is sent as zero.
    """

    format: Literal["fp16", "bf16", "e4m3", "e5m2"] = "bf16"
    rounding: Literal["nearest", "stochastic"] = "nearest"

    name = "cast"
    head_name, head_type = "exponent", ">u2"
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {self.format!r}")
        if self.rounding not in ("nearest", "stochastic"):
            raise ValueError(f'rounding must be "nearest" or "stochastic"; got {self.rounding!r}')

    @property
    def _format(self) -> Format:
        return FORMATS[self.format]

    @property
    def width(self) -> int:  # type: ignore[override]
        """Bits per coordinate."""
        return self._format.width

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Private for stochastic rounding, else none."""
        return "private" if self.rounding == "stochastic" else "none"

    def claim(self, d: int) -> Unbiased | StrictlyContractive:
        """Return the sharp constant."""
        _, p, lowest, highest = self._format
        if self.rounding == "nearest":
            return StrictlyContractive(nearest_alpha(p, highest - lowest, d))
        return Unbiased(stochastic_omega(p, highest - lowest, d))

    def witness(self, d: int) -> np.ndarray:
        """Return a vector that reaches the claimed constant: one largest coordinate, all others at the worst underflow.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        _, p, lowest, highest = self._format
        h, claim = 2.0 ** (1 - p), self.claim(d)
        if isinstance(claim, Unbiased):
            first, rest = max(1.0, (2 + h) / (2 * (1 + claim.omega))), 1 / (2 * (1 + claim.omega))
        else:
            first, rest = 1 + h / 2 if claim.alpha <= h / (4 + h) else 1.0, 0.5
        return np.where(np.arange(d) == 0, first, rest * h * 2.0 ** (lowest - highest))

    def claim_at(self, x: np.ndarray) -> Unbiased | StrictlyContractive:
        """Return the exact constant at one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        _, p, lowest, highest = self._format
        wide = np.ldexp(wide, highest + 1 - int(np.frexp(np.abs(wide).max())[1]))
        rest, spacing = cells(wide, p, lowest)
        energy = float(wide @ wide)
        if self.rounding == "nearest":
            return StrictlyContractive(float((np.minimum(rest, spacing - rest) ** 2).sum()) / energy, tight=True)
        return Unbiased(float(rest @ (spacing - rest)) / energy, tight=True)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls("fp16"),
            cls("e4m3"),
            cls("e5m2"),
            cls("e4m3", "stochastic"),
            cls("fp16", "stochastic"),
            cls("e5m2", "stochastic"),
        )

    def _statistics(self, x: torch.Tensor, step: int) -> np.ndarray:
        return np.array([[largest(row), 0.0] for row in x.numpy().reshape(-1, x.shape[-1])])

    def _combined(self, statistics: np.ndarray) -> np.ndarray:
        return statistics.max(axis=0, keepdims=True)

    def _number(self, top: float, total: float, d: int) -> int:
        if top > 2.0**HIGHEST:
            raise ValueError(f"max|x| must not exceed 2^{HIGHEST}; got {top:.4g}: rescale x")
        return math.frexp(top)[1] - 1 + ZERO_EXPONENT if top > 0 else 0

    def _fields(self, x: np.ndarray, start: int, numbers: list[int], keys: Sequence[Key]) -> np.ndarray:
        width, p, lowest, highest = self._format
        codes = np.zeros(x.shape, np.uint8 if width == 8 else np.uint16)
        words = bits32_of_rows(keys, x.shape[1], start=start) if self.rounding == "stochastic" else [NEAREST] * len(x)
        for row, number in enumerate(numbers):
            if number:
                shift = highest - number + ZERO_EXPONENT
                round_floats(x[row].view(np.uint32), shift, p, lowest, 1 << (width - 1), words[row], codes[row])
        return _big_endian(codes).view(np.uint8)

    def _values(self, fields: np.ndarray, start: int, numbers: list[int], out: np.ndarray) -> list[float]:
        """Decode one run of every row; return the largest numbers, infinity if one is impossible."""
        width, _, _, highest = self._format
        codes = fields.view(np.uint8 if width == 8 else ">u2").astype(np.uint16, copy=False)
        tops = []
        for row, number in enumerate(numbers):
            if number == 0:
                if codes[row].any():
                    raise CorruptMessage("every number of a zero vector must be 0")
                out[row] = 0
                tops.append(0.0)
                continue
            table, factor = _table(self.format), math.ldexp(1.0, _exponent(number) - highest)
            most, minus_zero = scale_numbers(codes[row], table, factor, 1 << (width - 1), out[row])
            tops.append(math.inf if minus_zero or math.isnan(table[most]) else float(table[most]))
        return tops

    def _check(self, answers: list[list[float]], numbers: list[int]) -> None:
        for number, tops in zip(numbers, zip(*answers, strict=True), strict=True):
            exponent, highest, top = _exponent(number), self._format.highest, max(tops)
            if number and (exponent > HIGHEST or not 2.0**highest <= top <= 2.0 ** (highest + 1)):
                raise CorruptMessage(f"the largest magnitude must have the exponent {exponent} of the head")
            if number and exponent == HIGHEST and top > 2.0**highest:
                raise CorruptMessage(f"a decoded number exceeds 2^{HIGHEST}")


def _exponent(number: int) -> int:
    """Return the exponent of the largest magnitude from the head, at most one more than an encoder sends."""
    return min(number - ZERO_EXPONENT, HIGHEST + 1)


def _big_endian(codes: np.ndarray) -> np.ndarray:
    """Swap the bytes of 16-bit codes to wire order; shifts are twice as fast as ``byteswap``."""
    return codes if codes.itemsize == 1 or sys.byteorder == "big" else (codes << 8) | (codes >> 8)


@lru_cache(maxsize=4)
def _table(name: str) -> np.ndarray:
    """Return the float64 number of each code, NaN for an invalid code."""
    width, p, lowest, highest = FORMATS[name]
    half = values(p, lowest, 1 << (width - 1))
    half[half > 2.0 ** (highest + 1)] = np.nan
    table = np.concatenate([half, -half])
    table[half.size] = np.nan
    return table
