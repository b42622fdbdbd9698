"""DRIVE: the signs of the rotated vector and a scale; EDEN at one bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Contractive, NoClaim, Unbiased

from ..key import Key
from ..operator import Operator, Size
from .eden import EDEN, Scale


@dataclass(frozen=True)
class DRIVE(Operator):
    """Send the signs of the rotated x and a scale; decode the scaled signs, rotated back.

    Parameters
    ----------
    x
        Float tensor, shape (d,).  The messages equal those of ``EDEN(1, scale)`` (Vargaftik et
        al. 2021).  d + 32 bits.
    scale : Scale, optional
        "unbiased" or "mse" (smaller error, biased).

    Raises
    ------
    ValueError
        For an unknown scale, or if it exceeds binary32.
    """

    scale: Scale = "unbiased"

    name = "drive"
    sources = ("vargaftik2021",)
    randomness = "shared"
    equivariant = frozenset({"scale"})

    def __post_init__(self) -> None:
        self.eden  # noqa: B018  checks the scale

    @property
    def eden(self) -> EDEN:
        """Equivalent ``EDEN`` operator."""
        return EDEN(1, self.scale)

    def claim(self, d: int) -> Unbiased | Contractive | NoClaim:
        """Return the claim of EDEN at one bit."""
        return self.eden.claim(d)

    def bits(self, d: int) -> Size:
        """Return 32 bits for the scale and one bit per coordinate."""
        return self.eden.bits(d)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls("mse")

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return self.eden._encode(x, key)

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        return self.eden._decode(payload, bits, d, key)
