"""Signed levels in Elias omega code, in buckets with a norm each: dense, flag and sparse form.

dense ::

    ``omega(|level| + 1)`` of every coordinate and, if the level is not 0, a sign.

flag ::

    One bit that tells whether the level is not 0, then the sign and ``omega(|level|)``.

sparse ::

    Per non-zero level omega(gap), the sign and ``omega(|level|)``, ended by the gap to the end of the bucket.

A bucket is preceded by its norm in binary32; one of norm 0 consists of its norm.

A new code has its name in ``CODES``, a table of bits in ``_encoder`` and a reader in ``_symbol`` of ``cpu``, the same
in ``reference``, its lengths in ``coding.size_bounds``, and a line and an example in ``QSGD``; in the tests, an oracle
in ``elias_oracle`` and ``test_qsgd``.
"""

from __future__ import annotations

from typing import Literal, Protocol

import torch

Code = Literal["dense", "flag", "sparse"]
CODES: tuple[Code, ...] = ("dense", "flag", "sparse")
NORM_BITS = 32
MOST_LEVELS = 1 << 15  # a level's code, its sign and its flag then fit 32 bits


class Elias(Protocol):
    """The coder; ``cpu.decode`` reads what it writes on every device."""

    def encode(
        self, levels: torch.Tensor, norms: torch.Tensor, step: int, code: Code, most: int
    ) -> tuple[torch.Tensor, int]:
        """Return (payload uint8, bits).

        Parameters
        ----------
        levels : tensor
            int32, shape (d,), ``|level|`` <= most <= ``MOST_LEVELS``, 0 in buckets of norm 0.
        norms : tensor
            float32, shape (ceil(d/step),), one for each ``step`` coordinates.
        """
