"""An answer says no more than its theorem: sides, settings, longest messages and means are kept apart."""

import html

import numpy as np
import pytest

import ratedist as rd
from bounds import Side, all_bounds
from operators import QSGD, TCDQ, Key


def test_a_construction_is_not_called_a_limit():
    """TCDQ is below the omega of Sparse Dithering with fewer bits, so "no compressor does better" would be false."""
    found = rd.solve(theorem="sparse_dithering_random_bits", d=10**4, bits=4 * 10**4, omega=None)
    assert found == pytest.approx(0.0430, abs=1e-4)
    assert found.statement.side == "upper"
    text = found.explain()
    assert "at most 0.0430" in text
    assert "others may do better" in text
    for false in ("No operator", "no compressor", "do not exclude", "least"):
        assert false not in text
    better = TCDQ(omega=0.005)
    assert better.bits(10**4).expected_upper <= 4 * 10**4
    assert better.claim(10**4).omega < found


@pytest.mark.parametrize(
    ("theorem", "known", "side"),
    [
        (None, {"d": 1000, "bits": 500, "omega": None}, "lower"),
        (None, {"bits": 500, "omega": 1}, "upper"),
        (None, {"d": 1000, "omega": 1}, "lower"),
        ("sparse_dithering_random_bits", {"d": 1000, "bits": 4000, "omega": None}, "upper"),
        ("sparse_dithering_random_bits", {"bits": 4000, "omega": 1}, "lower"),
        ("sparse_dithering_random_bits", {"d": 1000, "omega": 1}, "upper"),
        ("spherical_compression_bits", {"d": 100, "bits": 100, "alpha": None}, "tight"),
        ("worst_case_bits", {"d": 100, "bits": 100, "alpha": None}, "lower"),
    ],
)
def test_the_side_of_the_answer_follows_from_that_of_the_bound(theorem, known, side):
    assert rd.solve(theorem=theorem, **known).statement.side == side


def test_every_limit_that_can_be_solved_speaks_by_its_side():
    for name, bound in all_bounds().items():
        names = {symbol.name for symbol in bound.parameters}
        letter = next(iter(names - {"d"}), None)
        if bound.unit != "bit" or names != {"d", letter} or letter not in ("alpha", "omega"):
            continue
        bits = 1.05 * rd.certify(name, d=100, **{letter: {"alpha": 0.5, "omega": 2}[letter]})
        text = rd.solve(theorem=name, d=100, bits=bits, **{letter: None}).explain()
        assert ("of any compressor of this class" in text) == (bound.side is Side.LOWER), name


def test_a_formula_that_is_known_up_to_something_is_no_bound():
    found = rd.certify("glasgow", L=1, R0=1, sigma2=1, m=2, tau=8, rounds=64)
    assert found.statement.side == "estimate"
    assert ": about 0.0644" in found.explain()
    assert "known up to an absolute constant factor" in found.explain()
    text = rd.solve(theorem="covering_midpoint_bits", d=100, bits=100, alpha=None).explain()
    assert ": about 0." in text
    assert "no bound" in text


def test_the_limit_is_that_of_the_longest_message():
    """One-hot vectors take fewer bits than the limit of the class: it is no mean at a single x."""
    d, operator = 10**6, QSGD(levels=1, code="sparse")
    x = np.zeros(d, np.float32)
    x[17] = 1
    omega = operator.claim(d).omega
    limit = rd.bits_lower_bound(d=d, omega=omega)
    sent = operator.encode(x, key=Key(0)).bits
    assert sent < limit
    text = limit.explain()
    assert "longest message" in text
    assert "on average" not in text.replace("on average over an isotropic Gaussian x", "")
    assert "on average" not in rd.bits_lower_bound.__doc__


def test_an_answer_says_what_it_needs():
    found = rd.bits_lower_bound(d=100, omega=1)
    assert found.needs == all_bounds()["unbiased_bits"].setting.hypotheses()
    assert found.needs[0] in found.explain()
    assert html.escape(found.needs[0]) in found._repr_html_()
    assert list(found.to_dict()["needs"]) == list(found.needs)
    assert found.to_dict()["about"] == "length of the longest message, all bits counted"


def test_a_theorem_is_refused_where_the_setting_does_not_imply_it():
    known = {"d": 100, "alpha": "0.5"}
    surely = rd.certify("worst_case_bits", setting=["strictly_contractive", "self_delimiting"], **known)
    assert surely == rd.certify("worst_case_bits", **known)
    with pytest.raises(ValueError, match=r"not covered: worst_case_bits needs: .*\(strictly_contractive\): add"):
        rd.certify("worst_case_bits", setting=["contractive", "self_delimiting"], **known)
    with pytest.raises(ValueError, match=r"not covered: diana needs: .*\(every_convex\)"):
        rd.certify("diana", setting=["strongly_convex"], kappa=1, m=2, omega=9, epsilon="0.1")
    assert rd.solve(d=100, bits=50, setting=["self_delimiting"]) == rd.solve(d=100, bits=50)
    with pytest.raises(ValueError, match=r"not covered: unbiased_bits needs: .*self_delimiting"):
        rd.solve(d=100, bits=50, setting=[])
    with pytest.raises(ValueError, match="got 'selfdelimiting': try self_delimiting"):
        rd.solve(d=100, bits=50, setting=["selfdelimiting"])


def test_one_shared_bit_beats_the_sure_bound_on_average():
    """d = 1: x* in [-1, 1] is split at a shared uniform point; E f is below 1/5 of the gap for every x*."""
    split = 0.9 * ((np.arange(4000) + 0.5) / 4000 - 0.5)

    def mean_error(x):
        return float(np.mean((x - 0.75 * split + np.where(x < split, 0.6, -0.6)) ** 2))

    worst = max(mean_error(x) for x in np.linspace(-1, 1, 801))
    assert worst < 0.2
    assert rd.certify("total_bits", d=1, gap=1, epsilon=worst) > 1.15
    assert rd.certify("total_bits_in_expectation", d=1, gap=1, epsilon=worst) <= 1
