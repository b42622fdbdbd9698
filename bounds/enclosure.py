"""Certified evaluation: walk a sympy expression in ball arithmetic.

Nothing goes through ``lambdify``: a rational stays a rational until it becomes a ball, and the precision is
doubled until the ball is narrow enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import sympy as sp

from .interval import Interval

START_PRECISION = 128
MAX_PRECISION = 8192
MAX_EXPONENT = 2000  # of a ball's mantissa of START_PRECISION bits; beyond, it over- or underflows every float
TARGET_BITS = 60  # a ball this accurate becomes an interval of at most two neighbouring floats


class NotCertifiable(ArithmeticError):  # noqa: N818  the documented name to catch
    """The value cannot be enclosed: an unsupported function, an inexact constant or an undecided branch."""


def exact(value: Any) -> Fraction:
    """Return the exact rational meant by an int, Fraction, decimal string, Decimal or float (at its binary value).

    Raises
    ------
    ValueError
        For nan and infinities.
    TypeError
        For anything that is not a number.
    """
    if isinstance(value, str | Decimal | int | Fraction):
        return Fraction(value)
    if hasattr(value, "item"):
        value = value.item()  # numpy scalars
    if isinstance(value, int | float):
        try:
            return Fraction(value)
        except OverflowError:
            raise ValueError(f"a certified value needs finite inputs; got {value}") from None
    if isinstance(value, sp.Rational):
        return Fraction(int(value.p), int(value.q))
    raise TypeError(f"cannot read {value!r} exactly; give an int, a Fraction or a decimal string")


def enclose(expression: sp.Expr, at: Mapping[sp.Symbol, Fraction], *, bits: int = TARGET_BITS) -> Interval:
    """Return an interval of floats that provably contains the value of the expression at a rational point.

    Parameters
    ----------
    bits : int, bits, optional
        Relative accuracy at which doubling the precision stops.

    Raises
    ------
    NotCertifiable
        When the walk meets something it cannot bound.
    """
    import flint

    value = _exact_value(expression, at)
    if value is not None:
        return Interval.outwards(value, value)
    precision = START_PRECISION
    while True:
        with flint.ctx.workprec(precision):
            ball = _walk(expression, at)
        if ball.is_finite() and (ball.is_exact() or ball.rel_accuracy_bits() >= bits):
            return ball_interval(ball)
        if precision >= MAX_PRECISION:
            if ball.is_finite():
                return ball_interval(ball)  # an exact zero, for instance: absolutely narrow, relatively not
            raise NotCertifiable(f"no finite enclosure of {expression} with {MAX_PRECISION} bits at {dict(at)}")
        precision *= 2


def _exact_value(expression: sp.Expr, at: Mapping[sp.Symbol, Fraction]) -> Fraction | None:
    """Return the value of a rational function with rational constants; None for other expressions and at poles."""
    compiled = _quotient(expression)
    if compiled is None:
        return None
    symbols, numerator, denominator = compiled
    values = [at[symbol] for symbol in symbols]
    below = Fraction(denominator(*values))
    return Fraction(numerator(*values)) / below if below else None


@lru_cache(maxsize=512)
def _quotient(expression: sp.Expr) -> tuple[list[sp.Symbol], Callable[..., Any], Callable[..., Any]] | None:
    """Return symbols, numerator and denominator as polynomials with integer coefficients, exact on Fractions."""
    if not all(_is_arithmetic(node) for node in sp.preorder_traversal(expression)):
        return None
    parts = sp.fraction(sp.together(expression))
    if any(not part.is_polynomial() or not all(n.is_Integer for n in part.atoms(sp.Number)) for part in parts):
        return None
    symbols = sorted(expression.free_symbols, key=lambda symbol: symbol.name)
    above, below = (sp.lambdify(symbols, part, modules=[{}]) for part in parts)
    return symbols, above, below


def _is_arithmetic(node: sp.Basic) -> bool:
    """Return whether a node is a symbol, a rational number, a sum, a product or an integer power."""
    if isinstance(node, sp.Pow):
        return bool(node.exp.is_Integer)
    return isinstance(node, sp.Symbol | sp.Rational | sp.Add | sp.Mul)


def ball_interval(ball: Any) -> Interval:
    """Return the narrowest interval of floats around a finite ball, however large or small its exponent."""
    import flint

    with flint.ctx.workprec(START_PRECISION):
        low, high_negated = ball.lower(), (-ball).lower()  # rounded outwards
    return Interval(_float_below(low), -_float_below(high_negated))


def _float_below(point: Any) -> float:
    """Return the largest float not above an exact ball; a power of two far outside float64 is never written out."""
    mantissa, exponent = (int(part) for part in point.man_exp())
    if not mantissa or abs(exponent) <= MAX_EXPONENT:
        exact_value = Fraction(mantissa) * Fraction(2) ** exponent
        return float(Interval.outwards(exact_value, exact_value).lo)
    if exponent > 0:
        return -math.inf if mantissa < 0 else math.nextafter(math.inf, 0)
    return math.nextafter(0.0, -1.0) if mantissa < 0 else 0.0


def _walk(node: sp.Basic, at: Mapping[sp.Symbol, Fraction]) -> Any:
    """Return one node of the tree as a ball at the current working precision."""
    from flint import arb, fmpq

    if isinstance(node, sp.Symbol):
        value = at[node]
        return arb(fmpq(value.numerator, value.denominator))
    if isinstance(node, sp.Rational):
        return arb(fmpq(int(node.p), int(node.q)))
    if isinstance(node, sp.Float):
        raise NotCertifiable(f"the inexact constant {node} stands in the formula; write it as a Rational")
    if isinstance(node, sp.Piecewise):
        return _branch(node, at)
    if hasattr(node, "ball"):  # a special function of ours
        return node.ball(*(_walk(arg, at) for arg in node.args))
    if isinstance(node, sp.Pow):
        return _power(node, at)
    operation = _operations().get(node.func)
    if operation is None:
        raise NotCertifiable(f"ball arithmetic has no rule for {node.func.__name__} in {node}")
    return operation(*(_walk(arg, at) for arg in node.args))


def _power(node: sp.Pow, at: Mapping[sp.Symbol, Fraction]) -> Any:
    base = _walk(node.base, at)
    if isinstance(node.exp, sp.Integer):
        return base ** int(node.exp)
    if node.exp == sp.S.Half:
        return base.sqrt()
    if node.exp == -sp.S.Half:
        return base.rsqrt()
    return base ** _walk(node.exp, at)


def _branch(node: sp.Piecewise, at: Mapping[sp.Symbol, Fraction]) -> Any:
    for value, condition in node.args:
        if holds_exactly(condition, at):
            return _walk(value, at)
    raise NotCertifiable(f"no branch of {node} applies")


def holds_exactly(relation: sp.Basic, at: Mapping[sp.Symbol, Fraction]) -> bool:
    """Return whether a relation is true at a rational point, decided without rounding.

    Raises
    ------
    NotCertifiable
        If the two sides cannot be separated with MAX_PRECISION bits.
    """
    import flint

    if relation in (sp.true, sp.false):
        return relation == sp.true
    if isinstance(relation, sp.And):
        return all(holds_exactly(part, at) for part in relation.args)
    if isinstance(relation, sp.Or):
        return any(holds_exactly(part, at) for part in relation.args)
    difference = relation.lhs - relation.rhs
    value = _exact_value(difference, at)
    if value is not None:
        sign = (value > 0) - (value < 0)
    else:
        precision = START_PRECISION
        with flint.ctx.workprec(precision):
            ball = _walk(difference, at)
        while not (ball > 0 or ball < 0):
            if precision >= MAX_PRECISION:
                raise NotCertifiable(f"cannot decide {relation} at {dict(at)}")
            precision *= 2
            with flint.ctx.workprec(precision):
                ball = _walk(difference, at)
        sign = 1 if ball > 0 else -1
    return _sign_meets(relation.func, sign)


@lru_cache(maxsize=32)
def _sign_meets(relation: type, sign: int) -> bool:
    return bool(relation(sp.Integer(sign), 0))


def _polygamma(order: Any, argument: Any) -> Any:
    if not order.is_zero():
        raise NotCertifiable("ball arithmetic has a rule for digamma only, not for higher polygamma functions")
    return argument.digamma()


_TABLE: dict[type, Callable[..., Any]] = {}


def _operations() -> dict[type, Callable[..., Any]]:
    """Return ball versions of sympy's functions (built on first use, so that importing bounds stays light)."""
    if _TABLE:
        return _TABLE
    from functools import reduce

    from flint import arb

    _TABLE.update(
        {
            sp.Add: lambda *a: reduce(lambda x, y: x + y, a),
            sp.Mul: lambda *a: reduce(lambda x, y: x * y, a),
            sp.Max: lambda *a: reduce(lambda x, y: x.max(y), a),
            sp.Min: lambda *a: reduce(lambda x, y: x.min(y), a),
            sp.exp: arb.exp,
            sp.log: arb.log,
            sp.Abs: abs,
            sp.floor: arb.floor,
            sp.ceiling: arb.ceil,
            sp.gamma: arb.gamma,
            sp.loggamma: arb.lgamma,
            sp.polygamma: _polygamma,
            sp.erf: arb.erf,
            sp.erfc: arb.erfc,
            sp.sin: arb.sin,
            sp.cos: arb.cos,
            sp.asin: arb.asin,
            sp.acos: arb.acos,
            sp.tanh: arb.tanh,
            type(sp.pi): arb.pi,
            type(sp.E): arb.const_e,
            type(sp.EulerGamma): arb.const_euler,
        }
    )
    return _TABLE
