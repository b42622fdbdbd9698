"""The limit, its inverse and any theorem: exact where exact values are known, and mutually inverse."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ratedist as rd
from bounds import all_bounds

RATES = st.fractions(min_value=Fraction(1, 1000), max_value=40)


def test_known_values():
    assert rd.bits_lower_bound(d=1e9, omega=1.0) == 5e8
    assert rd.bits_lower_bound(d=10, alpha=0.25) == 10
    assert rd.bits_lower_bound(d=2, omega="1/3") == 2
    assert rd.solve(d=10**6, bits=2e6, omega=None) == pytest.approx(1 / 15, rel=1e-15)
    assert rd.solve(d=10**6, bits=2e6) == rd.solve(d=10**6, bits=2e6, omega=None)
    assert rd.solve(d=10**6, bits=2e6, alpha=None) == 1 / 16
    assert rd.solve(bits=5e8, omega=1) == 1e9
    assert rd.solve(d=1000, omega=1) == rd.bits_lower_bound(d=1000, omega=1)


def test_a_decimal_is_meant_as_it_is_written():
    as_float, as_text = (rd.bits_lower_bound(d=10**15, alpha=a) for a in (0.1, "0.1"))
    assert (as_float.lo, as_float.hi) == (as_text.lo, as_text.hi)
    exact = Fraction(10**15, 2) * Fraction("3.3219280948873623478703194294893901758648313930")
    assert Fraction(as_text.lo) <= exact <= Fraction(as_text.hi)


@given(d=st.integers(1, 10**12), rate=RATES)
def test_solving_for_omega_inverts_the_limit(d, rate):
    bits = rate * d
    omega = rd.solve(d=d, bits=bits)
    least, most = (rd.bits_lower_bound(d=d, omega=end) for end in (omega.hi, omega.lo))
    assert least.lo <= bits * (1 + Fraction(1, 10**14))
    assert most.hi >= bits * (1 - Fraction(1, 10**14))


@given(d=st.integers(1, 10**9), alpha=st.fractions(min_value=Fraction(1, 10**6), max_value=Fraction(99, 100)))
def test_solving_for_d_is_on_the_feasible_side(d, alpha):
    bits = Fraction(rd.bits_lower_bound(d=d, alpha=alpha).hi)
    found = rd.solve(bits=bits, alpha=alpha)
    assert found.lo <= d <= found.hi
    assert float(found).is_integer()


def test_other_limits_are_inverted_by_search():
    alpha = rd.solve(theorem="worst_case_bits", d=1000, bits=500, alpha=None)
    assert alpha.lo <= alpha <= alpha.hi
    assert rd.certify("worst_case_bits", d=1000, alpha=alpha.lo * 0.999).lo > 500
    assert rd.certify("worst_case_bits", d=1000, alpha=alpha.hi * 1.001).hi < 500


def test_solve_broadcasts():
    found = rd.solve(d=1000, bits=[1000, 2000])
    assert found[0] == pytest.approx(1 / 3, rel=1e-15)
    assert found.values[1] == pytest.approx(1 / 15, rel=1e-15)


def test_certify_reproduces_every_certifiable_example_of_the_catalogue():
    tried = 0
    for name, bound in all_bounds().items():
        if "not certifiable" in bound.note or name in ("gaussian_block_converse", "layer_bits"):
            continue
        example = bound.examples[0]
        found = rd.certify(name, **example.at)
        low, high = example.interval
        assert Fraction(found.lo) <= high, name
        assert Fraction(found.hi) >= low, name
        tried += 1
    assert tried > 60


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rd.bits_lower_bound(d=-1, omega=1), "d must satisfy 1 <= d, an integer; got d = -1: give"),
        (
            lambda: rd.bits_lower_bound(d=10, omega=math.nan),
            "omega must satisfy 0 < omega, finite; got omega = nan: give",
        ),
        (lambda: rd.bits_lower_bound(d=10, alpha=1.5), "alpha must satisfy 0 < alpha < 1; got alpha = 1.5: give"),
        (lambda: rd.bits_lower_bound(d=range(10**9), alpha=0.5), "got 1000000000 elements: split"),
        (lambda: rd.bits_lower_bound(d=10), "exactly one of omega and alpha"),
        (lambda: rd.bits_lower_bound(d=10, alpha=0.1, omega=1), "exactly one of omega and alpha"),
        (lambda: rd.solve(d=10, bits=1, omega=1), "got 3 of 3: leave one out"),
        (lambda: rd.solve(d=10, alpha=None), "got 1 of 3: give"),
        (lambda: rd.solve(d=10, bits=1, omega=1, alpha=0.5), "omega or alpha, not both"),
        (lambda: rd.solve(d=10, bits=0), "0 < bits/d <= 480; got bits = 0 with d = 10"),
        (lambda: rd.solve(d=1, bits=1e9), "0 < bits/d <= 480"),
        (lambda: rd.solve(bits=0.1, omega=0.1), "give more bits"),
        (lambda: rd.solve(theorem="pasgd_iterations", d=1, bits=1), "theorem must be a limit in bits"),
        (lambda: rd.certify("worst_case", d=1), "got 'worst_case': try worst_case_bits"),
        (lambda: rd.certify("worst_case_bits", d=1), "missing: alpha"),
        (lambda: rd.certify("worst_case_bits", d=1, alpha=0.1, x=3), "unknown: x"),
        (
            lambda: rd.certify("sphere_bits", d=1, alpha=0.1),
            "sphere_bits needs d >= 2; got .*: the theorem says nothing",
        ),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_latex_of_the_inverse_is_derived_from_the_bound():
    assert rd.solve(d=10, bits=20, alpha=None).latex() == r"\alpha = 4^{- \frac{b}{d}}"
