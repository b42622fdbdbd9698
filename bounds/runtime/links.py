"""Equal links on which every exchange goes its own way: sums on a ring, messages gathered on it, or in two shots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .communication import Communication, Ring, RingGather
from .two_shot import TwoShot


@dataclass(frozen=True)
class Links(Communication):
    """What an averaging takes depends on how it is made; unless that is said, it is summed on a ring."""

    def of(self, exchange: str) -> Communication:
        """Return the time of one exchange.

        Parameters
        ----------
        exchange : str
            "sum", "gather" or "two_shot".

        Raises
        ------
        ValueError
            For another word.
        """
        kinds: dict[str, type[Communication]] = {"sum": Ring, "gather": RingGather, "two_shot": TwoShot}
        if exchange not in kinds:
            raise ValueError(f"exchange must be {', '.join(kinds)}; got {exchange!r}")
        return kinds[exchange](self.latency_s, self.bytes_per_s)

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        return self.of("sum")._seconds(payload_bytes)
