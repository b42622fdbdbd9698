"""Closed forms that are roots of rational functions, evaluated without rounding under the root."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import sympy as sp

from .. import symbols


def radicand(minimiser: sp.Expr, power: int) -> Callable[..., Fraction]:
    """The power of a closed form as a function of Fractions, given by keyword."""
    return sp.lambdify(_arguments(minimiser), _radicand(minimiser, power), modules=[{}], cse=False)


def radical_latex(minimiser: sp.Expr, power: int) -> str:
    """The closed form in LaTeX under a single root."""
    names = symbols.latex_names(minimiser.free_symbols)
    index = "" if power == 2 else f"[{power}]"
    return rf"\sqrt{index}{{{sp.latex(_radicand(minimiser, power), symbol_names=names)}}}"


def root(value: Fraction, power: int) -> float:
    """The power-th root of an exact value >= 0 as a float, without overflow on the way."""
    if value == 0:
        return 0.0
    shift = (value.numerator.bit_length() - value.denominator.bit_length()) // power
    scaled = value / Fraction(2) ** (power * shift)
    return math.ldexp(math.sqrt(scaled) if power == 2 else math.cbrt(scaled), shift)


def _radicand(minimiser: sp.Expr, power: int) -> sp.Expr:
    return sp.factor(sp.cancel(minimiser**power))


def _arguments(minimiser: sp.Expr) -> list[sp.Symbol]:
    return sorted(minimiser.free_symbols, key=lambda symbol: symbol.name)
