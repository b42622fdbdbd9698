"""Natural compression: round every coordinate to a power of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from .. import rows
from ..coding.fixed_width import pack_fixed, unpack_fixed
from ..coding.minifloat import NEAREST, cells, round_floats, values
from ..key import Key
from ..message import CorruptMessage, Messages
from ..operator import Randomness
from ..quantisers.scale import largest
from ..random import bits32, bits32_of_rows
from ..streamed import Streamed

WIDTH = 9
NEGATIVE = 1 << 8
LOWEST, HIGHEST = -149, 105  # exponents of codes 1 and 255


@dataclass(frozen=True)
class NaturalCompression(Streamed):
    """Round each magnitude to a neighbouring power of two; send its sign and exponent.

    Parameters
    ----------
    x
        Float tensor, shape (d,), ``max|x| <= 2^105``.
    rounding : {"stochastic", "nearest"}, optional
        "stochastic", up from 2^e m (1 <= m < 2) with probability m - 1; or "nearest", ties up.

    Raises
    ------
    ValueError
        For another rounding, or for a larger magnitude.

    Notes
    -----
    Stochastic: unbiased, exactly, with omega = 1/8, reached at m = 4/3 (Horvath et al. 2019).  Nearest: strictly
    contractive with alpha = 1/9, reached at m = 3/2.  The probability is linear in m, not in log m. 9 bits a
    coordinate: the sign, and 0 for zero or 150 + exponent, so that subnormal numbers keep theirs.
    """

    rounding: Literal["stochastic", "nearest"] = "stochastic"

    name = "natural"
    sources = ("horvath2019natural",)
    width = WIDTH
    equivariant = frozenset({"permutation", "scale", "sign"})

    def __post_init__(self) -> None:
        if self.rounding not in ("stochastic", "nearest"):
            raise ValueError(f'rounding must be "stochastic" or "nearest"; got {self.rounding!r}')

    @property
    def randomness(self) -> Randomness:  # type: ignore[override]
        """Private for stochastic rounding, else none."""
        return "private" if self.rounding == "stochastic" else "none"

    def claim(self, d: int) -> Unbiased | StrictlyContractive:
        """Return omega = 1/8 or alpha = 1/9."""
        return Unbiased(1 / 8) if self.rounding == "stochastic" else StrictlyContractive(1 / 9)

    def witness(self, d: int) -> np.ndarray:
        """Return a constant vector that reaches the claimed constant.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return np.full(d, 4 / 3 if self.rounding == "stochastic" else 1.5)

    def claim_at(self, x: np.ndarray) -> Unbiased | StrictlyContractive:
        """Return the exact constant at one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        rest, spacing = cells(wide, 1, LOWEST)
        energy = float(wide @ wide)
        if self.rounding == "stochastic":
            return Unbiased(float(rest @ (spacing - rest)) / energy, tight=True)
        return StrictlyContractive(float((np.minimum(rest, spacing - rest) ** 2).sum()) / energy, tight=True)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls("nearest")

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        self._head(self._survey(x.reshape(-1)), x.size)
        stochastic, codes = self.rounding == "stochastic", np.empty(x.size, np.uint32)
        random = bits32_of_rows(keys, x.shape[1]).reshape(-1) if stochastic else NEAREST
        round_floats(x.reshape(-1).view(np.uint32), 0, 1, LOWEST, NEGATIVE, random, codes)
        return rows.joined(WIDTH * x.shape[1], rows.packed(codes.view(np.int32).reshape(x.shape), WIDTH))

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        codes = rows.unpacked(messages.rows(WIDTH * d), d, WIDTH)
        if (codes == NEGATIVE).any():
            raise CorruptMessage("a zero must have no sign")
        return _table().take(codes, mode="clip")

    def _head_bytes(self, d: int) -> int:
        return 0

    def _survey(self, x: np.ndarray) -> np.ndarray:
        return np.array([largest(x)], np.float64)

    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, None]:
        if survey.max() > 2.0**HIGHEST:
            raise ValueError(f"max|x| must not exceed 2^{HIGHEST}; got {survey.max():.4g}: rescale x")
        return np.empty(0, np.uint8), None

    def _fields(self, x: np.ndarray, start: int, head: None, key: Key) -> np.ndarray:
        random = bits32(key, x.size, start=start) if self.rounding == "stochastic" else NEAREST
        codes = np.empty(x.size, np.uint32)
        round_floats(x.view(np.uint32), 0, 1, LOWEST, NEGATIVE, random, codes)
        return pack_fixed(codes, WIDTH)

    def _read_head(self, head: np.ndarray) -> None:
        """Do nothing: there is no head."""

    def _values(self, fields: np.ndarray, start: int, head: None, out: np.ndarray) -> None:
        codes = unpack_fixed(fields, WIDTH, out.size)
        if (codes == NEGATIVE).any():
            raise CorruptMessage("a zero must have no sign")
        _table().take(codes, out=out, mode="clip")


@lru_cache(maxsize=1)
def _table() -> np.ndarray:
    """Return the float32 number of each code."""
    magnitudes = values(1, LOWEST, NEGATIVE).astype(np.float32)
    return np.concatenate([magnitudes, -magnitudes])
