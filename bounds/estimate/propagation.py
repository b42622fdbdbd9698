"""What a monotone function makes of estimates: its value at them, and the interval that theirs imply."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

from ..interval import Interval
from .estimate import Estimate

ASSUMED_FACTOR = 10.0


def assumed(value: float, *, factor: float = ASSUMED_FACTOR) -> Estimate:
    """Return a constant that nobody measured, taken as known up to a factor; its interval has no level, that is level
    0.

    Parameters
    ----------
    value : float
        The number that is assumed.
    factor : float, optional
        The interval goes from value/factor to value times factor.

    Raises
    ------
    ValueError
        Unless value > 0 and factor >= 1.
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
    """Return the estimate of a function that is monotone in each argument; a level by the union bound.

    Parameters
    ----------
    function : callable
        From values by name to an enclosure of its value there, whose upper end is shown.
    estimates : mapping of str to Estimate
        Estimates by the name of their constant.
    rising : collection of str
        The names in which it grows; in the others it falls.
    lowest : float, optional
        Of the function; it stands where an end of an estimate is infinite or refused by the function with a ValueError.
    highest : float, optional
        Of the function; it stands in the same cases.
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
