"""The time of a mean in two shots: shards to their owners, means of the shards to all, every pair directly."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .checks import nonnegative
from .communication import BITS_PER_BYTE, Communication


@dataclass(frozen=True)
class TwoShot(Communication):
    """All pairs exchange shards at once, first the workers' and then the owners' means.

    A shot costs one latency, m - 1 messages that a worker handles one after the other, and (m-1)/m of its message over
    its link; the first shot counts with the longest message.

    Parameters
    ----------
    latency_s : float, seconds
        Seconds a message needs besides its bytes.
    bytes_per_s : float, bytes/s
        Bandwidth of one link.
    message_s : float, seconds
        Seconds that a worker needs for one message besides its bytes.
    result_bits : float, bits, optional
        Length of the whole compressed mean, by default that of the longest message.

    Raises
    ------
    ValueError
        For a negative time or length.
    """

    message_s: float = 0.0
    result_bits: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        nonnegative("message_s", self.message_s)
        nonnegative("result_bits", self.result_bits or 0.0)

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        m, longest = payload_bytes.size, float(payload_bytes.max())
        both = longest + (longest if self.result_bits is None else math.ceil(self.result_bits / BITS_PER_BYTE))
        return 2 * (self.latency_s + (m - 1) * self.message_s) + (m - 1) / m * both / self.bytes_per_s
