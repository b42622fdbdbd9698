"""The codes: Ungerboeck's rate-1/2 trellises on the integers modulo 4, and their mean squared error.

Write n mod 4 = 2 z1 + z0.  State s forces the parity z0 = s & 1 and the free bit z1 drives the state, ::

    s' = (s >> 1) xor (s & 1) A xor z1 B,

from state 0 on, with a free end.  The integer sequences so admitted form a set that contains (4 Z)^d and has
index 2^d in Z^d.  With one state there is no trellis: all integers are admitted.
(Parity checks: Ungerboeck 1982, Table I; the one of 256 states is that of least error among all 16 256.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from .segments import SEGMENT, count

LANES = 16  # trellises side by side in a segment of a long vector; coordinate i belongs to lane i mod 16
LANES_FROM = 1024  # from this d on there are 16 lanes, hence at least 64 coordinates in each
FINE_METRICS = 64  # the most states with metrics of binary32
TRELLIS_FROM = 64  # below this d the integers themselves are the code


@dataclass(frozen=True)
class Trellis:
    """One code.

    Parameters
    ----------
    states : int
        S.
    a : int
        The feedback A of the state recursion.
    b : int
        The drive B of the state recursion.
    error : float
        mean squared error per coordinate, for a uniform point and d -> infinity.
    ends : float
        What the two ends of one trellis add to the sum of squared errors.
    """

    states: int
    a: int
    b: int
    error: float
    ends: float

    @property
    def spacing(self) -> int:
        """Distance v of neighbouring admitted integers once the state is known."""
        return 1 if self.states == 1 else 2

    @property
    def coarse(self) -> bool:
        """Whether its path metrics are bytes (see ``coarse``); binary32 otherwise."""
        return self.states > FINE_METRICS

    def following(self, state: int, z1: int) -> int:
        """Return the next state."""
        return (state >> 1) ^ (state & 1) * self.a ^ z1 * self.b

    @cached_property
    def after(self) -> np.ndarray:
        """Next state after[2 s + z1], shape (2 S,), int32."""
        return np.array([self.following(s, z) for s in range(self.states) for z in (0, 1)], np.int32)

    @cached_property
    def before(self) -> np.ndarray:
        """before[2 s' + bit] = 4 s + n mod 4 for the two branches that enter s', shape (2 S,), int32."""
        entering: list[list[int]] = [[] for _ in range(self.states)]
        for s in range(self.states):
            for z in (0, 1):
                entering[self.following(s, z)].append(4 * s + 2 * z + (s & 1))
        return np.array(entering, np.int32).reshape(-1)

    def mean_error(self, d: int, segment: int = SEGMENT) -> float:
        """Return c_S(d): mean squared error per coordinate at d coordinates, its ends included."""
        return self.error + self.ends * lanes(d) * count(d, segment) / d


# error and ends: means over uniform points, by simulation to 2e-5 and 6e-3; one state: exact
CODES = {
    1: Trellis(1, 0, 0, 1 / 12, 0.0),
    4: Trellis(4, 2, 1, 0.26502, 0.304),
    8: Trellis(8, 5, 2, 0.25962, 0.443),
    64: Trellis(64, 33, 10, 0.24964, 0.77),
    128: Trellis(128, 123, 49, 0.24663, 1.19),
    256: Trellis(256, 155, 81, 0.24479, 1.26),
}


@lru_cache(maxsize=256)
def code(states: int, d: int) -> Trellis:
    """Return the code in use at d coordinates: below 64 the ends of a trellis weigh too much and the integers serve."""
    return CODES[states if d >= TRELLIS_FROM else 1]


def lanes(d: int) -> int:
    """Return how many trellises run side by side in a segment."""
    return LANES if d >= LANES_FROM else 1
