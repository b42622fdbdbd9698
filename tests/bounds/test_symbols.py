"""The notation table: one meaning a symbol, domains that decide exactly and say their rule."""

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from bounds import symbols
from bounds.symbols import COUNT, FRACTION, NONNEGATIVE, POSITIVE, REAL, Domain


@pytest.mark.parametrize("name", symbols.TABLE)
def test_a_row_explains_its_symbol(name):
    row = symbols.TABLE[name]
    assert row.symbol.name == name
    assert row.latex.isascii()
    assert row.latex.isprintable()  # an escape such as backslash-t, eaten on the way, leaves a control character
    assert row.meaning
    assert row.unit
    assert symbols.notation(row.symbol) is row


def test_latex_names_are_unique():
    names = [row.latex for row in symbols.TABLE.values()]
    doubles = {name for name in names if names.count(name) > 1}
    assert not doubles


def test_a_foreign_symbol_of_the_same_name_is_refused():
    with pytest.raises(KeyError, match="alpha"):
        symbols.notation(sp.Symbol("alpha"))


def test_a_second_meaning_is_refused():
    with pytest.raises(ValueError, match="one meaning"):
        symbols._row("alpha", "a", "something else")


@pytest.mark.parametrize(
    ("domain", "inside", "outside"),
    [
        (POSITIVE, [1e-300, 1, 1e300], [0, -1, np.nan, np.inf]),
        (NONNEGATIVE, [0, 1], [-1e-300, np.nan]),
        (FRACTION, [1e-300, 1 - 2**-53], [0, 1]),
        (COUNT, [1, 10**12], [0, 1.5, -3]),
        (REAL, [-1e300, 0, 5], [np.nan, -np.inf]),
        (Domain(0, 0.5, open_below=False, open_above=False), [0, 0.5], [0.5000001]),
    ],
)
def test_domain_masks_and_exact_membership_agree(domain, inside, outside):
    assert domain.mask(np.array(inside, float)).all()
    assert not domain.mask(np.array(outside, float)).any()
    assert all(domain.contains(Fraction(value)) for value in inside)
    assert not any(domain.contains(Fraction(value)) for value in outside if np.isfinite(value))


def test_membership_is_decided_exactly_beside_an_open_end():
    assert FRACTION.contains(1 - Fraction(1, 10**40))
    assert not FRACTION.contains(Fraction(1))


def test_rules_are_readable():
    assert FRACTION.text("alpha") == "0 < alpha < 1"
    assert COUNT.text("d") == "1 <= d, an integer"
    assert REAL.text("x") == "x, finite"
