"""A measured rate-distortion curve: a family of operators on a source, with the gap to the source's own limit.

The limit of a claim's class is the worst case over vectors; a source may cost less.  Here the limit is the source's
rate-distortion function, enclosed by ``blahut_arimoto``; an operator that is unbiased is compared after the scaling by
1/(1 + nmse) that makes it the best contraction, so that both kinds meet the same curve.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bounds import Interval

from .blahut_arimoto import rate_distortion
from .calls.measure import DRAWS, measure
from .numbers import Vector, refusal, whole
from .records import plain
from .sources.empirical import Empirical
from .sources.source import Source

if TYPE_CHECKING:
    from operators.functions.own import Compressor

DIMENSION = 20_000
MOST_DIMENSION = 10**8


@dataclass(frozen=True)
class CurvePoint:
    """One operator on the source.

    Parameters
    ----------
    operator : str
        Its specification.
    bits : float, bits
        A coordinate, everything counted.
    nmse : float
        Measured relative squared error.
    shrunk_nmse : float
        After the best scaling at the decoder, nmse/(1 + nmse), for unbiased operators and those without a claim; else
        nmse.
    limit : Interval or None
        Enclosure of R(D) of the source there, bits per coordinate; None without error.
    gap : float or None
        Bits - limit.hi, so at least this far from the limit up to sampling; None without error.
    """

    operator: str
    bits: float
    nmse: float
    shrunk_nmse: float
    limit: Interval | None
    gap: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Curve:
    """Operators on one source, from few bits to many.

    Parameters
    ----------
    source : str
        Name of the source.
    d : int
        Length of the sampled vector.
    points : tuple of CurvePoint
        Ascending in bits.
    """

    source: str
    d: int
    points: tuple[CurvePoint, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the points as plain values."""
        return {"source": self.source, "d": self.d, "points": [point.to_dict() for point in self.points]}

    def plot(self, *, ax: Any = None) -> Any:
        """Return distortion against bits with the limit; returns the matplotlib axes.

        Parameters
        ----------
        ax : optional
            Matplotlib axes to draw on; new ones unless given.
        """
        from .drawing import plot_curve

        points = [(p.operator, p.bits, p.shrunk_nmse, p.limit) for p in self.points if p.limit is not None]
        return plot_curve([(name, bits, nmse, float(limit.hi)) for name, bits, nmse, limit in points], self.source, ax)


def measured_curve(
    operators: Iterable[Compressor],
    source: Source | Vector,
    *,
    d: int = DIMENSION,
    draws: int = DRAWS,
    seed: int = 0,
) -> Curve:
    """Send one vector of d independent draws of the source (or the vector itself) by every operator.

    Parameters
    ----------
    operators : iterable of str or Operator or callable
        Specifications such as "qsgd:4", ``Operator`` instances, or functions of your own with their bits (``own``).
    source
        A law of ``ratedist.sources``, or a float array whose own coordinates are then the law.
    d : int, optional
        Number of coordinates.
    draws : int, optional
        Number of messages, >= 1.
    seed : int, optional
        Of the operator's randomness.

    Raises
    ------
    ValueError
        For a bad d, an unsuited vector or an unknown operator.
    """
    size = whole("d", d)
    if size > MOST_DIMENSION:
        raise refusal("d", f"d <= {MOST_DIMENSION}", d)
    if isinstance(source, Source):
        law, x = source, source.sample(size, np.random.default_rng(seed))
    else:
        law, x = Empirical(source), np.asarray(source.detach().cpu() if hasattr(source, "detach") else source).ravel()
    points = [_point(operator, law, x, draws, seed) for operator in operators]
    return Curve(repr(law) if isinstance(source, Source) else "the vector's own coordinates", x.size, _sorted(points))


def _sorted(points: list[CurvePoint]) -> tuple[CurvePoint, ...]:
    return tuple(sorted(points, key=lambda point: point.bits))


def _point(operator: Compressor, law: Source, x: np.ndarray, draws: int, seed: int) -> CurvePoint:
    measured = measure(operator, x, draws=draws, seed=seed)
    error = measured.limit_nmse
    shrunk = error / (1 + error) if measured.limit_of.startswith("unbiased") else error
    if not 0 < shrunk < 1:
        return CurvePoint(measured.operator, measured.bits, measured.nmse, shrunk, None, None)
    limit = rate_distortion(law, shrunk)
    return CurvePoint(measured.operator, measured.bits, measured.nmse, shrunk, limit, measured.bits - float(limit.hi))
