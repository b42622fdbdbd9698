"""Keep random coordinates unscaled: the contractive form of random-k."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from bounds.claims import Contractive

from .. import rows
from ..key import Key
from ..message import Messages
from ..operator import Size
from ..pieces import InRuns, Runs
from ..rate import Rate
from .random_k import gather, pack_values, random_masks, random_support, scatter, unpack_values, zeros_but
from .top_k import check_fraction, kept


@dataclass(frozen=True)
class ScaledRandomK(InRuns):
    """RandomK divided by 1 + omega = d/k: k random coordinates are sent unchanged, the others become 0.

    Parameters
    ----------
    x
        float vector, shape (d,), as for ``RandomK``.
    fraction : float or None, optional
        Share of the coordinates that are kept, in (0, 1].  Give either fraction or k.
    k : int or None, optional
        Number of coordinates that are kept, 1 <= k <= d.

    Notes
    -----
    Contractive with alpha = 1 - k/d, an equality for every x in expectation (Stich et al. 2018); not
    surely, so it needs error feedback.  Bits: as RandomK.
    """

    fraction: float | None = None
    k: int | None = None

    name = "scaled_randomk"
    sources = ("stich2018",)
    randomness = "shared"
    rate = Rate("fraction", few=2.0**-30, many=1.0)
    projects = True
    equivariant = frozenset({"scale", "sign"})

    def __post_init__(self) -> None:
        check_fraction(self.fraction, self.k)

    def claim(self, d: int) -> Contractive:
        """Return alpha = 1 - k/d."""
        return Contractive(1 - kept(self.fraction, self.k, d) / d, tight=True)

    def bits(self, d: int) -> Size:
        """Return 32 k bits."""
        return Size.fixed(32 * kept(self.fraction, self.k, d))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(fraction=0.1), cls(k=1), cls(fraction=1.0)

    def _encode(self, x: np.ndarray, key: Key) -> tuple[np.ndarray, int]:
        return pack_values(x[random_support(key, kept(self.fraction, self.k, x.size), x.size)])

    def _decode(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> np.ndarray:
        assert key is not None
        k = kept(self.fraction, self.k, d)
        out = np.zeros(d, np.float32)
        out[random_support(key, k, d)] = unpack_values(payload, bits, k)
        return out

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        m, d = x.shape
        k = kept(self.fraction, self.k, d)
        return rows.joined(32 * k, rows.floats(x[random_masks(keys, k, d)].reshape(m, k)))

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        k = kept(self.fraction, self.k, d)
        payload, out = messages.rows(32 * k), np.zeros((len(messages), d), np.float32)
        out[random_masks(keys, k, d)] = unpack_values(payload.reshape(-1), 8 * payload.size, k * len(messages))
        return out

    def _encode_runs(self, runs: Runs, d: int, key: Key) -> tuple[np.ndarray, int]:
        values = gather(runs, key, kept(self.fraction, self.k, d), d)
        return values.view(np.uint8), 32 * values.size

    def _decode_runs(self, payload: np.ndarray, bits: int, d: int, key: Key | None) -> Iterator[np.ndarray]:
        assert key is not None
        runs = scatter(payload, bits, kept(self.fraction, self.k, d), key, d, self._runs(d))
        return (zeros_but(*run) for run in runs)
