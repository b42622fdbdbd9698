"""Products with few columns, summed in a fixed order in float64.

A BLAS sums as the processor likes; factors that one rank computes and another multiplies out must be the same bits
wherever they are computed.
"""

from __future__ import annotations

import numpy as np

from ..compilation import jit

DEPENDENT = 1e-10  # a column this small after the earlier ones are projected out of it, relative to before


@jit
def times(matrix, columns):
    """Return the product of an m x n matrix and n x r columns, float64, shape (m, r).

    Every fourth entry goes to the same one of four sums, which are added last.
    """
    rows = np.ascontiguousarray(columns.T)
    product = np.empty((matrix.shape[0], rows.shape[0]))
    whole = matrix.shape[1] // 4 * 4
    for i in range(matrix.shape[0]):
        for k in range(rows.shape[0]):
            first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
            for j in range(0, whole, 4):
                first += np.float64(matrix[i, j]) * rows[k, j]
                second += np.float64(matrix[i, j + 1]) * rows[k, j + 1]
                third += np.float64(matrix[i, j + 2]) * rows[k, j + 2]
                fourth += np.float64(matrix[i, j + 3]) * rows[k, j + 3]
            rest = 0.0
            for j in range(whole, matrix.shape[1]):
                rest += np.float64(matrix[i, j]) * rows[k, j]
            product[i, k] = first + second + third + fourth + rest
    return product


@jit
def transposed_times(matrix, columns):
    """Return the product of an m x n matrix, transposed, and m x r columns, float64, shape (n, r)."""
    product = np.zeros((columns.shape[1], matrix.shape[1]))
    for i in range(matrix.shape[0]):
        for k in range(columns.shape[1]):
            factor = np.float64(columns[i, k])
            for j in range(matrix.shape[1]):
                product[k, j] += np.float64(matrix[i, j]) * factor
    return np.ascontiguousarray(product.T)


@jit
def times_transposed(left, right):
    """Return the product of m x r columns and n x r columns, transposed: shape (m, n), in the dtype of the left."""
    rows = np.ascontiguousarray(right.T)
    product = np.empty((left.shape[0], right.shape[0]), left.dtype)
    total = np.empty(right.shape[0])
    for i in range(left.shape[0]):
        total[:] = 0.0
        for k in range(left.shape[1]):
            factor = np.float64(left[i, k])
            for j in range(total.size):
                total[j] += factor * rows[k, j]
        product[i] = total
    return product


@jit
def _length(columns, j):
    total = 0.0
    for i in range(columns.shape[0]):
        total += columns[i, j] * columns[i, j]
    return np.sqrt(total)


@jit
def orthonormal(columns):
    """Return an orthonormal basis of the columns' span by Gram-Schmidt, each column projected twice; float64, same
    shape.

    A column that depends on earlier ones, or is zero, becomes zero.
    """
    basis = columns.copy()
    for j in range(basis.shape[1]):
        size = _length(basis, j)
        for _ in range(2):
            for before in range(j):
                along = 0.0
                for i in range(basis.shape[0]):
                    along += basis[i, before] * basis[i, j]
                for i in range(basis.shape[0]):
                    basis[i, j] -= along * basis[i, before]
        left = _length(basis, j)
        for i in range(basis.shape[0]):
            basis[i, j] = basis[i, j] / left if left > DEPENDENT * size else 0.0
    return basis


@jit
def unit_columns(columns):
    """Return the columns at length 1, float32; zero ones stay zero."""
    unit = np.empty(columns.shape, np.float32)
    for j in range(columns.shape[1]):
        length = _length(columns, j)
        for i in range(columns.shape[0]):
            unit[i, j] = columns[i, j] / length if length > 0 else 0.0
    return unit
