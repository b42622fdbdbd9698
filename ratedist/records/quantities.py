"""An array of numbers from one theorem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .answer import Table
from .plain_values import plain
from .quantity import Quantity
from .stated import Stated
from .statement import Statement
from .text import number_text, unit_text

MOST_NAMES = 3  # of arguments beside which both ends fit into a line


class Quantities(Stated, NDArrayOperatorsMixin):
    """An array of numbers from one theorem; behaves like its float64 array.

    Parameters
    ----------
    values : ndarray
        The numbers, any shape.
    statement : Statement
        What the numbers mean and where they come from.
    each : callable
        Computes one element with its certified interval from its index.

    Attributes
    ----------
    lo : ndarray
        Arrays of certified ends, computed element by element when first asked for.  Indexing with integers gives a
        ``Quantity``, with slices plain arrays.
    hi : ndarray
        Arrays of certified ends, computed element by element when first asked for.  Indexing with integers gives a
        ``Quantity``, with slices plain arrays.
    """

    __array_priority__ = 1

    def __init__(
        self, values: np.ndarray, *, statement: Statement, each: Callable[[tuple[int, ...]], Quantity]
    ) -> None:
        self.values = np.asarray(values, float)
        self.values.setflags(write=False)
        self.statement = statement
        self._each = each
        self._ends: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def certified(self) -> bool:
        """Whether every element has a certified interval; computes them all."""
        return bool(np.all(np.isfinite(self._enclosed()[0])))

    @property
    def lo(self) -> np.ndarray:
        """Certified lower ends."""
        return self._enclosed()[0]

    @property
    def hi(self) -> np.ndarray:
        """Certified upper ends."""
        return self._enclosed()[1]

    @property
    def shape(self) -> tuple[int, ...]:
        """The common shape of the arguments."""
        return self.values.shape

    def _enclosed(self) -> tuple[np.ndarray, np.ndarray]:
        if self._ends is None:
            lo, hi = np.empty(self.shape), np.empty(self.shape)
            for index in np.ndindex(self.shape):
                element = self._each(index)
                value = float(self.values[index])
                lo[index], hi[index] = min(element.lo, value), max(element.hi, value)
            self._ends = lo, hi
        return self._ends

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        arrays = (i.values if isinstance(i, Quantities) else i for i in inputs)
        return getattr(ufunc, method)(*arrays, **keywords)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        selected = self.values[index]
        if np.ndim(selected):
            return selected
        spread = np.arange(self.values.size).reshape(self.shape)[index]
        return self._each(tuple(int(i) for i in np.unravel_index(int(spread), self.shape)))

    def to_dict(self) -> dict[str, Any]:
        """As ``Quantity.to_dict``, with lists."""
        ends = {"lo": self.lo.tolist(), "hi": self.hi.tolist(), "certified": self.certified}
        return (
            {"value": self.values.tolist()}
            | ends
            | plain(self.statement)
            | {"verdict": self.verdict, "explanation": self.explain()}
        )

    def _shown(self) -> str:
        return f"{self.values.size} values from {number_text(self.values.min())} to " + (
            f"{number_text(self.values.max())} {unit_text(self.unit)}".strip()
        )

    def _in_verdict(self) -> str:
        ends = f"{number_text(self.values.min())} to {number_text(self.values.max())}"
        return f"{ends} {unit_text(self.unit)}".strip()

    def _interval_text(self) -> str:
        return "certified element by element in .lo, .hi"

    def _tables(self) -> tuple[Table, ...]:
        names = [name for name, value in self.statement.at.items() if isinstance(value, np.ndarray)]
        unit = "" if self.unit == "1" else f" [{self.unit}]"
        ends = ("from", "to") if len(names) < MOST_NAMES else ()
        rows = []
        for element in map(self._each, np.ndindex(self.shape)):
            point = [number_text(float(element.statement.at[name])) for name in names]
            numbers = [number_text(float(element)), *([repr(element.lo), repr(element.hi)] if ends else [])]
            rows.append((*point, *numbers))
        return (Table((*names, f"value{unit}", *ends), tuple(rows)),)

    def _value_in_latex(self) -> str:
        raise ValueError(
            f"value=True needs one number; got {self.values.size}: index the result first, as in result[0]"
        )

    def __repr__(self) -> str:
        return f"Quantities({np.array2string(self.values, threshold=8)} {unit_text(self.unit)}, {self.theorem})"
