"""What a monotone function makes of estimates: its value at them, and the interval that theirs imply."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from ..interval import Interval
from .estimate import Estimate

ASSUMED_FACTOR = 10.0


def assumed(value: float, *, factor: float = ASSUMED_FACTOR) -> Estimate:
    """A constant that nobody measured, taken as known up to a factor; its interval has no level, that is level 0.

    Raises ValueError unless value > 0 and factor >= 1.
    """
    if not (0 < value < math.inf and 1 <= factor < math.inf):
        raise ValueError(f"an assumed constant needs value > 0 and factor >= 1; got {value} and {factor}")
    return Estimate(value, Interval(value / factor, value * factor), 0.0, "assumed, not measured")


def through(
    function: Callable[[Mapping[str, float]], Interval],
    estimates: Mapping[str, Estimate],
    *,
    rising: Collection[str],
    lowest: float = 0.0,
    highest: float = math.inf,
) -> Estimate:
    """The estimate of a function that is monotone in each argument; a level by the union bound.

    function : from values by name to an enclosure of its value there, whose upper end is shown.  rising : the names in
    which it grows; in the others it falls.  lowest, highest : of the function; they stand where an end of an estimate
    is infinite or refused by the function with a ValueError.
    """

    def end(low: bool) -> dict[str, float]:
        return {
            name: float(estimate.interval.lo if (name in rising) == low else estimate.interval.hi)
            for name, estimate in estimates.items()
        }

    def at(corner: dict[str, float], otherwise: float) -> Interval:
        if not all(map(math.isfinite, corner.values())):
            return Interval(otherwise, otherwise)
        try:
            return function(corner)
        except ValueError:
            return Interval(otherwise, otherwise)

    middle = function({name: estimate.value for name, estimate in estimates.items()})
    interval = Interval(min(at(end(True), lowest).lo, middle.lo), max(at(end(False), highest).hi, middle.hi))
    level = max(0.0, 1 - sum(1 - estimate.level for estimate in estimates.values()))
    biases = (f"{name}: {estimate.bias}" for name, estimate in estimates.items() if estimate.bias)
    return Estimate(float(middle.hi), interval, level, "; ".join(biases))
