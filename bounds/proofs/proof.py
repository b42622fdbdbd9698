"""Claims with certificates: expanded to zero exactly, the signs of their weights enclosed in exact intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import sympy as sp

Form = Mapping[str, sp.Expr]
"""A linear combination of vectors: name -> coefficient."""

CELLS = 16  # of a share in [0, 1]


@dataclass(frozen=True)
class Vectors:
    """Names of vectors, in groups whose members are orthogonal to those of all other groups on average.

    Vectors common to all workers are one group, those with mean zero over the workers another, noises further ones.

    Parameters
    ----------
    groups : tuple of tuple of str
        The names.
    """

    groups: tuple[tuple[str, ...], ...]

    def inner(self, x: Form, y: Form) -> sp.Expr:
        """Return the mean of <x, y> as a polynomial in the inner products of the names.

        Parameters
        ----------
        x : mapping of str to Expr
            A linear combination.
        y : mapping of str to Expr
            Another one.
        """
        group = {name: i for i, names in enumerate(self.groups) for name in names}
        return sp.Add(
            *(
                a * b * product(first, second)
                for (first, a), (second, b) in itertools.product(x.items(), y.items())
                if group[first] == group[second]
            )
        )

    def square(self, x: Form) -> sp.Expr:
        """Return the mean of ``|x|^2``.

        Parameters
        ----------
        x : mapping of str to Expr
            A linear combination.
        """
        return self.inner(x, x)


def product(first: str, second: str) -> sp.Symbol:
    """Return the symbol of the inner product of two named vectors."""
    return sp.Symbol("<{},{}>".format(*sorted((first, second))), real=True)


@dataclass(frozen=True)
class Premise:
    """An expression that an assumption makes nonnegative, and its weight.

    Parameters
    ----------
    weight : Expr
        Nonnegative on the domain.
    slack : Expr
        Nonnegative by assumption.
    why : str
        The assumption.
    """

    weight: sp.Expr
    slack: sp.Expr
    why: str


@dataclass(frozen=True)
class Square:
    """The mean squared length of a linear combination of vectors, and its weight.

    Parameters
    ----------
    weight : Expr
        Nonnegative on the domain.
    form : mapping of str to Expr
        The combination.
    """

    weight: sp.Expr
    form: Form


@dataclass(frozen=True)
class Proof:
    """The claim ``constant * times + rest >= 0``, and the premises and squares of which it is the weighted sum.

    Parameters
    ----------
    name : str
        Of the step.
    says : str
        The claim in words.
    bounds : tuple of str
        Names of the bounds whose derivations use it.
    vectors : Vectors
        The vectors of its inner products.
    constant : Expr
        The constant that the claim is about.
    times : Expr
        The nonnegative quantity that it multiplies.
    rest : Expr
        All other terms.
    premises : tuple of Premise
        What is given.
    squares : tuple of Square, optional
        What is nonnegative by itself.
    shares : mapping of Symbol to Expr, optional
        Parameters as multiples of a share in [0, 1], which the assumptions allow.  All other symbols are positive.
    """

    name: str
    says: str
    bounds: tuple[str, ...]
    vectors: Vectors
    constant: sp.Expr
    times: sp.Expr
    rest: sp.Expr
    premises: tuple[Premise, ...]
    squares: tuple[Square, ...] = ()
    shares: Mapping[sp.Symbol, sp.Expr] = field(default_factory=dict)

    def residual(self, factor: Fraction | int = 1) -> sp.Expr:
        """Return what is left of the claim, its constant multiplied by a factor, less premises and squares.

        Parameters
        ----------
        factor : Fraction or int, optional
            1 for the claim itself.
        """
        total = sp.Rational(factor) * self.constant * self.times + self.rest
        total -= sp.Add(*(part.weight * part.slack for part in self.premises))
        total -= sp.Add(*(part.weight * self.vectors.square(part.form) for part in self.squares))
        return sp.cancel(sp.together(sp.expand(total)))

    @property
    def weights(self) -> tuple[sp.Expr, ...]:
        """The weights of premises and squares, which have to be nonnegative."""
        return (*(premise.weight for premise in self.premises), *(square.weight for square in self.squares))

    def expands(self, factor: Fraction | int = 1) -> bool:
        """Return whether the claim is exactly the weighted sum.

        Parameters
        ----------
        factor : Fraction or int, optional
            Multiplies the constant.
        """
        return self.residual(factor) == 0

    def unsigned(self) -> tuple[sp.Expr, ...]:
        """Return the weights that are not certainly nonnegative, for all positive parameters and shares in [0, 1]."""
        weights = (weight.subs(self.shares, simultaneous=True) for weight in self.weights)
        return tuple(weight for weight in weights if _sign(weight) != 1)


def is_share(symbol: sp.Symbol) -> bool:
    """Return whether a symbol stands for a number in [0, 1]."""
    return symbol.name.startswith("share")


def _sign(weight: sp.Expr) -> int:
    """Return 1 where a rational function is certainly >= 0, -1 where it is certainly <= 0, else 0."""
    sign = 1
    for factor in sp.Mul.make_args(sp.factor(weight)):
        base, exponent = factor.as_base_exp()
        if not exponent.is_Integer:
            return 0
        if exponent > 0 and exponent % 2 == 0:
            continue
        sign *= _sign_of_polynomial(base)
    return sign


def _sign_of_polynomial(polynomial: sp.Expr) -> int:
    """The sign that all coefficients of the positive symbols share, each a polynomial in the shares."""
    positive = sorted((symbol for symbol in polynomial.free_symbols if not is_share(symbol)), key=str)
    coefficients = sp.Poly(polynomial, *positive).coeffs() if positive else [polynomial]
    ends = [end for coefficient in coefficients for end in _ends(coefficient)]
    if all(low >= 0 for low, _ in ends):
        return 1
    return -1 if all(high <= 0 for _, high in ends) else 0


def _ends(coefficient: sp.Expr) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield exact lower and upper ends on the cells of the shares: every monomial grows with each share."""
    shares = sorted(coefficient.free_symbols, key=str)
    terms = sp.Poly(coefficient, *shares).terms() if shares else [((), coefficient)]
    for cell in itertools.product(range(CELLS), repeat=len(shares)):
        low = high = Fraction(0)
        for powers, number in terms:
            value = Fraction(int(number.p), int(number.q))
            ends = [value * _monomial(cell, powers, step) for step in (0, 1)]
            low, high = low + min(ends), high + max(ends)
        yield low, high


def _monomial(cell: tuple[int, ...], powers: tuple[int, ...], step: int) -> Fraction:
    return math.prod(
        (Fraction(i + step, CELLS) ** power for i, power in zip(cell, powers, strict=True)), start=Fraction(1)
    )
