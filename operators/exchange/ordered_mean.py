"""The mean of vectors that come one after the other, summed in their order in float64: the same bits on every rank.

On the CPU in compiled code, with as few passes over the memory as the sums allow; elsewhere plainly, which is also the
reference of the compiled way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Self

import numpy as np
import torch

from ..compilation import jit


def ordered_mean(vectors: Iterable[torch.Tensor], dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Return the mean of at least one vector: 0 and then one after the other summed, over their number.

    Parameters
    ----------
    vectors : iterable of tensor, shape (d,)
        All of one dtype, on one device.
    dtype : dtype, optional
        Of the mean, float64 or float32.
    """
    iterator = iter(vectors)
    first = next(iterator)
    if first.device.type == "cpu" and first.dtype == torch.float32:
        return _compiled(first, iterator, dtype)
    return plain_mean(chain([first], iterator), dtype)


def plain_mean(vectors: Iterable[torch.Tensor], dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Return the same, for any device, by one operation of torch after the other.

    Parameters
    ----------
    vectors : iterable of tensor, shape (d,)
        On one device.
    dtype : dtype, optional
        Of the mean.
    """
    iterator = iter(vectors)
    total, count = next(iterator).to(torch.float64) + 0.0, 1
    for vector in iterator:
        total += vector
        count += 1
    return total.div_(count).to(dtype)


def _compiled(first: torch.Tensor, others: Iterator[torch.Tensor], dtype: torch.dtype) -> torch.Tensor:
    """Sum all but the last, which is added while the sum is divided."""
    last = next(others, None)
    if last is None:
        return plain_mean([first], dtype)
    count, total, sums = 2, _array(first), None
    for vector in others:
        sums = np.empty(first.numel()) if sums is None else sums
        _add(total, _array(last), sums)
        count, total, last = count + 1, sums, vector
    mean = torch.empty(first.numel(), dtype=dtype) if sums is None or dtype != torch.float64 else torch.from_numpy(sums)
    _close(total, _array(last), float(count), mean.numpy())
    return mean


class OrderedSum:
    """The sum of vectors that come in batches: row after row in float64, as ``ordered_mean`` adds them.

    Parameters
    ----------
    d : int
        Number of coordinates of a vector.
    device : device or str, optional
        Device of the vectors.
    """

    def __init__(self, d: int, device: torch.device | str = "cpu") -> None:
        self.total, self.count = torch.zeros(d, dtype=torch.float64, device=device), 0

    def add(self, rows: torch.Tensor) -> Self:
        """Add the rows of a matrix in their order; return the sum itself.

        Parameters
        ----------
        rows : tensor, shape (n, d)
            float32 or float64 vectors on the device of the sum.
        """
        self.count += rows.shape[0]
        if rows.is_cpu:
            add_rows(self.total.numpy(), rows.contiguous().numpy())
        else:
            for row in rows:
                self.total += row
        return self

    def mean(self) -> torch.Tensor:
        """Return the mean of all rows so far: float64, shape (d,)."""
        return self.total / self.count


def _array(vector: torch.Tensor) -> np.ndarray:
    return vector.detach().contiguous().numpy()


@jit
def _add(a, b, out):
    for i in range(out.size):
        out[i] = 0.0 + np.float64(a[i]) + np.float64(b[i])


@jit
def _close(a, b, count, out):
    scale = 1 / count
    if math.frexp(count)[0] == 0.5:  # a power of two: a product is as exact and takes two thirds of the time
        for i in range(out.size):
            out[i] = (0.0 + np.float64(a[i]) + np.float64(b[i])) * scale
    else:
        for i in range(out.size):
            out[i] = (0.0 + np.float64(a[i]) + np.float64(b[i])) / count


@jit
def add_rows(total, rows):
    """Add the rows of a matrix to a float64 vector, in their order.

    Parameters
    ----------
    total
        float64, shape (d,); it is changed.
    rows
        Numbers of any float type, shape (n, d).
    """
    for row in range(rows.shape[0]):
        for i in range(total.size):
            total[i] += np.float64(rows[row, i])
