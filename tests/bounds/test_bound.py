"""The Bound record: domain errors that name the value and the index, broadcasting, the free parameter, LaTeX."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from bounds import AssumptionViolated, Bound, Conclusion, Example, Free, Property, Reference, Setting, Side, Status
from bounds.symbols import alpha, d, eta, omega, sigma2, tau

CONVEX = Setting(frozenset({Property.CONVEX}), Conclusion.GAP)


def made(value, side=Side.UPPER, example=None, **fields):
    example = example or Example({"eta": 1, "tau": 2}, "1.0", "by hand")
    return Bound(
        name="made",
        quantity="q",
        side=side,
        value=value,
        reference=Reference("nobody", "nowhere"),
        status=Status.PROVED,
        setting=CONVEX,
        examples=(example,),
        **fields,
    )


PARABOLA = made(eta + tau / eta, assuming=(sp.Le(eta, 10),), free=Free(eta, sp.Integer(0), sp.Integer(10)))


def test_scalars_give_a_float_and_arrays_broadcast():
    assert isinstance(PARABOLA(eta=1, tau=4), float)
    rows = PARABOLA(eta=np.array([[1.0], [2.0]]), tau=np.array([1.0, 4.0, 9.0]))
    assert np.array_equal(rows, [[2, 5, 10], [2.5, 4, 6.5]])


def test_the_first_violating_index_and_its_numbers_are_named():
    with pytest.raises(AssumptionViolated, match=r"made needs eta <= 10; got eta = 11\.0, tau = 3\.0 at index \(2,\)"):
        PARABOLA(eta=np.array([1.0, 2.0, 11.0, 12.0]), tau=np.array([1.0, 2.0, 3.0, 4.0]))


def test_a_value_outside_its_domain_is_named_with_the_rule():
    with pytest.raises(AssumptionViolated, match=r"1 <= tau.*tau = 0\.5"):
        PARABOLA(eta=1, tau=0.5)
    with pytest.raises(AssumptionViolated, match="nan"):
        PARABOLA(eta=math.nan, tau=1)


def test_mask_agrees_with_the_errors():
    at = {"eta": np.array([1.0, 11.0, -1.0, np.nan]), "tau": 1}
    assert PARABOLA.holds_at(**at).tolist() == [True, False, False, False]
    assert PARABOLA.holds_at(eta=1, tau=1) is True


def test_a_fast_call_may_sit_on_a_closed_edge_despite_rounding():
    edge = made(eta, assuming=(sp.Le(eta * tau, 1),))
    assert edge(eta=0.1 * (1 + 1e-13), tau=10) > 0.1
    with pytest.raises(AssumptionViolated):
        edge(eta=0.1 * (1 + 1e-10), tau=10)


def test_certified_assumptions_are_exact_at_the_edge():
    edge = made(eta, assuming=(sp.Le(eta * tau, 1),))
    assert edge.enclose(eta=Fraction(1, 3), tau=3).lo <= Fraction(1, 3)
    with pytest.raises(AssumptionViolated, match="eta"):
        edge.enclose(eta=Fraction(1, 3) + Fraction(1, 10**40), tau=3)


def test_missing_and_unknown_arguments_are_named():
    with pytest.raises(TypeError, match="missing: tau"):
        PARABOLA(eta=1)
    with pytest.raises(TypeError, match="unknown: size"):
        PARABOLA(eta=1, tau=1, size=3)


def test_best_finds_an_interior_minimum():
    best = PARABOLA.best(tau=4)
    assert best.value == pytest.approx(4, rel=1e-12)
    assert best.at["eta"] == pytest.approx(2, rel=1e-5)


def test_best_of_a_lower_bound_is_its_maximum():
    bound = made(eta * (2 - eta) + tau, side=Side.LOWER, free=Free(eta, sp.Integer(0), sp.Integer(2)))
    assert bound.best(tau=1).value == pytest.approx(2, rel=1e-12)


def test_best_stops_where_feasibility_ends():
    bound = made(-eta + tau, assuming=(sp.Le(eta * tau, 6),), free=Free(eta, sp.Integer(0), sp.Integer(10)))
    best = bound.best(tau=3)
    assert best.at["eta"] == pytest.approx(2, rel=1e-9)
    assert bound.holds_at(tau=3, **best.at)


def test_best_needs_a_free_parameter_and_a_feasible_point():
    with pytest.raises(ValueError, match="no free parameter"):
        made(eta).best(eta=1)
    bound = made(eta, assuming=(sp.Ge(eta, 20),), free=Free(eta, sp.Integer(0), sp.Integer(10)))
    with pytest.raises(AssumptionViolated, match="feasible"):
        bound.best()


def test_a_bound_without_an_example_is_refused():
    with pytest.raises(ValueError, match="example"):
        Bound("x", "q", Side.UPPER, eta, Reference("nobody"), Status.PROVED, examples=(), setting=CONVEX)


def test_a_bound_without_a_setting_is_refused():
    example = (Example({"eta": 1}, "1", "by hand"),)
    with pytest.raises(TypeError, match="setting"):
        Bound("x", "q", Side.UPPER, eta, Reference("nobody"), Status.PROVED, example)
    with pytest.raises(ValueError, match="needs a Setting"):
        Bound("x", "q", Side.UPPER, eta, Reference("nobody"), Status.PROVED, example, setting=None)


def test_a_symbol_outside_the_table_is_refused():
    with pytest.raises(KeyError):
        made(sp.Symbol("stranger"))


def test_latex_shows_side_and_value():
    text = made(d / 2 * omega, side=Side.LOWER, latex_name="b").latex()
    assert text == r"b \ge \frac{\omega d}{2}" or text == r"b \ge \frac{d \omega}{2}"
    assert made(alpha, side=Side.TIGHT, latex_name="b").latex() == r"b = \alpha"


def test_example_digits_stand_for_half_a_unit_of_the_last_place():
    assert Example({}, "1.50", "").interval == (Fraction(1495, 1000), Fraction(1505, 1000))
    assert Example({}, "2e3", "").interval == (1500, 2500)


def test_reference_reads_as_a_citation():
    assert str(Reference("wang2018", "Theorem 1", arxiv="1810.08313")) == "wang2018, Theorem 1, arXiv:1810.08313"


def test_zero_is_allowed_where_the_domain_says_so():
    assert made(sigma2 * eta)(sigma2=0, eta=1) == 0
