"""A proof that no case of a program exceeds a value: weights for its inequalities, checked by exact arithmetic.

Weak duality.  Take weights w >= 0 of the interpolation inequalities, v >= 0 of the limits, and any numbers y for
entries that are zero or tied.  Take a positive semidefinite C for the Gram matrix of what is known before the workers
draw and of their conditional means.  Then ::

    objective = sum v most - <S_common, common> - <S_spread, spread> - (sums of non-negative terms)

where the two slack matrices follow from the weights by collecting coefficients, provided the values of F cancel.  If
they do, and both slacks and C are positive semidefinite, the objective is at most ``sum v most``.  Weights are integers
over a fixed denominator, the values cancel exactly, the slacks are exact rationals, and their definiteness is decided
by LDL^T in ball arithmetic: a pivot counts only if its whole ball is positive.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx, fmpq, fmpq_mat

from ..interval import Interval
from .program import Entries, Program, Row

UNIT = 2**36  # weights are multiples of 1/UNIT, or of 1/(UNIT times the denominator of the objective's values)
PRECISION = 128


class NotProved(ArithmeticError):  # noqa: N818  a name users are told to catch
    """A certificate does not prove what it should."""


@dataclass(frozen=True)
class Certificate:
    """Dual weights of a program, all integers.

    Parameters
    ----------
    pairs : sequence of int
        Of the interpolation inequalities, in the order of ``Program.pairs``, >= 0, in units of ``pair_unit(program)``.
    limits : sequence of int
        Of the limits, >= 0, in units of 1/UNIT.
    free : sequence of int
        Of ``zero_common``, ``tied`` and ``zero_spread``, one after the other, in units of 1/UNIT.
    conditional : sequence of int
        Upper triangle, column by column, of C, in units of 1/UNIT.
    """

    pairs: Sequence[int]
    limits: Sequence[int]
    free: Sequence[int]
    conditional: Sequence[int]


def pair_unit(program: Program) -> Fraction:
    """Return the unit of the weights of pairs: the values of F can then cancel exactly."""
    return Fraction(1, UNIT * math.lcm(*(c.denominator for c in program.objective_values.values())))


def verify(program: Program, certificate: Certificate) -> Interval:
    """Return an interval of floats around the value that the certificate proves to be an upper bound.

    Parameters
    ----------
    program : Program
        What is bounded.
    certificate : Certificate
        The proof.

    Raises
    ------
    NotProved
        With the step that fails.
    """
    lengths = (len(program.pairs), len(program.limits), num_free(program), triangle(conditional_size(program)))
    given = tuple(map(len, (certificate.pairs, certificate.limits, certificate.free, certificate.conditional)))
    if given != lengths:
        raise NotProved(f"a certificate of this program has {lengths} weights; got {given}")
    if min((*certificate.pairs, *certificate.limits), default=0) < 0:
        raise NotProved("a weight of an inequality must be >= 0; one is negative")
    if any(remaining_values(program, certificate.pairs)):
        raise NotProved("the values of F do not cancel")
    for name, matrix in zip(
        ("common slack", "spread slack", "conditional weight"), slacks(program, certificate), strict=True
    ):
        if not is_positive_definite(matrix):
            raise NotProved(f"the {name} is not positive definite")
    bound = sum(
        (Fraction(w, UNIT) * limit.most for w, limit in zip(certificate.limits, program.limits, strict=True)),
        Fraction(0),
    )
    return Interval.outwards(bound, bound)


def remaining_values(program: Program, pairs: Sequence[int]) -> list[Fraction]:
    """Return the coefficients of the values of F that the weights leave over, in units of ``pair_unit``."""
    unit = pair_unit(program)
    left = [program.objective_values.get(i, Fraction(0)) / unit for i in range(program.num_values)]
    for weight, (a, c) in zip(pairs, program.pairs, strict=True):
        if weight:
            for point, sign in ((program.points[c], -1), (program.points[a], 1)):
                if point.value is not None:
                    left[point.value] += sign * weight
    return left


def slacks(program: Program, certificate: Certificate) -> tuple[fmpq_mat, fmpq_mat, fmpq_mat]:
    """Return the two slack matrices and C, exactly.

    Parameters
    ----------
    program : Program
        What is bounded.
    certificate : Certificate
        Its weights.
    """
    unit = pair_unit(program)
    common, spread = (-matrix for matrix in weighted_pairs(program, certificate.pairs))
    scale = fmpq(unit.numerator, unit.denominator)
    common, spread = common * scale, spread * scale
    _add(common, program.objective.common, Fraction(1))
    _add(spread, program.objective.spread, Fraction(1))
    for weight, limit in zip(certificate.limits, program.limits, strict=True):
        _add(common, limit.common, Fraction(-weight, UNIT))
        _add(spread, limit.spread, Fraction(-weight, UNIT))
    given = _conditional(program, certificate.conditional)
    _add_conditional(program, given, common, spread)
    for weight, (entries, on_spread) in zip(certificate.free, free_entries(program), strict=True):
        _add(common, entries, Fraction(weight, UNIT))
        _add(spread, on_spread, Fraction(weight, UNIT))
    return -common, -spread, given


def free_entries(program: Program) -> list[tuple[Entries, Entries]]:
    """Return the linear functions of both matrices that are zero, twice the entry off the diagonal."""
    n = program.num_shared
    zero: list[tuple[Entries, Entries]] = [({e: Fraction(1)}, {}) for e in program.zero_common]
    zero += [({(n + i, n + j): Fraction(1)}, {(i, j): -program.share}) for i, j in program.tied]
    return zero + [({}, {e: Fraction(1)}) for e in program.zero_spread]


def num_free(program: Program) -> int:
    """Return the number of free weights."""
    return len(program.zero_common) + len(program.tied) + len(program.zero_spread)


def conditional_size(program: Program) -> int:
    """Return the order of C."""
    return len(program.start) + len(program.drawn)


def triangle(n: int) -> int:
    """Return the number of entries of a symmetric matrix."""
    return n * (n + 1) // 2


def weighted_pairs(program: Program, weights: Sequence[int]) -> tuple[fmpq_mat, fmpq_mat]:
    """Return the sum of the weighted left sides of the interpolation inequalities, without the values."""
    count = len(program.points)
    weight = [[0] * count for _ in range(count)]
    for w, (a, c) in zip(weights, program.pairs, strict=True):
        weight[a][c] = w
    out = [sum(row) for row in weight]
    into = [sum(weight[a][c] for a in range(count)) for c in range(count)]
    by_gradient = fmpq_mat(
        count, count, [weight[a][c] - (into[c] if a == c else 0) for c in range(count) for a in range(count)]
    )
    laplacian = fmpq_mat(
        count,
        count,
        [(out[i] + into[i] if i == j else 0) - weight[i][j] - weight[j][i] for i in range(count) for j in range(count)],
    )
    kappa, mu = (fmpq(v.numerator, v.denominator) for v in (program.stiffness, program.mu))
    positions = _coefficients(program, [point.position.rows() for point in program.points])
    gradients = _coefficients(program, [point.gradient.rows() for point in program.points])
    total = _form(by_gradient - laplacian * (2 * kappa * mu), gradients, positions, program)
    squares = [(laplacian * kappa, gradients)] + ([(laplacian * (kappa * mu), positions)] if mu else [])
    for middle, rows in squares:
        total = [a + b for a, b in zip(total, _form(middle, rows, rows, program), strict=True)]
    half = fmpq(1, 2)
    common, spread = ((matrix + matrix.transpose()) * half for matrix in total)
    return common, spread


def _form(middle: fmpq_mat, left: list[fmpq_mat], right: list[fmpq_mat], program: Program) -> list[fmpq_mat]:
    common, first, second = (a.transpose() * middle * b for a, b in zip(left, right, strict=True))
    share = fmpq(program.share.numerator, program.share.denominator)
    both = (left[1] + left[2]).transpose() * middle * (right[1] + right[2])
    return [common, first + second - both * share]


def _coefficients(program: Program, rows: Sequence[Sequence[Row]]) -> list[fmpq_mat]:
    matrices = []
    for channel, width in enumerate((program.num_common, program.num_spread, program.num_spread)):
        matrix = fmpq_mat(len(rows), width)
        for i, row in enumerate(rows):
            for j, value in row[channel].items():
                matrix[i, j] = fmpq(value.numerator, value.denominator)
        matrices.append(matrix)
    return matrices


def _add(matrix: fmpq_mat, entries: Entries, factor: Fraction) -> None:
    """Add a linear function of the entries to its coefficient matrix; in place."""
    for (i, j), coefficient in entries.items():
        value = coefficient * factor
        half = fmpq(value.numerator, value.denominator * (1 if i == j else 2))
        matrix[i, j] += half
        if i != j:
            matrix[j, i] += half


def _conditional(program: Program, weights: Sequence[int]) -> fmpq_mat:
    n = conditional_size(program)
    matrix, upper = fmpq_mat(n, n), iter(weights)
    for j in range(n):
        for i in range(j + 1):
            matrix[i, j] = matrix[j, i] = fmpq(next(upper), UNIT)
    return matrix


def _add_conditional(program: Program, given: fmpq_mat, common: fmpq_mat, spread: fmpq_mat) -> None:
    """Add <C, Gram of (start, conditional means)>, whose lower block is B = P - spread/m; in place."""
    starts = len(program.start)
    indices = [*program.start, *(program.num_shared + k for k in program.drawn)]
    share = fmpq(program.share.numerator, program.share.denominator)
    for i, row in enumerate(indices):
        for j, column in enumerate(indices):
            common[row, column] += given[i, j]
            if i >= starts and j >= starts:
                k, n = program.drawn[i - starts], program.drawn[j - starts]
                spread[k, n] -= given[i, j] * share


def is_positive_definite(matrix: fmpq_mat) -> bool:
    """Return whether every pivot of LDL^T is certainly positive, in ball arithmetic.

    Parameters
    ----------
    matrix : fmpq_mat
        Symmetric.
    """
    before = ctx.prec
    ctx.prec = PRECISION
    try:
        rows = [[arb(matrix[i, j]) for j in range(i + 1)] for i in range(matrix.nrows())]
        for k in range(len(rows)):
            pivot = rows[k][k]
            if not pivot > 0:
                return False
            inverse = 1 / pivot
            for i in range(k + 1, len(rows)):
                factor = rows[i][k]
                if factor == 0:
                    continue
                factor = factor * inverse
                for j in range(k + 1, i + 1):
                    rows[i][j] -= factor * rows[j][k]
        return True
    finally:
        ctx.prec = before
