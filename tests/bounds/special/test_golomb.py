"""The Golomb mean: code lengths summed over the geometric law, optimal parameter, headline constants."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from bounds.enclosure import enclose
from bounds.special.golomb import GolombMean, golomb_mean_bits, golomb_parameter

c = sp.Symbol("c", positive=True)


def codeword_bits(index, m):
    """Length of the Golomb word of an index >= 0: quotient in unary, remainder in truncated binary."""
    quotient, remainder = divmod(index, m)
    k = m.bit_length() - 1
    return quotient + 1 + (k if remainder < 2 ** (k + 1) - m else k + 1)


def mean_by_summation(neg_log2_p, m):
    p = 2.0**-neg_log2_p
    count = int(40 / p)  # beyond, the law has less than e^-40 left
    words = np.array([codeword_bits(i, m) for i in range(count)])
    return math.fsum(words * p * (1 - p) ** np.arange(count))


@pytest.mark.parametrize("neg_log2_p", [0.3, 1.0, 1.7, 2.0, 3.2875, 5.5, 8.0])
def test_mean_is_the_sum_over_the_law(neg_log2_p):
    m = golomb_parameter(neg_log2_p)
    assert golomb_mean_bits(neg_log2_p) == pytest.approx(mean_by_summation(neg_log2_p, m), rel=1e-10)


@pytest.mark.parametrize("neg_log2_p", [0.3, 1.7, 3.2875, 5.5])
def test_no_other_parameter_is_better(neg_log2_p):
    best = golomb_mean_bits(neg_log2_p)
    for m in range(1, 4 * golomb_parameter(neg_log2_p) + 2):
        assert mean_by_summation(neg_log2_p, m) >= best * (1 - 1e-10)


@pytest.mark.parametrize("value", ["0.1", "1", "2", "3.2875", "17.8", "44.9", "45.1", "100", "1000000.25"])
def test_kernel_lies_on_its_enclosure(value):
    interval = enclose(GolombMean(c), {c: Fraction(value)})
    assert interval.relative_width <= 1e-15
    assert golomb_mean_bits(float(value)) == pytest.approx(interval.midpoint, rel=1e-12)


def test_mean_stays_within_its_constants():
    value = np.linspace(1e-3, 60, 400_001)
    excess = golomb_mean_bits(value) - value
    assert 1.4754 < excess.max() < 1.4755
    p = 2.0**-value
    entropy = value + (1 - p) / p * -np.log1p(-p) / math.log(2)
    assert np.all(golomb_mean_bits(value) >= entropy * (1 - 1e-12))
    assert np.all(golomb_mean_bits(value) <= entropy + 1)


def test_both_sides_of_the_switch_to_the_limit_agree():
    below, above = golomb_mean_bits(np.array([45 - 1e-9, 45 + 1e-9]))
    assert abs(above - below) < 1e-8


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_impossible_probabilities_are_refused(bad):
    with pytest.raises(ValueError, match="-log2 P"):
        golomb_mean_bits(bad)
    with pytest.raises(ValueError, match="-log2 P"):
        golomb_parameter(bad)
