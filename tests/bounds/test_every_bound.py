"""Laws of every Bound in the catalogue: its examples are inside, and both evaluations reproduce their digits."""

from fractions import Fraction

import numpy as np
import pytest

from bounds import AssumptionViolated, NotCertifiable, Status, all_bounds, symbols
from tests.pooled import pooled

BOUNDS = all_bounds()
CASES = [
    pytest.param(bound, example, id=f"{name}-{i}")
    for name, bound in BOUNDS.items()
    for i, example in enumerate(bound.examples)
]
FAST_ACCURACY = 1e-12  # relative, for the float64 evaluation of a formula of a few operations


def fast_point(example):
    return {name: float(Fraction(value)) for name, value in example.at.items()}


@pooled(("bound", "example"), CASES)
def test_fast_value_has_the_digits_of_the_example(bound, example):
    low, high = (float(end) for end in example.interval)
    value = bound(**fast_point(example))
    slack = FAST_ACCURACY * max(abs(low), abs(high))
    assert low - slack <= value <= high + slack


@pooled(("bound", "example"), CASES)
def test_enclosure_meets_the_digits_of_the_example(bound, example):
    low, high = example.interval
    if "not certifiable" in bound.note:
        with pytest.raises(NotCertifiable):
            bound.enclose(**example.at)
        return
    interval = bound.enclose(**example.at)
    assert Fraction(interval.lo) <= high
    assert Fraction(interval.hi) >= low
    assert abs(interval.midpoint - bound(**fast_point(example))) <= FAST_ACCURACY * abs(interval.midpoint)


@pooled(("bound", "example"), CASES)
def test_examples_lie_inside_the_assumptions(bound, example):
    assert bound.holds_at(**fast_point(example)) is True


@pooled("bound", BOUNDS.values(), ids=BOUNDS)
def test_latex_names_every_parameter(bound):
    text = bound.latex()
    assert text.count("{") == text.count("}")
    for symbol in bound.value.free_symbols:
        assert symbols.notation(symbol).latex in text


@pooled("bound", BOUNDS.values(), ids=BOUNDS)
def test_statement_is_complete(bound):
    assert bound.quantity
    assert bound.reference.key
    assert bound.latex_name or bound.status is Status.RECALLED
    assert bound.unit in {"bit", "s", "1", "step", "round"}


@pooled("bound", [b for b in BOUNDS.values() if b.parameters], ids=lambda bound: bound.name)
def test_values_outside_the_domain_are_refused_with_the_rule(bound):
    at = fast_point(bound.examples[0])
    for name in at:
        for bad in (np.nan, np.inf, -1.0):
            if symbols.TABLE[name].domain.mask(bad):
                continue
            with pytest.raises(AssumptionViolated, match=name):
                bound(**{**at, name: bad})
            assert bound.holds_at(**{**at, name: bad}) is False


@pooled("bound", BOUNDS.values(), ids=BOUNDS)
def test_misspelt_arguments_are_refused(bound):
    with pytest.raises(TypeError, match="no_such_symbol"):
        bound(**fast_point(bound.examples[0]), no_such_symbol=1.0)
