"""What both ends know beforehand, and the constants that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

from .segments import SEGMENT, segments
from .tables import LONG, SHORT, Format
from .trellis import LANES, Trellis, code, lanes

NORM_BYTES = 4
MODEL_FROM = 1024  # below this d a mixture cannot pay for its header, and no model is sent
COARSEST = 16.0  # a symbol keeps its last bits apart until sigma is at most 16 spacings


@dataclass(frozen=True)
class Plan:
    """What both ends know: the number of coordinates, the distortion omega and the number of states.

    Parameters
    ----------
    segment : int, optional
        Coordinates of every segment but the last, a multiple of 16; a vector that fills one has the long format.
    """

    d: int
    omega: float
    states: int
    segment: int = SEGMENT

    @cached_property
    def code(self) -> Trellis:
        """The trellis in use."""
        return code(self.states, self.d)

    @cached_property
    def form(self) -> Format:
        """The entropy coder's format."""
        return LONG if self.d >= self.segment else SHORT

    @property
    def lanes(self) -> int:
        """How many trellises run side by side in a segment."""
        return LANES if self.form is LONG else lanes(self.d)

    @cached_property
    def segments(self) -> list[slice]:
        """The coordinates of each segment."""
        return segments(self.d, self.segment)

    @cached_property
    def error(self) -> float:
        """Mean squared error per coordinate in units of the step, c_S(d)."""
        return self.code.mean_error(self.d, self.segment)

    @cached_property
    def ratio(self) -> float:
        """Step over norm, sqrt(omega / (d c_S(d)))."""
        return math.sqrt(self.omega / (self.d * self.error))

    @cached_property
    def spread(self) -> float:
        """Standard deviation of n - u in spacings, sqrt(c_S(d) (1 + 1/omega)) / v."""
        return math.sqrt(self.error * (1 + 1 / self.omega)) / self.code.spacing

    @cached_property
    def low(self) -> int:
        """Bits of each symbol that are sent without a model."""
        low = 0
        while self.spread > COARSEST * 2**low:
            low += 1
        return low

    @cached_property
    def sigma(self) -> float:
        """Standard deviation in spacings of what the model sees."""
        return self.spread / 2**self.low

    @cached_property
    def fits(self) -> bool:
        """Whether a model field is sent."""
        return self.d >= MODEL_FROM

    def step(self, norm: float) -> tuple[float, float]:
        """Return (step for the norm's significand, the power of two left over)."""
        significand, exponent = math.frexp(norm)
        return 2 * significand * self.ratio, math.ldexp(1.0, exponent - 1)


@lru_cache(maxsize=256)
def plan_of(d: int, omega: float, states: int) -> Plan:
    """Return the plan, kept so that its derived constants are computed once."""
    return Plan(d, omega, states)
