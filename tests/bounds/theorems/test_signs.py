"""Sign methods: their bounds lie above exact probabilities and exact chains on a lattice."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bounds import theorems
from bounds.theorems.vote_error import exact_vote_error, worst_sign_error

ROUNDING = 1 + 1e-12
drawn = settings(max_examples=80, deadline=None)


def mean_gradient_on_lattice(*, curvature, start, eta, K, error_at):
    """(1/K) sum of E|F'(x)| for x -> x -+ eta on F = curvature x^2/2, the law of x followed exactly."""
    law, total = np.array([1.0]), 0.0
    for k in range(K):
        x = start + eta * np.arange(-k, k + 1, 2)
        gradient = curvature * x
        total += law @ np.abs(gradient)
        wrong = np.array([error_at(abs(g)) for g in gradient])
        down = np.where(gradient >= 0, 1 - wrong, wrong)  # probability of a step to the left
        law = np.append(law * down, 0.0) + np.append(0.0, law * (1 - down))
    return total / K


@given(st.floats(0.1, 3), st.floats(-3, 3), st.floats(0.01, 5), st.integers(1, 30))
@drawn
def test_signsgd_lies_above_the_exact_chain(curvature, start, sigma, K):
    exact = mean_gradient_on_lattice(
        curvature=curvature,
        start=start,
        eta=1 / math.sqrt(curvature * K),
        K=K,
        error_at=lambda g: norm.cdf(-g * math.sqrt(K) / sigma),
    )
    value = theorems.signsgd(L_1=curvature, gap=0.5 * curvature * start**2, sigma_1=sigma, K=K)
    assert value * ROUNDING >= exact**2


@given(st.floats(0.1, 3), st.floats(0.5, 3), st.floats(0.01, 5), st.integers(1, 15), st.integers(1, 12), st.data())
@drawn
def test_majority_vote_lies_above_the_exact_chain(curvature, start, sigma, K, m, data):
    faulty = data.draw(st.integers(0, (m - 1) // 2))
    gap = 0.5 * curvature * start**2
    exact = mean_gradient_on_lattice(
        curvature=curvature,
        start=start,
        eta=math.sqrt(gap / (curvature * K)),
        K=K,
        error_at=lambda g: exact_vote_error(workers=m, faulty=faulty, right=float(norm.cdf(g * math.sqrt(K) / sigma))),
    )
    value = theorems.majority_vote(L_1=curvature, gap=gap, sigma_1=sigma, K=K, m=m, faulty_fraction=faulty / m)
    assert value * ROUNDING >= exact**2


LAWS = {
    "gauss": lambda s: norm.cdf(-s),
    "laplace": lambda s: 0.5 * math.exp(-math.sqrt(2) * s),
    "uniform": lambda s: max(0.0, 0.5 - s / (2 * math.sqrt(3))),
    "gauss inequality, attained": worst_sign_error,
}


@pytest.mark.parametrize("law", LAWS)
@given(st.floats(0.01, 10), st.integers(1, 60), st.data())
@drawn
def test_vote_error_lies_above_the_exact_probability(law, snr, m, data):
    faulty = data.draw(st.integers(0, (m - 1) // 2))
    exact = exact_vote_error(workers=m, faulty=faulty, right=1 - LAWS[law](snr))
    value = theorems.vote_error(snr=snr, m=m, faulty_fraction=faulty / m)
    assert value * math.sqrt(3) / 2 * ROUNDING >= exact


@pytest.mark.parametrize("law", ["gauss", "laplace", "uniform"])
def test_worst_sign_error_is_gauss_inequality(law):
    for snr in np.linspace(0, 8, 200):
        assert LAWS[law](snr) <= worst_sign_error(snr) * ROUNDING
    small = np.linspace(0, 1, 20)
    assert [LAWS["uniform"](s) for s in small] == pytest.approx([worst_sign_error(s) for s in small], rel=1e-14)


@pytest.mark.parametrize(("workers", "faulty"), [(1, 0), (4, 1), (5, 2), (6, 0)])
def test_exact_vote_error_equals_enumeration(workers, faulty):
    right = 0.7
    total = 0.0
    for votes in product((0, 1), repeat=workers):
        weight = 1.0
        for i, vote in enumerate(votes):
            p = 1 - right if i < faulty else right
            weight *= p if vote else 1 - p
        total += weight * (2 * sum(votes) <= workers)
    assert exact_vote_error(workers=workers, faulty=faulty, right=right) == pytest.approx(total, rel=1e-14)


def test_colluders_are_worse_than_negators():
    right = float(norm.cdf(0.5))
    negating = exact_vote_error(workers=101, faulty=40, right=right)
    colluding = exact_vote_error(workers=101, faulty=40, right=right, faulty_right=0.0)
    assert negating == pytest.approx(0.193, abs=5e-4)
    assert colluding == pytest.approx(0.992, abs=5e-4)


def test_vote_functions_refuse_impossible_arguments():
    with pytest.raises(ValueError, match="0 <= faulty <= workers"):
        exact_vote_error(workers=3, faulty=4, right=0.9)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        exact_vote_error(workers=3, faulty=1, right=1.2)
    with pytest.raises(ValueError, match="snr must be >= 0"):
        worst_sign_error(-1)
