"""What a pilot has timed and tried: sums over links, averagings of a group, operators on real gradients."""

from __future__ import annotations

from dataclasses import dataclass

from bounds.estimate import DelayFit, delay_by_fenced_regression

from .codec import Codec
from .links import Link

LEVEL = 0.95
ALL, INSIDE, BETWEEN = "all ranks", "inside a node", "between nodes"


@dataclass(frozen=True)
class LinkTimings:
    """Timed sums of vectors over a group of ranks.

    Parameters
    ----------
    level : str
        "all ranks", "inside a node" or "between nodes".
    ranks : int
        Of the group.
    payload_bytes : tuple of int, bytes
        Lengths of one rank's vector, shape (n,).
    seconds : tuple of float, seconds
        What the sum of each took, by the slowest rank, shape (n,).
    """

    level: str
    ranks: int
    payload_bytes: tuple[int, ...]
    seconds: tuple[float, ...]

    def fit(self) -> DelayFit:
        """Return latency and seconds a byte, fitted."""
        return delay_by_fenced_regression(self.payload_bytes, self.seconds, level=LEVEL)

    def link(self) -> Link:
        """Return the link that a ring of these ranks would have, if it took these seconds.

        Raises
        ------
        ValueError
            If longer vectors took no more time, so that no bandwidth is seen.
        """
        fit, hops = self.fit(), 2 * (self.ranks - 1)
        per_byte = fit.seconds_per_byte.value
        if per_byte <= 0:
            raise ValueError(
                f"sums over {self.level} took no longer for longer vectors ({per_byte:.3g} s a byte): no bandwidth can "
                "be told; make a pilot with larger most_bytes, or give the link"
            )
        latency_s = max(fit.latency_s.value, 0.0) / hops
        return Link(8 * hops / self.ranks / per_byte, latency_s, f"measured over {self.level}, as a ring")


@dataclass(frozen=True)
class ExchangeTimings:
    """Timed averagings over all ranks, with coding.

    Parameters
    ----------
    operator : str
        Its specification; "" without compression.
    exchange : str
        "sum", "gather" or "two_shot".
    seconds : tuple of float, seconds
        Of one averaging each, by rank 0, shape (n,).
    """

    operator: str
    exchange: str
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class OperatorTrial:
    """What one operator did to real gradients.

    Parameters
    ----------
    operator : str
        Its specification.
    bits : tuple of float, bits
        A coordinate of a message, for each gradient, shape (n,).
    nmse : tuple of float
        ``|C(g) - g|^2/|g|^2`` of each, shape (n,).
    residuals : tuple of float
        ``|e|/|g|`` of the residual that error feedback carries, after each of consecutive steps, shape (k,); empty for
        an operator whose error feedback would diverge or is its own.
    codec : Codec
        Seconds a coordinate.
    """

    operator: str
    bits: tuple[float, ...]
    nmse: tuple[float, ...]
    residuals: tuple[float, ...]
    codec: Codec
