"""The optimum of a program in floats, by Clarabel (extra ``pep``); nothing here is part of a proof."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse

from .program import Entries, Program, Row

Matrices = tuple[np.ndarray, np.ndarray]
SMALL_RESIDUAL = 1e-7  # relative; above it the program is solved again, in units of the first answer
LARGEST_RESIDUAL = 1e-5  # of what is called an optimum
SMALLEST_UNIT = 1e-12


@dataclass(frozen=True)
class Solution:
    """The optimum with its weights.

    Parameters
    ----------
    value : float
        The optimum.
    pairs : ndarray
        Weights of the interpolation inequalities.
    limits : ndarray
        Weights of the limits.
    common : ndarray
        ``common`` of the worst case.
    spread : ndarray
        ``spread`` of the worst case.
    values : ndarray
        Values of F in it.
    slack_common : ndarray
        Weights of the constraint on ``common``, the margin included.
    slack_spread : ndarray
        Weights of that on ``spread``.
    conditional : ndarray
        Weights of that on the conditional Gram matrix.
    """

    value: float
    pairs: np.ndarray
    limits: np.ndarray
    common: np.ndarray
    spread: np.ndarray
    values: np.ndarray
    slack_common: np.ndarray
    slack_spread: np.ndarray
    conditional: np.ndarray


def solve(program: Program, *, margin: float = 0.0) -> Solution:
    """Return the optimum of a program.

    Parameters
    ----------
    program : Program
        What is maximised.
    margin : float, optional
        Keeps the slacks at least this far from singular; the value grows by margin times the trace of the worst case.

    Raises
    ------
    ImportError
        Without Clarabel.
    ArithmeticError
        If the solver does not find the optimum.
    """
    best = min(attempts(program, margin=margin), key=lambda attempt: attempt.residual)
    if not best.residual <= LARGEST_RESIDUAL:
        raise ArithmeticError(
            f"the solver stopped with {best.status}, its relative residual {best.residual:.1e} is above "
            f"{LARGEST_RESIDUAL:g}: this is no optimum, and the program may be unbounded"
        )
    return best.solution


def attempts(program: Program, *, margin: float = 0.0) -> list[Attempt]:
    """Return the solver's answer, and if that is not accurate a second one, in units of the first.

    Parameters
    ----------
    program : Program
        What is maximised.
    margin : float, optional
        Of the slacks, as for ``solve``.

    Raises
    ------
    ImportError
        Without Clarabel.
    """
    first = _attempt(program, margin, _Units.ones(program))
    if first.residual <= SMALL_RESIDUAL:
        return [first]
    return [first, _attempt(program, margin, _Units.of(program, first.solution))]


@dataclass(frozen=True)
class Attempt:
    """What the solver answers to the program in some units.

    Parameters
    ----------
    solution : Solution
        In the given units.
    status : str
        The solver's word.
    residual : float
        The largest of gap and residuals, relative; infinite without an answer.
    """

    solution: Solution
    status: str
    residual: float


@dataclass(frozen=True)
class _Units:
    """Units of the program's vectors, of the values of F and of the objective, in which all numbers are near one.

    An optimum of small steps has gradients of the order of the rate beside noise of order one; in the given units their
    squares are as small as the solver's tolerances.
    """

    common: np.ndarray
    spread: np.ndarray
    value: float
    objective: float

    @classmethod
    def ones(cls, program: Program) -> _Units:
        return cls(np.ones(program.num_common), np.ones(program.num_spread), 1.0, 1.0)

    @classmethod
    def of(cls, program: Program, solution: Solution) -> _Units:
        """Return the root mean square of the vectors that no limit holds, in a first solution."""
        units: list[np.ndarray] = []
        for name, gram in (("common", solution.common), ("spread", solution.spread)):
            limited = {i for limit in program.limits for entry in getattr(limit, name) for i in entry}
            free = np.array([i for i in range(len(gram)) if i not in limited], int)
            unit = np.ones(len(gram))
            if len(free):
                unit[free] = np.sqrt(max(float(np.diag(gram)[free].mean()), SMALLEST_UNIT))
            units.append(unit)
        value = max(float(np.abs(solution.values).max(initial=0.0)), SMALLEST_UNIT)
        return cls(units[0], units[1], value, max(abs(solution.value), SMALLEST_UNIT))


def _attempt(program: Program, margin: float, units: _Units) -> Attempt:
    """Solve the program written in these units; the solution is in the given ones."""
    clarabel = _clarabel()
    variables = _Variables(program)
    rows = [variables.row(*_interpolation(program, a, c)) for a, c in program.pairs]
    rows += [variables.row(*_dense(program, limit.common, limit.spread), {}) for limit in program.limits]
    most = np.array([0.0] * len(program.pairs) + [float(limit.most) for limit in program.limits])
    blocks = list(zip(variables.blocks(), variables.units_of_blocks(units), strict=True))
    cones = [(entries, n, unit) for (entries, n), unit in blocks if n]
    objective = variables.row(
        *_dense(program, program.objective.common, program.objective.spread), program.objective_values
    )
    objective += margin * sum(variables.trace(entries, n) for entries, n, _ in cones)
    of_variables = variables.units(units)
    linear = np.array(rows) * of_variables
    of_rows = np.abs(linear).max(axis=1)
    of_rows[of_rows == 0] = 1.0
    cone_rows = [1 / _products(unit) for *_, unit in cones]
    system = sparse.vstack(
        [
            sparse.csc_matrix(linear / of_rows[:, None]),
            *(
                sparse.diags(scale) @ variables.cone(entries, n) @ sparse.diags(of_variables)
                for (entries, n, _), scale in zip(cones, cone_rows, strict=True)
            ),
        ]
    ).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    settings.direct_solve_method = "faer"
    optimum = clarabel.DefaultSolver(
        sparse.csc_matrix((variables.count, variables.count)),
        -objective * of_variables / units.objective,
        system,
        np.concatenate([most / of_rows, np.zeros(system.shape[0] - len(most))]),
        [clarabel.NonnegativeConeT(len(most)), *(clarabel.PSDTriangleConeT(n) for _, n, _ in cones)],
        settings,
    ).solve()
    weights = np.array(optimum.z) * units.objective * np.concatenate([1 / of_rows, *cone_rows])
    solution = _solution(
        program, variables, np.array(optimum.x) * of_variables, weights, -optimum.obj_val * units.objective, margin
    )
    gap = abs(optimum.obj_val - optimum.obj_val_dual) / max(abs(optimum.obj_val), SMALLEST_UNIT)
    residual = max(gap, optimum.r_prim, optimum.r_dual)
    status = str(optimum.status)
    return Attempt(solution, status, residual if status in ("Solved", "AlmostSolved") else math.inf)


def _clarabel() -> Any:
    try:
        import clarabel
    except ImportError:
        raise ImportError("solving a program needs Clarabel: pip install 'ratedist[pep]'") from None
    return clarabel


class _Variables:
    """Entries of the two matrices that are free, and the values of F, as one vector."""

    def __init__(self, program: Program) -> None:
        self.program, share, shared = program, float(program.share), program.num_shared
        self.common: dict[tuple[int, int], tuple[int, float]] = {}
        self.spread: dict[tuple[int, int], tuple[int, float]] = {}
        tied, zero_common, zero_spread = set(program.tied), set(program.zero_common), set(program.zero_spread)
        count = 0
        for j in range(program.num_spread):
            for i in range(j + 1):
                if (i, j) in zero_spread:
                    continue
                self.spread[i, j] = (count, 1.0)
                if (i, j) in tied:
                    self.common[shared + i, shared + j] = (count, share)
                count += 1
        for j in range(program.num_common):
            for i in range(j + 1):
                if (i, j) not in zero_common and (i - shared, j - shared) not in tied:
                    self.common[i, j] = (count, 1.0)
                    count += 1
        self.first_value, self.count = count, count + program.num_values
        self._arrays = [self._indexed(entries) for entries in (self.common, self.spread)]

    @staticmethod
    def _indexed(entries: dict[tuple[int, int], tuple[int, float]]) -> tuple[np.ndarray, ...]:
        keys = np.array(list(entries), int).reshape(-1, 2)
        variables = np.array([v for v, _ in entries.values()], int)
        twice = np.array([c for _, c in entries.values()]) * np.where(keys[:, 0] == keys[:, 1], 1, 2)
        return keys[:, 0], keys[:, 1], variables, twice

    def row(self, common: np.ndarray, spread: np.ndarray, values: Any) -> np.ndarray:
        """Return a linear function, given by symmetric coefficient matrices, in the variables."""
        row = np.zeros(self.count)
        for (i, j, variables, twice), matrix in zip(self._arrays, (common, spread), strict=True):
            np.add.at(row, variables, twice * matrix[i, j])
        for index, coefficient in values.items():
            row[self.first_value + index] += float(coefficient)
        return row

    def blocks(self) -> list[tuple[Any, int]]:
        """Return the semidefinite constraints: (function from i, j to the terms of the entry, order)."""
        program = self.program
        starts = len(program.start)
        indices = [*program.start, *(program.num_shared + k for k in program.drawn)]

        def common(i: int, j: int) -> list[tuple[int, float]]:
            return [self.common[i, j]] if (i, j) in self.common else []

        def spread(i: int, j: int) -> list[tuple[int, float]]:
            return [self.spread[i, j]] if (i, j) in self.spread else []

        def conditional(i: int, j: int) -> list[tuple[int, float]]:
            terms = common(indices[i], indices[j])
            if i < starts:
                return terms
            beyond = spread(program.drawn[i - starts], program.drawn[j - starts])
            return terms + [(variable, -float(program.share) * c) for variable, c in beyond]

        return [(common, program.num_common), (spread, program.num_spread), (conditional, len(indices))]

    def units(self, units: _Units) -> np.ndarray:
        """Return the unit of every variable."""
        of_variables = np.full(self.count, units.value)
        for entries, unit in ((self.common, units.common), (self.spread, units.spread)):
            for (i, j), (variable, _) in entries.items():
                of_variables[variable] = unit[i] * unit[j]
        return of_variables

    def units_of_blocks(self, units: _Units) -> list[np.ndarray]:
        """Return the unit of every row of the blocks."""
        program = self.program
        indices = [*program.start, *(program.num_shared + k for k in program.drawn)]
        return [units.common, units.spread, units.common[indices]]

    def trace(self, entries: Any, n: int) -> np.ndarray:
        """Return the trace of a block in the variables."""
        row = np.zeros(self.count)
        for i in range(n):
            for variable, coefficient in entries(i, i):
                row[variable] += coefficient
        return row

    def cone(self, entries: Any, n: int) -> sparse.csc_matrix:
        """Return minus the block's upper triangle, off-diagonal entries times sqrt(2), in the variables."""
        triples = [
            (t, variable, -coefficient * (1.0 if i == j else np.sqrt(2)))
            for t, (i, j) in enumerate(_upper(n))
            for variable, coefficient in entries(i, j)
        ]
        rows, columns, values = zip(*triples, strict=True)
        return sparse.csc_matrix((values, (rows, columns)), shape=(n * (n + 1) // 2, self.count))

    def matrix(self, x: np.ndarray, common: bool) -> np.ndarray:
        entries, n = (self.common, self.program.num_common) if common else (self.spread, self.program.num_spread)
        matrix = np.zeros((n, n))
        for (i, j), (variable, coefficient) in entries.items():
            matrix[i, j] = matrix[j, i] = coefficient * x[variable]
        return matrix


def _products(unit: np.ndarray) -> np.ndarray:
    """Return the products of two rows' units, along the upper triangle."""
    return np.array([unit[i] * unit[j] for i, j in _upper(len(unit))])


def _upper(n: int) -> list[tuple[int, int]]:
    return [(i, j) for j in range(n) for i in range(j + 1)]


def _dense(program: Program, common: Entries, spread: Entries) -> Matrices:
    matrices = np.zeros((program.num_common,) * 2), np.zeros((program.num_spread,) * 2)
    for matrix, entries in zip(matrices, (common, spread), strict=True):
        for (i, j), coefficient in entries.items():
            matrix[i, j] += float(coefficient) / (1 if i == j else 2)
            if i != j:
                matrix[j, i] += float(coefficient) / 2
    return matrices


def _interpolation(program: Program, a: int, c: int) -> tuple[np.ndarray, np.ndarray, dict[int, float]]:
    """Return ``F(c) - F(a) + <g_c, s> + kappa (|h|^2 + mu |s|^2 - 2 mu <h, s>)``, s = a - c, h = g_a - g_c; <= 0."""
    left, right = program.points[a], program.points[c]
    widths = (program.num_common, program.num_spread, program.num_spread)

    def rows(given: tuple[Row, Row, Row]) -> list[np.ndarray]:
        dense = [np.zeros(width) for width in widths]
        for vector, row in zip(dense, given, strict=True):
            for index, coefficient in row.items():
                vector[index] = float(coefficient)
        return dense

    at_c, step, change = rows(right.gradient.rows()), rows(left.position.rows()), rows(left.gradient.rows())
    step = [u - v for u, v in zip(step, rows(right.position.rows()), strict=True)]
    change = [u - v for u, v in zip(change, at_c, strict=True)]
    kappa, mu, share = (float(v) for v in (program.stiffness, program.mu, program.share))
    common, spread = np.zeros((widths[0],) * 2), np.zeros((widths[1],) * 2)
    terms = [(at_c, step, 1.0), (change, change, kappa), (step, step, kappa * mu), (change, step, -2 * kappa * mu)]
    for u, v, factor in terms:
        if factor:
            common += factor * np.outer(u[0], v[0])
            spread += factor * (
                np.outer(u[1], v[1]) + np.outer(u[2], v[2]) - share * np.outer(u[1] + u[2], v[1] + v[2])
            )
    values: dict[int, float] = {}
    for point, sign in ((right, 1.0), (left, -1.0)):
        if point.value is not None:
            values[point.value] = values.get(point.value, 0.0) + sign
    return (common + common.T) / 2, (spread + spread.T) / 2, values


def _solution(
    program: Program, variables: _Variables, x: np.ndarray, z: np.ndarray, value: float, margin: float
) -> Solution:
    pairs, limits = len(program.pairs), len(program.limits)
    begin = pairs + limits
    duals = []
    for _, n in variables.blocks():
        matrix = np.zeros((n, n))
        for t, (i, j) in enumerate(_upper(n)):
            matrix[i, j] = matrix[j, i] = z[begin + t] / (1 if i == j else np.sqrt(2))
        duals.append(matrix + margin * np.eye(n))
        begin += n * (n + 1) // 2
    common, spread = variables.matrix(x, True), variables.matrix(x, False)
    values = x[variables.first_value :]
    return Solution(value, z[:pairs], z[pairs : pairs + limits], common, spread, values, *duals)
