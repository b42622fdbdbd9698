"""The empirical source of a gradient tensor: its own coordinates as the law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bounds import Interval

from .source import Cells, Source

BLOCKS = 16  # of the entropy interval


class Empirical(Source):
    """The law that draws one coordinate of a given tensor.

    Parameters
    ----------
    values
        Any real array or torch tensor with at least one non-zero, all entries finite; it is flattened and copied to
        float64.

    Raises
    ------
    ValueError
        For other arguments.
    """

    def __init__(self, values: Any) -> None:
        flat = np.sort(_numbers(values).ravel())
        if flat.size == 0 or not np.all(np.isfinite(flat)) or not np.any(flat):
            raise ValueError(f"an empirical source needs finite entries, not all zero; got {flat.size} entries")
        flat.setflags(write=False)
        self.values = flat

    @property
    def second_moment(self) -> float:
        """Mean square of the entries."""
        return float(np.mean(self.values**2))

    @property
    def entropy_bits(self) -> float:
        """Minus infinity, for the law is discrete.  See ``entropy_interval`` for the law it was drawn from."""
        return -math.inf

    def sample(self, shape: int | tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
        """Return draws with replacement."""
        return generator.choice(self.values, size=shape)

    def cells(self, edges: np.ndarray) -> Cells:
        """See ``Source``; a cell [a, b) that holds a single value becomes an atom."""
        edges = np.unique(np.asarray(edges, float))
        index = np.searchsorted(edges, self.values, side="right")
        starts = np.flatnonzero(np.append(True, np.diff(index) > 0))
        counts = np.diff(np.append(starts, self.values.size))
        centroid = np.add.reduceat(self.values, starts) / counts
        deviation = self.values - np.repeat(centroid, counts)
        spread = np.add.reduceat(deviation**2, starts) / self.values.size
        low, high = self.values[starts], self.values[np.append(starts[1:], self.values.size) - 1]
        return Cells(counts / self.values.size, np.clip(centroid, low, high), spread, low, high)

    def reach(self, share: float) -> float:
        size = np.sort(np.abs(self.values))
        tail = np.cumsum(size[::-1] ** 2)[::-1]
        above = np.flatnonzero(tail <= share * tail[0])
        return float(size[max(above[0] - 1, 0)] if above.size else size[-1])

    def entropy_interval(self, generator: np.random.Generator, level: float = 1e-3) -> Interval:
        """Return a confidence interval for the differential entropy (bits) of the density the entries were drawn from.

        Parameters
        ----------
        generator : numpy Generator
            Source of randomness; it is advanced.
        level : float, optional
            Probability of missing.  The entries are split at random into 16 blocks, each gives an m-spacing estimate
            (Vasicek 1976 with Ebrahimi's bias factor), and Student's t covers their mean.

        Raises
        ------
        ValueError
            With fewer than 1024 entries or with repeated values (then there is no density).

        Notes
        -----
        The interval covers sampling error; the estimate's own bias, O(m/n), is not in it.
        """
        from scipy.special import stdtrit

        if self.values.size < 64 * BLOCKS or np.any(np.diff(self.values) == 0):
            raise ValueError(
                f"an entropy interval needs {64 * BLOCKS} distinct entries; got {np.unique(self.values).size} "
                f"distinct of {self.values.size} (use the rate-distortion function of the discrete law instead)"
            )
        shuffled = generator.permutation(self.values)
        estimates = np.array([_spacing_entropy_bits(np.sort(block)) for block in np.array_split(shuffled, BLOCKS)])
        half = float(stdtrit(BLOCKS - 1, 1 - level / 2) * estimates.std(ddof=1) / math.sqrt(BLOCKS))
        centre = float(estimates.mean())
        return Interval(centre - half, centre + half)


def _numbers(values: Any) -> np.ndarray:
    """Return real numbers as float64; a tensor enters as in an operator."""
    if hasattr(values, "detach"):
        from operators.inputs import plain_tensor

        is_whole = not (values.is_floating_point() or values.is_complex() or values.is_quantized)
        try:
            return plain_tensor(values.double() if is_whole else values).cpu().double().numpy()
        except TypeError as failure:
            raise ValueError(str(failure)) from None
    if isinstance(values, np.ma.MaskedArray):
        raise ValueError("values must be without mask; got a masked array: pass values.compressed()")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise ValueError("values must be one array of numbers; got parts of unequal lengths: flatten them") from None
    if array.dtype.kind not in "iuf":
        raise ValueError(f"values must be real numbers; got an array of {array.dtype}: convert it by astype(float)")
    return array.astype(float)


def _spacing_entropy_bits(ordered: np.ndarray) -> float:
    n = ordered.size
    m = max(1, round(math.sqrt(n)))
    i = np.arange(n)
    factor = np.clip(1 + np.minimum(i, n - 1 - i) / m, 1, 2)
    spacing = ordered[np.minimum(i + m, n - 1)] - ordered[np.maximum(i - m, 0)]
    return float(np.mean(np.log2(n * spacing / (factor * m))))
