"""Minimisers that are roots of rational functions of the constants: derived once, evaluated without rounding inside."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import sympy as sp

from .. import symbols
from ..symbols import tau
from .derivation import Derivation, unique_minimiser


@dataclass(frozen=True)
class RadicalMinimiser:
    """The only positive minimiser of an objective over tau, where a power of it is rational in the constants.

    Parameters
    ----------
    objective : Expr
        What is minimised, in symbols of ``bounds.symbols``.
    power : int
        2 for a square root, 3 for a cube root.
    latex_name : str
        The minimiser in LaTeX.
    above_one : tuple of Symbol, optional
        Constants that are taken as > 1, the others as > 0.
    """

    objective: sp.Expr
    power: int
    latex_name: str
    above_one: tuple[sp.Symbol, ...] = ()

    @cached_property
    def derivation(self) -> Derivation:
        """The proof, by sympy, that it is the only positive minimiser."""
        return unique_minimiser(self.objective, tau, above_one=self.above_one)

    def latex(self) -> str:
        """Return the closed form in LaTeX, under a single root."""
        names = symbols.latex_names(self._radicand.free_symbols)
        index = "" if self.power == 2 else f"[{self.power}]"
        return rf"{self.latex_name} = \sqrt{index}{{{sp.latex(self._radicand, symbol_names=names)}}}"

    def radicand(self, **constants: Fraction) -> Fraction:
        """Return what stands under the root, exactly.

        Parameters
        ----------
        **constants : Fraction
            Values of the symbols, by name.
        """
        return self._function(**constants)

    def root(self, radicand: Fraction) -> float:
        """Return the root of an exact value as a float, without overflow on the way.

        Parameters
        ----------
        radicand : Fraction
            The value, >= 0.
        """
        if radicand == 0:
            return 0.0
        shift = (radicand.numerator.bit_length() - radicand.denominator.bit_length()) // self.power
        scaled = radicand / Fraction(2) ** (self.power * shift)
        return math.ldexp(math.sqrt(scaled) if self.power == 2 else math.cbrt(scaled), shift)

    @cached_property
    def _radicand(self) -> sp.Expr:
        minimiser = self.derivation.minimiser
        assert minimiser is not None
        return sp.factor(sp.cancel(minimiser**self.power))

    @cached_property
    def _function(self) -> Callable[..., Any]:
        arguments = sorted(self._radicand.free_symbols, key=lambda symbol: symbol.name)
        return sp.lambdify(arguments, self._radicand, modules=[{}], cse=False)


class Radical:
    """An optimum whose real value is a ``RadicalMinimiser``."""

    MINIMISER: ClassVar[RadicalMinimiser]

    @classmethod
    def derivation(cls) -> Derivation:
        """Return the proof, by sympy, that it is the only positive minimiser."""
        return cls.MINIMISER.derivation

    @classmethod
    def latex(cls) -> str:
        """Return the formula in LaTeX."""
        return cls.MINIMISER.latex()
