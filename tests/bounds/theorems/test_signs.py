"""Sign methods: their bounds lie above exact probabilities and exact chains on a lattice."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from bounds import AssumptionViolated, theorems
from bounds.theorems.signs import exact_election_error, exact_vote_error, local_errors, worst_sign_error

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


def election_by_enumeration(n, faulty, right, density):
    """Every allocation and every local coin of n workers, in plain Python; liars replace right votes."""
    signs = [1] * right + [-1] * (n - right)
    others = [[j for j in range(n) if j != i] for i in range(n)]
    total = 0.0
    for held in product(*(list(product((0, 1), repeat=n - 1)) for _ in range(n))):
        weight = math.prod(density if h else 1 - density for row in held for h in row)
        sums = [
            signs[i] + sum(signs[j] for j, h in zip(others[i], row, strict=True) if h) for i, row in enumerate(held)
        ]
        votes = [(1.0,) if s > 0 else (0.0,) if s < 0 else (0.0, 1.0) for s in sums]
        for outcome in product(*votes):
            chance = math.prod(1 / len(options) for options in votes)
            if max(0, sum(outcome) - faulty) <= n / 2:
                total += weight * chance
    return total


@pytest.mark.parametrize(("n", "faulty", "right"), [(1, 0, 1), (2, 0, 1), (3, 0, 2), (3, 1, 2), (3, 1, 3), (3, 0, 1)])
@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_exact_election_error_equals_enumeration(n, faulty, right, density):
    exact = exact_election_error(workers=n, faulty=faulty, right=right, density=density)
    assert exact == pytest.approx(election_by_enumeration(n, faulty, right, density), rel=1e-12, abs=1e-15)


@given(st.integers(1, 41), st.floats(0, 1), st.data())
@drawn
def test_election_error_lies_above_the_exact_probability(n, density, data):
    right = data.draw(st.integers(n // 2 + 1, n))
    own_right, own_wrong = local_errors(workers=n, right=right, density=density)
    error = (right * own_right + (n - right) * own_wrong) / n
    faulty = data.draw(st.integers(0, max(0, math.ceil(n * (0.5 - error)) - 1)))
    assume(faulty / n + error < 0.5)
    exact = exact_election_error(workers=n, faulty=faulty, right=right, density=density)
    assert theorems.election_error(m=n, faulty_fraction=faulty / n, local_error=error) * ROUNDING >= exact


@pytest.mark.parametrize(("density", "error"), [(0.0, 0.2290), (0.1, 0.0832), (0.2, 0.0326), (0.5, 0.0074), (1.0, 0.0)])
def test_exact_election_error_has_the_known_values_for_random_signs(density, error):
    """n = 31, 6 liars, partition signs right with probability .75, the majority of the partitions taken as right."""
    n, faulty = 31, 6
    total = 0.0
    for k in range(n + 1):
        chance = math.comb(n, k) * 0.75**k * 0.25 ** (n - k)
        total += chance * exact_election_error(workers=n, faulty=faulty, right=max(k, n - k), density=density)
    assert total == pytest.approx(error, abs=1e-4)


def test_beyond_the_threshold_the_liars_win():
    """Local error .2: with a share of .25 liars the error vanishes with n, with .35 it tends to 1."""
    for share, limit in ((0.25, 0.0), (0.35, 1.0)):
        errors = [1 - float(binom.cdf(math.ceil(n * (0.5 - share)) - 1, n, 0.2)) for n in (101, 1001, 10001)]
        assert abs(errors[-1] - limit) < 1e-6
    assert theorems.election_error(m=10001, faulty_fraction=0.25, local_error=0.2) < 1e-20
    with pytest.raises(AssumptionViolated, match="local_error"):
        theorems.election_error(m=10001, faulty_fraction=0.35, local_error=0.2)


@pytest.mark.parametrize("n", range(1, 26, 2))
def test_election_load_exceeds_no_full_replication_and_is_that_of_the_construction(n):
    for b in range((n - 1) // 2 + 1):
        held = ((n + 1) // 2 + b) * n + (n - 1) // 2 - b
        assert theorems.election_load(m=n, faulty_fraction=b / n) == pytest.approx(held / n, rel=1e-14)
        assert held <= n * n


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 3, "faulty": 4, "right": 2, "density": 0.5}, "faulty"),
        ({"workers": 3, "faulty": 1, "right": 4, "density": 0.5}, "right"),
        ({"workers": 3, "faulty": 1, "right": 2, "density": 1.5}, "density"),
    ],
)
def test_impossible_elections_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        exact_election_error(**arguments)
