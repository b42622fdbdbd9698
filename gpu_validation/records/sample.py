"""Numbers summed up: what an interval is computed from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

ATOMS = 64  # groups that a sample keeps of its draws
Atom = tuple[float, float, int]


@dataclass(frozen=True)
class Sample:
    """n numbers summed up: mean, standard deviation (n - 1 below), extremes, and groups of equal or close values.

    Parameters
    ----------
    n : int
        Size of the sample.
    mean : float
        Their mean.
    sd : float
        Standard deviation.
    low : float
        Its minimum.
    high : float
        Its maximum.
    atoms : tuple of Atom, optional
        (smallest, largest, how many) of each group, ascending; what intervals are computed from.
    """

    n: int
    mean: float
    sd: float
    low: float
    high: float
    atoms: tuple[Atom, ...] = ()

    @classmethod
    def of(cls, values: Any) -> Sample:
        """Sum up at least one number.

        Parameters
        ----------
        values
            Any array or sequence of finite numbers.
        """
        array = np.asarray(values, float)
        sd = float(array.std(ddof=1)) if array.size > 1 else 0.0
        atoms = _grouped(np.sort(array, axis=None))
        return cls(int(array.size), float(array.mean()), sd, float(array.min()), float(array.max()), atoms)

    def clipped(self, ceiling: float) -> Sample:
        """Return the sample with everything above ``ceiling`` counted as that; mean and sd are those of the groups'
        tops.

        Parameters
        ----------
        ceiling : float
            What larger numbers are counted as.
        """
        if self.high <= ceiling:
            return self
        atoms = tuple((min(low, ceiling), min(high, ceiling), n) for low, high, n in self.atoms)
        tops = np.repeat([high for _, high, _ in atoms], [n for _, _, n in atoms])
        return replace(Sample.of(tops), low=min(self.low, ceiling), atoms=atoms)


def _grouped(ascending: np.ndarray) -> tuple[Atom, ...]:
    """Return equal numbers as one group; more than ATOMS of them in cells of one width."""
    values, counts = np.unique(ascending, return_counts=True)
    if values.size > ATOMS and np.isfinite(values).all():
        cells = np.minimum((ATOMS * ((values - values[0]) / (values[-1] - values[0]))).astype(int), ATOMS - 1)
    else:
        cells = np.arange(values.size)
    firsts = np.flatnonzero(np.diff(cells, prepend=-1))
    lasts = np.append(firsts[1:], values.size) - 1
    totals = np.add.reduceat(counts, firsts)
    return tuple((float(values[i]), float(values[j]), int(n)) for i, j, n in zip(firsts, lasts, totals, strict=True))
