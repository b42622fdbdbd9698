"""Products of thin matrices are those of plain Python loops, bit for bit, whatever BLAS there is."""

import math

import numpy as np
import pytest

from operators.quantisers.thin_products import orthonormal, times, times_transposed, transposed_times, unit_columns


def product(rows, columns):
    """Sums in the order of the entries, each product and sum rounded to binary64."""
    result = []
    for row in rows:
        result.append([])
        for column in zip(*columns, strict=True):
            total = 0.0
            for a, b in zip(row, column, strict=True):
                total += a * b
            result[-1].append(total)
    return np.array(result)


def by_fours(rows, columns):
    """Four sums of every fourth entry and one of what is left, added last."""
    n = len(columns)
    parts = [range(lane, n // 4 * 4, 4) for lane in range(4)] + [range(n // 4 * 4, n)]
    sums = [product([[row[j] for j in part] for row in rows], [columns[j] for j in part]) for part in parts if part]
    total = np.zeros((len(rows), len(columns[0])))
    for each in sums:
        total = total + each
    return total


def matrices(m, n, r, dtype):
    rng = np.random.default_rng(m + n)
    return rng.standard_normal((m, n)).astype(dtype), rng.standard_normal((n, r)), rng.standard_normal((m, r))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("m", "n", "r"), [(1, 1, 1), (3, 17, 1), (40, 33, 4), (2, 129, 3)])
def test_products_are_those_of_plain_loops_bit_for_bit(m, n, r, dtype):
    matrix, right, left = matrices(m, n, r, dtype)
    plain = matrix.astype(float).tolist()

    assert (times(matrix, right) == by_fours(plain, right.tolist())).all()
    assert (transposed_times(matrix, left) == product(list(zip(*plain, strict=True)), left.tolist())).all()
    outer = times_transposed(left.astype(dtype), right)
    assert outer.dtype == dtype
    assert (outer == product(left.astype(dtype).astype(float).tolist(), right.T.tolist()).astype(dtype)).all()


def plain_basis(columns):
    """Gram-Schmidt in plain Python, each column projected twice."""
    basis = []
    for column in zip(*columns, strict=True):
        v = list(column)
        size = length(v)
        for _ in range(2):
            for p in basis:
                along = 0.0
                for a, b in zip(p, v, strict=True):
                    along += a * b
                v = [b - along * a for a, b in zip(p, v, strict=True)]
        left = length(v)
        basis.append([a / left if left > 1e-10 * size else 0.0 for a in v])
    return np.array(basis).T


def length(v):
    total = 0.0
    for a in v:
        total += a * a
    return math.sqrt(total)


@pytest.mark.parametrize(("m", "r"), [(1, 1), (9, 2), (64, 5), (3, 4)])
def test_bases_and_unit_columns_are_those_of_plain_loops_bit_for_bit(m, r):
    columns = np.random.default_rng(m).standard_normal((m, r))
    columns[:, r // 2] = 0 if m == 64 else columns[:, r // 2]

    assert (orthonormal(columns) == plain_basis(columns.tolist())).all()
    unit = [[a / length(c) if any(c) else 0.0 for a in c] for c in zip(*columns.tolist(), strict=True)]
    assert (unit_columns(columns) == np.array(unit).T.astype(np.float32)).all()
