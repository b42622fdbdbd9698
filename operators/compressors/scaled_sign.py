"""Signs and the mean magnitude: the operator of EF-signSGD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import StrictlyContractive

from .. import rows
from ..bits.bitstream import float_bytes, read_floats
from ..kernels import kernels_for
from ..key import Key
from ..message import CorruptMessage, Messages
from ..operator import DeviceOperator
from ..quantisers.scale import TINY, nearest, tops_and_sums, total
from ..streamed import Streamed

MEAN_BYTES = 4


@dataclass(frozen=True)
class ScaledSign(DeviceOperator, Streamed):
    """Send the sign of each coordinate and the mean magnitude ``m = |x|_1 / d``; decode m sign(x).

    Parameters
    ----------
    x
        Float tensor, shape (d,); sign(0) = sign(-0) = +1.

    Raises
    ------
    ValueError
        If m exceeds binary32.

    Notes
    -----
    Strictly contractive with alpha = 1 - 1/d, reached by a one-hot vector; at x exactly ``alpha = 1 - |x|_1^2 / (d
    |x|_2^2)`` (Karimireddy et al. 2019). d + 32 bits.
    """

    name = "scaled_sign"
    sources = ("karimireddy2019",)
    width = 1
    randomness = "none"
    projects = True
    equivariant = frozenset({"permutation", "scale", "sign"})

    def claim(self, d: int) -> StrictlyContractive:
        """Return alpha = 1 - 1/d."""
        return StrictlyContractive(1 - 1 / d)

    def claim_at(self, x: np.ndarray) -> StrictlyContractive:
        """Return the exact alpha at one non-zero vector.

        Parameters
        ----------
        x : ndarray
            The vector, shape (d,).
        """
        wide = np.asarray(x, np.float64)
        alpha = 1 - np.abs(wide).sum() ** 2 / (wide.size * np.dot(wide, wide))
        return StrictlyContractive(max(0.0, float(alpha)), tight=True)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(),)

    def _encode_tensor(self, x: torch.Tensor, key: Key) -> tuple[torch.Tensor, int]:
        d = x.numel()
        kernels = kernels_for(x)
        packed, magnitudes = kernels.signs.pack_with_sum(x)
        mean = self._mean(magnitudes, 0.0 if magnitudes >= TINY * d else kernels.norms.largest(x, d).item(), d)
        head = torch.tensor([mean], dtype=torch.float32, device=x.device)
        return torch.cat([float_bytes(head), packed if mean > 0 else torch.zeros_like(packed)]), 8 * MEAN_BYTES + d

    def _decode_tensor(self, payload: torch.Tensor, bits: int, d: int, key: Key | None) -> torch.Tensor:
        self._check_bits(bits, d)
        mean = self._read_mean(payload[:MEAN_BYTES])
        return _signed(payload[MEAN_BYTES:], d, mean)

    def _encode_rows(self, x: np.ndarray, keys: Sequence[Key]) -> Messages:
        (m, d), vector = x.shape, torch.from_numpy(x.reshape(-1))
        norms = kernels_for(vector).norms
        magnitudes, tops = norms.absolute_sum(vector, d).numpy(), norms.largest(vector, d).numpy()
        means = np.where((magnitudes < TINY * d) & (tops < TINY), 0.0, magnitudes / d)
        nearest(float(means.max()))
        sent = means.astype(np.float32).reshape(m, 1)
        return rows.joined(8 * MEAN_BYTES + d, rows.floats(sent), rows.packed_signs(x) * (sent > 0))

    def _decode_rows(self, messages: Messages, d: int, keys: Sequence[Key]) -> np.ndarray:
        payload = messages.rows(8 * MEAN_BYTES + d)
        means, signs = rows.read_floats(payload[:, :MEAN_BYTES]), payload[:, MEAN_BYTES:]
        if not np.isfinite(means).all() or np.signbit(means).any() or signs[means[:, 0] == 0].any():
            raise CorruptMessage("some mean magnitude is not finite or negative, or 0 with negative signs")
        return np.where(rows.unpacked(signs, d, 1) > 0, -means, means)

    def _mean(self, magnitudes: float, top: float, d: int) -> float:
        """Return the transmitted mean, 0 for a negligible vector; ``top`` is read only if the sum is small."""
        return 0.0 if magnitudes < TINY * d and top < TINY else nearest(magnitudes / d)

    def _read_mean(self, head: torch.Tensor) -> float:
        mean = float(read_floats(head).item())
        if not np.isfinite(mean) or np.signbit(mean):
            raise CorruptMessage(f"the mean magnitude must be finite and not negative; got {mean}")
        return mean

    def _survey(self, x: np.ndarray) -> np.ndarray:
        return tops_and_sums(x, squares=False)

    def _head(self, survey: np.ndarray, d: int) -> tuple[np.ndarray, float]:
        mean = self._mean(total(survey[:, 1]), float(survey[:, 0].max()), d)
        return np.array([mean], ">f4").view(np.uint8), mean

    def _fields(self, x: np.ndarray, start: int, head: float, key: Key) -> np.ndarray:
        vector = torch.from_numpy(x)
        packed = kernels_for(vector).signs.pack(vector)
        return (packed if head > 0 else torch.zeros_like(packed)).numpy()

    def _read_head(self, head: np.ndarray) -> float:
        return self._read_mean(torch.from_numpy(head))

    def _values(self, fields: np.ndarray, start: int, head: float, out: np.ndarray) -> None:
        out[:] = _signed(torch.from_numpy(fields), out.size, head).numpy()


def _signed(packed: torch.Tensor, n: int, mean: float) -> torch.Tensor:
    """Return the signs times the mean."""
    if mean == 0 and bool(packed.any()):
        raise CorruptMessage("a zero mean must come without negative signs")
    return kernels_for(packed).signs.unpack(packed, n, mean, -mean)
