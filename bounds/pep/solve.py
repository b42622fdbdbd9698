"""The optimum of a program in floats, by Clarabel (extra ``pep``); nothing here is part of a proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse

from .program import Entries, Program, Row

Matrices = tuple[np.ndarray, np.ndarray]


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
    clarabel = _clarabel()
    variables = _Variables(program)
    rows = [variables.row(*_interpolation(program, a, c)) for a, c in program.pairs]
    rows += [variables.row(*_dense(program, limit.common, limit.spread), {}) for limit in program.limits]
    most = [0.0] * len(program.pairs) + [float(limit.most) for limit in program.limits]
    cones = [block for block in variables.blocks() if block[1]]
    objective = variables.row(
        *_dense(program, program.objective.common, program.objective.spread), program.objective_values
    )
    objective += margin * sum(variables.trace(entries, n) for entries, n in cones)
    system = sparse.vstack([sparse.csc_matrix(np.array(rows)), *(variables.cone(*block) for block in cones)]).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    settings.direct_solve_method = "faer"
    optimum = clarabel.DefaultSolver(
        sparse.csc_matrix((variables.count, variables.count)),
        -objective,
        system,
        np.concatenate([most, np.zeros(system.shape[0] - len(most))]),
        [clarabel.NonnegativeConeT(len(most)), *(clarabel.PSDTriangleConeT(n) for _, n in cones)],
        settings,
    ).solve()
    if str(optimum.status) not in ("Solved", "AlmostSolved"):
        raise ArithmeticError(f"the solver stopped with {optimum.status}; the program may be unbounded")
    return _solution(program, variables, np.array(optimum.x), np.array(optimum.z), -optimum.obj_val, margin)


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
