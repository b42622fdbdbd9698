"""A worst case among exchangeable workers as a semidefinite program whose size does not depend on their number.

Vectors are of two kinds: shared ones (the mean model's gradients) and ones that every worker has (its own gradients and
noise).  By symmetry the expected inner products of all of them are two matrices: ``common``, the Gram matrix of the
shared vectors and the workers' means, and ``spread``, A - B with A that of one worker's vectors and B that between two
workers.  With P the workers' part of ``common``, A = P + (1 - 1/m) spread and B = P - spread/m.  Both matrices are
positive semidefinite, and every such pair belongs to some m workers.

A point x (or a gradient at it) is a row of coefficients in the common vectors and one row each for what worker 1 and
worker 2 have beyond the mean.  The inner product of two of them is, with s = 1/m, ::

    <u, v> = u.common M v.common + u.first Q v.first + u.second Q v.second
             - s (u.first + u.second) Q (v.first + v.second)

Of F it is asked only that every pair of points obeys the interpolation inequality of curvature in [mu, 1].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Row = dict[int, Fraction]  # coefficients by vector
Entries = dict[tuple[int, int], Fraction]  # coefficients of entries (i, j), i <= j, of a symmetric matrix


@dataclass(frozen=True)
class Vector:
    """One vector in coefficients.

    Parameters
    ----------
    common : dict of int to Fraction
        In the shared vectors and the workers' means.
    first : dict of int to Fraction, optional
        In what worker 1's vectors have beyond the mean.
    second : dict of int to Fraction, optional
        The same of worker 2.
    """

    common: Row
    first: Row = field(default_factory=dict)
    second: Row = field(default_factory=dict)

    def plus(self, other: Vector, factor: Fraction) -> Vector:
        """Return the sum with a multiple of another vector.

        Parameters
        ----------
        other : Vector
            The other vector.
        factor : Fraction
            What it is multiplied with.
        """
        rows = []
        for row, added in zip(self.rows(), other.rows(), strict=True):
            total = dict(row)
            for index, coefficient in added.items():
                total[index] = total.get(index, Fraction(0)) + factor * coefficient
            rows.append(total)
        return Vector(*rows)

    def rows(self) -> tuple[Row, Row, Row]:
        """Return the three rows."""
        return self.common, self.first, self.second


@dataclass(frozen=True)
class Point:
    """Where F is looked at.

    Parameters
    ----------
    position : Vector
        The point.
    gradient : Vector
        Of F there.
    value : int or None
        Index of the expected value of F there; None where it is the zero of all values.
    """

    position: Vector
    gradient: Vector
    value: int | None


@dataclass(frozen=True)
class Limit:
    """A linear function of the two matrices that is at most ``most``.

    Parameters
    ----------
    common : dict of (int, int) to Fraction
        Coefficients of entries of ``common``.
    spread : dict of (int, int) to Fraction
        Coefficients of entries of ``spread``.
    most : Fraction
        The largest value.
    """

    common: Entries
    spread: Entries
    most: Fraction


@dataclass(frozen=True)
class Program:
    """Maximise objective over the two matrices and the values of F.

    Parameters
    ----------
    num_common : int
        Order of ``common``.
    num_spread : int
        Order of ``spread``.
    num_values : int
        Number of values of F.
    share : Fraction
        1/m.
    mu : Fraction
        Least curvature of F, below 1.
    points : sequence of Point
        Where F is looked at.
    pairs : sequence of (int, int)
        The interpolation inequalities, as indices into points.
    objective : Limit
        What is maximised, without the values; ``most`` is not used.
    objective_values : dict of int to Fraction
        Coefficients of the values in it.
    limits : sequence of Limit
        What is bounded.
    num_shared : int
        The first vectors of ``common`` that are shared, not means of workers'.
    zero_common : sequence of (int, int)
        Entries i <= j of ``common`` that are zero.
    zero_spread : sequence of (int, int)
        Entries i <= j of ``spread`` that are zero.
    tied : sequence of (int, int)
        Entries of ``spread`` at which B is zero, so that the workers' part of ``common`` is spread/m.
    start : sequence of int
        Vectors of ``common`` that are known before the workers draw: given them, two workers are independent.
    drawn : sequence of int
        Vectors of the workers whose means, given the start, form B.
    """

    num_common: int
    num_spread: int
    num_values: int
    share: Fraction
    mu: Fraction
    points: Sequence[Point]
    pairs: Sequence[tuple[int, int]]
    objective: Limit
    objective_values: dict[int, Fraction]
    limits: Sequence[Limit]
    num_shared: int
    zero_common: Sequence[tuple[int, int]] = ()
    zero_spread: Sequence[tuple[int, int]] = ()
    tied: Sequence[tuple[int, int]] = ()
    start: Sequence[int] = ()
    drawn: Sequence[int] = ()

    @property
    def stiffness(self) -> Fraction:
        """1/(2 (1 - mu)), the factor of the squares in an interpolation inequality."""
        return 1 / (2 * (1 - self.mu))


def inner_product(left: Vector, right: Vector, factor: Fraction, share: Fraction) -> tuple[Entries, Entries]:
    """Return factor times the inner product of two vectors, as coefficients of entries of both matrices.

    Parameters
    ----------
    left : Vector
        The first vector.
    right : Vector
        The second vector.
    factor : Fraction
        What it is multiplied with.
    share : Fraction
        1/m.
    """
    common: Entries = {}
    spread: Entries = {}
    _outer(common, left.common, right.common, factor)
    _outer(spread, left.first, right.first, factor * (1 - share))
    _outer(spread, left.second, right.second, factor * (1 - share))
    _outer(spread, left.first, right.second, -factor * share)
    _outer(spread, left.second, right.first, -factor * share)
    return common, spread


def add_entries(total: Entries, added: Entries) -> None:
    """Add a linear function to another, in place."""
    for entry, coefficient in added.items():
        total[entry] = total.get(entry, Fraction(0)) + coefficient


def _outer(entries: Entries, left: Row, right: Row, factor: Fraction) -> None:
    for i, u in left.items():
        for j, v in right.items():
            entry = (min(i, j), max(i, j))
            entries[entry] = entries.get(entry, Fraction(0)) + factor * u * v
