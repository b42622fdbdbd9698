"""A case of a program, given by vectors: a proof that no bound below its value holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..interval import Interval
from .certificate import NotProved
from .program import Program, Row, Vector
from .solve import Solution, solve

UNIT = 2**40  # coordinates and values are multiples of 1/UNIT
SHARES = (
    1e-8,
    1e-7,
    1e-6,
    1e-5,
    1e-4,
    1e-3,
    1e-2,
    0.1,
)  # of the strict case that is mixed in, tried one after the other
STEEPEST = 0.5  # curvature of the strict case


@dataclass(frozen=True)
class Witness:
    """Vectors of the two kinds in coordinates and the values of F, all integers in units of 1/UNIT.

    Parameters
    ----------
    common : sequence of sequence of int
        One row a shared vector or workers' mean; inner products make ``common``, which is thus semidefinite.
    spread : sequence of sequence of int
        The same of what a worker's vectors have beyond the mean.
    values : sequence of int
        Of F at the points.
    """

    common: Sequence[Sequence[int]]
    spread: Sequence[Sequence[int]]
    values: Sequence[int]


def attained(program: Program, witness: Witness) -> Interval:
    """Return an interval of floats around the value of a case that satisfies every inequality of the program, exactly.

    Parameters
    ----------
    program : Program
        One without zero, tied or conditional entries, as ``different_data`` makes.
    witness : Witness
        The case.

    Raises
    ------
    NotProved
        With the inequality that is broken.
    """
    if program.zero_common or program.zero_spread or program.tied or program.start:
        raise NotProved("a witness is for programs whose matrices are free; this one ties entries")
    common, spread = ([[int(v) for v in row] for row in rows] for rows in (witness.common, witness.spread))
    if (len(common), len(spread), len(witness.values)) != (program.num_common, program.num_spread, program.num_values):
        raise NotProved("a witness has one row for every vector and one value for every point")
    for limit in program.limits:
        products = [c * _dot(common[i], common[j]) for (i, j), c in limit.common.items()]
        products += [c * _dot(spread[i], spread[j]) for (i, j), c in limit.spread.items()]
        if sum(products) > limit.most * UNIT**2:
            raise NotProved("the witness exceeds a limit")
    places = [_located(point.position, common, spread) for point in program.points]
    slopes = [_located(point.gradient, common, spread) for point in program.points]
    heights = [0 if point.value is None else witness.values[point.value] * UNIT for point in program.points]
    for a, c in program.pairs:
        if _interpolation(program, places, slopes, a, c) + heights[c] - heights[a] > 0:
            raise NotProved(f"the witness breaks the interpolation inequality of points {a} and {c}")
    value = sum((c * Fraction(witness.values[i], UNIT) for i, c in program.objective_values.items()), Fraction(0))
    return Interval.outwards(value, value)


def _interpolation(program: Program, places: list, slopes: list, a: int, c: int) -> Fraction:
    step = [u - v for u, v in zip(places[a], places[c], strict=True)]
    change = [u - v for u, v in zip(slopes[a], slopes[c], strict=True)]
    squares = _dot(change, change) + program.mu * _dot(step, step) - 2 * program.mu * _dot(change, step)
    return _dot(slopes[c], step) + program.stiffness * squares


def _located(vector: Vector, common: list[list[int]], spread: list[list[int]]) -> list[Fraction]:
    """Return the coordinates of a vector of worker 1, in units of 1/UNIT."""
    return _combined(vector.common, common) + _combined(vector.first, spread)


def _combined(row: Row, vectors: list[list[int]]) -> list[Fraction]:
    return [sum((c * vectors[i][k] for i, c in row.items()), Fraction(0)) for k in range(len(vectors[0]))]


def _dot(left: Sequence, right: Sequence) -> Fraction:
    return sum((u * v for u, v in zip(left, right, strict=True)), Fraction(0))


def worst_case(program: Program, solution: Solution | None = None) -> tuple[Witness, Interval]:
    """Return a case within rounding of the optimum, and the interval of its value.

    Parameters
    ----------
    program : Program
        As ``different_data`` makes.
    solution : Solution or None, optional
        The optimum, if it is known; otherwise it is solved for (extra ``pep``).

    Raises
    ------
    NotProved
        If no share of the strict case makes every inequality hold exactly.
    """
    solution = solution or solve(program)
    strict = _strict_case(program)
    for share in SHARES:
        witness = _mixed(solution, strict, share)
        try:
            return witness, attained(program, witness)
        except NotProved as failure:
            last = failure
    raise NotProved(f"the solver's optimum gives no case, with no share up to {SHARES[-1]}: {last}")


def _mixed(solution: Solution, strict: tuple[np.ndarray, np.ndarray, np.ndarray], share: float) -> Witness:
    """Return (1 - 2 share) times the optimum plus share times the strict case, as vectors side by side."""
    rows = []
    for gram, column in zip((solution.common, solution.spread), strict[:2], strict=True):
        weights, directions = np.linalg.eigh(gram)
        kept = weights > 1e-13 * weights[-1]
        vectors = directions[:, kept] * np.sqrt(weights[kept] * (1 - 2 * share))
        joined = np.column_stack([vectors, np.sqrt(share) * column])
        rows.append([[round(float(v) * UNIT) for v in row] for row in joined])
    values = (1 - 2 * share) * solution.values + share * strict[2]
    return Witness(rows[0], rows[1], [round(float(v) * UNIT) for v in values])


def _strict_case(program: Program) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a line on which every worker has one curvature below 1, so that no interpolation inequality is tight."""
    common, spread = np.zeros(program.num_common), np.zeros(program.num_spread)
    values = np.zeros(program.num_values)
    common[0] = 1.0
    travel = -sum(float(c) for i, c in program.points[-1].position.common.items() if i)
    curvature = min(STEEPEST, 1 / (1 + travel))  # so that the steps stay apart
    pull = float(program.limits[1].most) ** 0.5  # of a worker's gradient at the minimiser
    for point in program.points:
        place = sum(float(c) * common[i] for i, c in point.position.common.items())
        beyond = sum(float(c) * spread[i] for i, c in point.position.first.items())
        for i in point.gradient.common:
            common[i] = curvature * place
        for i in point.gradient.first:
            spread[i] = curvature * beyond + pull
        if point.value is not None:
            values[point.value] = curvature / 2 * (place**2 + beyond**2) + beyond * pull
    return common, spread, values
