"""Parameters of an emulated network."""

from __future__ import annotations

from dataclasses import dataclass

SMALLEST_MTU, LARGEST_MTU = 576, 65000
LONGEST_DELAY_S = 10.0


@dataclass(frozen=True)
class Shape:
    """Equal full-duplex links from every rank to one switch.

    Parameters
    ----------
    rate_bit_per_s : float or None, bit/s, optional
        Rate of a link in each direction, in [1e3, 1e12]; None for no limit.  A frame passes two links in succession.
    delay_s : float, seconds, optional
        One-way delay from rank to rank, in [0, 10].
    jitter_s : float, seconds, optional
        Additional delay, uniform on [0, jitter_s]; frames between two ranks keep their order.
    loss : float, optional
        Probability that a frame is lost, in [0, 1).
    mtu : int, optional
        Largest IP packet in bytes, 576 to 65000.

    Raises
    ------
    ValueError
        For arguments outside these ranges.
    """

    rate_bit_per_s: float | None = None
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    mtu: int = 1500

    def __post_init__(self) -> None:
        if self.rate_bit_per_s is not None and not 1e3 <= self.rate_bit_per_s <= 1e12:
            raise ValueError(f"rate_bit_per_s must lie in [1e3, 1e12] or be None; got {self.rate_bit_per_s}")
        for name in ("delay_s", "jitter_s"):
            if not 0 <= getattr(self, name) <= LONGEST_DELAY_S:
                raise ValueError(f"{name} must lie in [0, {LONGEST_DELAY_S:g}] seconds; got {getattr(self, name)}")
        if not 0 <= self.loss < 1:
            raise ValueError(f"loss must satisfy 0 <= loss < 1; got {self.loss}")
        if not SMALLEST_MTU <= self.mtu <= LARGEST_MTU:
            raise ValueError(f"mtu must lie in [{SMALLEST_MTU}, {LARGEST_MTU}] bytes; got {self.mtu}")

    @property
    def needs_switch(self) -> bool:
        """Whether a user-space switch is needed, for delay, jitter or loss; the kernel limits the rate alone."""
        return self.delay_s > 0 or self.jitter_s > 0 or self.loss > 0

    def __str__(self) -> str:
        rate = "no rate limit" if self.rate_bit_per_s is None else f"{self.rate_bit_per_s / 1e6:g} Mbit/s"
        rest = (f"delay {self.delay_s * 1e3:g} ms", f"jitter {self.jitter_s * 1e3:g} ms", f"loss {self.loss:g}")
        return ", ".join((rate, *rest, f"MTU {self.mtu}"))
