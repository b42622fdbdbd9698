"""The time of a mean whose shards travel in steps, one message of every worker at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .two_shot import TwoShot


@dataclass(frozen=True)
class TwoShotRing(TwoShot):
    """Like ``TwoShot`` in m - 1 steps a shot, each of which waits for the one before: 2 (m-1) latencies.

    So it is in a ring that compresses partial sums anew at every hop, and where a worker sends to its neighbour at
    distance s in step s.  The bytes are those of ``TwoShot``.
    """

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        return super()._seconds(payload_bytes) + 2 * (payload_bytes.size - 2) * self.latency_s
