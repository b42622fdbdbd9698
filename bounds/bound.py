"""A published or derived inequality as data: value, assumptions, source, status, and its own test points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, overload

import numpy as np
import sympy as sp

from . import symbols
from .enclosure import NotCertifiable, enclose, exact, holds_exactly
from .interval import Interval
from .numbers import Number, Numbers
from .provenance import Example, Reference, Side, Status
from .setting import Setting

ROUNDING_SLACK = 1e-12  # relative; a fast call may sit on the edge of a non-strict assumption


class AssumptionViolated(ValueError):  # noqa: N818  a name users are told to catch
    """A bound was asked for outside its assumptions; the message names the rule and the numbers."""


@dataclass(frozen=True)
class Free:
    """A parameter of which any value in (lower, upper) gives a valid bound.

    Parameters
    ----------
    symbol : Symbol
        The parameter.
    lower : Expr
        Smallest value of the parameter, as an expression in the other symbols.
    upper : Expr
        Largest value of the parameter, as an expression in the other symbols.
    """

    symbol: sp.Symbol
    lower: sp.Expr
    upper: sp.Expr


@dataclass(frozen=True)
class Best:
    """The sharpest value found over the free parameter, and where it is reached.

    Parameters
    ----------
    value : float
        In float64.
    at : mapping of str to float
        Name -> value of the free parameter there.
    """

    value: float
    at: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Bound:
    """One inequality.

    Parameters
    ----------
    name : str
        Of the object and of its module's export.
    quantity : str
        What is bounded, in words.
    side : Side
        See ``Side``.
    value : Expr
        Sympy expression in the symbols of ``bounds.symbols`` and special functions of ``bounds.special``.
    reference : Reference
        See ``Reference``.
    status : Status
        How far the bound can be trusted.
    examples : tuple of Example
        Its test points; every bound needs one that was computed independently.
    setting : Setting
        What must hold beside ``assuming``, and what exactly the value is about (see ``Setting``).
    assuming : tuple of Basic, optional
        Relations, beyond the domains of the symbols, under which it holds.
    unit : str, optional
        Of the value ("bit", "s", "1").
    free : Free or None, optional
        A parameter that may take any feasible value (see ``best``).
    note : str, optional
        What else to know.
    latex_name : str, optional
        The bounded quantity in LaTeX.

    Raises
    ------
    ValueError
        When built without a setting, without an example, or with a symbol that is not in the notation table.
    """

    name: str
    quantity: str
    side: Side
    value: sp.Expr
    reference: Reference
    status: Status
    examples: tuple[Example, ...]
    setting: Setting
    assuming: tuple[sp.Basic, ...] = ()
    unit: str = "1"
    free: Free | None = None
    note: str = ""
    latex_name: str = ""
    _cache: dict[sp.Basic, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.setting, Setting):
            raise ValueError(f"bound {self.name!r} needs a Setting; got setting = {self.setting!r}")
        if not self.examples:
            raise ValueError(f"bound {self.name!r} needs an example: an independently computed value")
        for symbol in self.parameters:
            symbols.notation(symbol)

    # -- what it takes -----------------------------------------------------------------------------------
    @cached_property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        """The symbols of value and assumptions, sorted by name; their names are the keywords of a call."""
        free_symbols = set(self.value.free_symbols).union(*(relation.free_symbols for relation in self.assuming))
        return tuple(sorted(free_symbols, key=lambda symbol: symbol.name))

    # -- fast value --------------------------------------------------------------------------------------
    @overload
    def __call__(self, **at: Number) -> float: ...
    @overload
    def __call__(self, **at: Numbers) -> float | np.ndarray: ...
    def __call__(self, **at: Numbers) -> float | np.ndarray:
        """Return the value in float64; arguments broadcast, scalars give a float.

        Raises
        ------
        AssumptionViolated
            At the first index outside the assumptions.
        TypeError
            For a missing or unknown argument.
        """
        arrays = self._arrays(at)
        self._require(arrays)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            result = np.asarray(self._fast(self.value)(*arrays), float)
        if np.isnan(result).any():
            result = self._defined(result, arrays)
        return float(result) if result.ndim == 0 else result

    @overload
    def holds_at(self, **at: Number) -> bool: ...
    @overload
    def holds_at(self, **at: Numbers) -> bool | np.ndarray: ...
    def holds_at(self, **at: Numbers) -> bool | np.ndarray:
        """Return whether the assumptions hold: bool, or a mask over the broadcast arguments.

        Parameters
        ----------
        **at
            Values of the symbols, by name.
        """
        arrays = self._arrays(at)
        mask = np.ones(np.broadcast_shapes(*(array.shape for array in arrays)), bool)
        for _, inside in self._checks(arrays):
            mask = mask & inside
        return bool(mask) if mask.ndim == 0 else mask

    def best(self, **at: Number) -> Best:
        """Return the sharpest value over the free parameter, all other arguments scalar.

        Parameters
        ----------
        **at
            Values of the symbols, by name.

        Raises
        ------
        ValueError
            If the bound has no free parameter.
        AssumptionViolated
            If no value of it is feasible.
        """
        if self.free is None:
            raise ValueError(f"bound {self.name!r} has no free parameter; call it directly")
        from scipy.optimize import minimize_scalar

        free = self.free.symbol.name
        fixed = {symbols.TABLE[name].symbol: value for name, value in at.items()}
        lower, upper = (float(end.subs(fixed)) for end in (self.free.lower, self.free.upper))
        sign = -1.0 if self.side is Side.LOWER else 1.0

        grid = lower + (upper - lower) * np.geomspace(1e-9, 1, 400)[:-1]
        feasible = np.broadcast_to(self.holds_at(**at, **{free: grid}), grid.shape)
        if not feasible.any():
            raise AssumptionViolated(f"{self.name} has no feasible {free} at {_numbers(at)}")
        values = np.full(grid.shape, np.inf)
        values[feasible] = sign * np.broadcast_to(self(**at, **{free: grid[feasible]}), feasible.sum())
        i = int(np.argmin(values))
        nodes = np.concatenate(([lower], grid, [upper]))
        ends = [self._feasible_end(at, free, nodes[i + 1], nodes[i + 1 + step]) for step in (-1, 1)]
        minimum = minimize_scalar(
            lambda v: sign * self(**at, **{free: v}), bounds=ends, method="bounded", options={"xatol": 1e-12}
        )
        where = min((float(minimum.x), float(grid[i]), *ends), key=lambda v: sign * self(**at, **{free: v}))
        return Best(self(**at, **{free: where}), {free: where})

    def _feasible_end(self, at: Mapping[str, Any], free: str, inside: float, outside: float) -> float:
        """Return the second point if it is feasible, else the last feasible one on the way to it from the first."""
        inside, outside = float(inside), float(outside)
        if self.holds_at(**at, **{free: outside}):
            return outside
        for _ in range(60):
            middle = (inside + outside) / 2
            if self.holds_at(**at, **{free: middle}):
                inside = middle
            else:
                outside = middle
        return inside

    # -- certified value ---------------------------------------------------------------------------------
    def enclose(self, **at: Number) -> Interval:
        """Return an interval that provably contains the value at one exact point.

        Arguments are int, Fraction, decimal string, or float (meant at its binary value).

        Parameters
        ----------
        **at
            Values of the symbols, by name.

        Raises
        ------
        AssumptionViolated
            For arguments outside the assumptions.
        NotCertifiable
            If no enclosure can be given.
        """
        self._check_names(at)
        point = {symbols.TABLE[name].symbol: exact(value) for name, value in at.items()}
        for symbol, value in point.items():
            domain = symbols.notation(symbol).domain
            if not domain.contains(value):
                raise AssumptionViolated(f"{self.name} needs {domain.text(symbol.name)}; got {at[symbol.name]}")
        for relation in self.assuming:
            if not holds_exactly(relation, point):
                raise AssumptionViolated(f"{self.name} needs {relation}; got {_numbers(at)}")
        return enclose(self.value, point)

    # -- presentation ------------------------------------------------------------------------------------
    def latex(self) -> str:
        """Return the inequality in LaTeX."""
        names = symbols.latex_names(self.parameters)
        value = sp.latex(self.value, symbol_names=names)
        sign = {Side.UPPER: r"\le", Side.LOWER: r"\ge", Side.TIGHT: "="}[self.side]
        return f"{self.latex_name} {sign} {value}" if self.latex_name else value

    def bibtex(self) -> str:
        """Return the BibTeX entry of its source, with the place in it as a note."""
        from .bibliography import bibtex

        return bibtex(self.reference)

    # -- internals ---------------------------------------------------------------------------------------
    def _defined(self, result: np.ndarray, arrays: list[np.ndarray]) -> np.ndarray:
        """Return the values with every nan (0 times what overflows float64) replaced by the certified
        value's midpoint.
        """
        result, *arrays = (np.array(array) for array in np.broadcast_arrays(result, *arrays))
        for index in map(tuple, np.argwhere(np.isnan(result))):
            point = {symbol: Fraction(array[index]) for symbol, array in zip(self.parameters, arrays, strict=True)}
            result[index] = enclose(self.value, point).midpoint
        return result

    def _check_names(self, at: Mapping[str, Any]) -> None:
        expected, given = {symbol.name for symbol in self.parameters}, set(at)
        if expected != given:
            missing, unknown = sorted(expected - given), sorted(given - expected)
            raise TypeError(
                f"{self.name} takes {', '.join(sorted(expected))}"
                + (f"; missing: {', '.join(missing)}" if missing else "")
                + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            )

    def _arrays(self, at: Mapping[str, Any]) -> list[np.ndarray]:
        self._check_names(at)
        return [np.asarray(at[symbol.name], float) for symbol in self.parameters]

    def _checks(self, arrays: list[np.ndarray]) -> Any:
        """Return pairs (rule, mask); the rule is put in words only when it is broken, for that takes longer than the
        check.
        """
        for symbol, array in zip(self.parameters, arrays, strict=True):
            domain = symbols.notation(symbol).domain
            yield domain.text(symbol.name), domain.mask(array)
        for relation in self.assuming:
            with np.errstate(all="ignore"):
                lhs, rhs = (np.asarray(self._fast(side)(*arrays), float) for side in (relation.lhs, relation.rhs))
                slack = ROUNDING_SLACK * np.maximum(np.abs(lhs), np.abs(rhs))
                inside = {
                    sp.Le: lambda a, b, e: a <= b + e,
                    sp.Ge: lambda a, b, e: a >= b - e,
                    sp.Lt: lambda a, b, _: a < b,
                    sp.Gt: lambda a, b, _: a > b,
                }[relation.func](lhs, rhs, slack)
            yield relation, inside

    def _require(self, arrays: list[np.ndarray]) -> None:
        for rule, inside in self._checks(arrays):
            if np.all(inside):
                continue
            shape = np.broadcast_shapes(*(array.shape for array in arrays))
            index = tuple(int(i) for i in np.argwhere(~np.broadcast_to(inside, shape))[0])
            point = {s.name: np.broadcast_to(a, shape)[index] for s, a in zip(self.parameters, arrays, strict=True)}
            raise AssumptionViolated(
                f"{self.name} needs {rule}; got {_numbers(point)}" + (f" at index {index}" if index else "")
            )

    def _fast(self, expression: sp.Expr) -> Callable[..., Any]:
        if expression not in self._cache:
            kernels = {
                node.func.__name__: node.func.kernel
                for node in expression.atoms(sp.Function)
                if hasattr(node.func, "kernel")
            }
            modules = [kernels, "scipy", "numpy"]
            self._cache[expression] = sp.lambdify(self.parameters, expression, modules=modules, cse=True)
        return self._cache[expression]


def _numbers(at: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in at.items())


__all__ = [
    "AssumptionViolated",
    "Best",
    "Bound",
    "Example",
    "Free",
    "NotCertifiable",
    "Reference",
    "Side",
    "Status",
]
