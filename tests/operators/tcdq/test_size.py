"""Declared limits of lengths: above what is sent, and not far above."""

import numpy as np
import pytest

from operators import TCDQ, Key
from operators.tcdq import fit as size
from operators.tcdq.model import plan_of


@pytest.mark.parametrize("operator", [TCDQ(), TCDQ(omega=0.01), TCDQ(omega=1e-5), TCDQ(omega=30.0), TCDQ(states=1)])
@pytest.mark.parametrize("d", [1, 10, 100, 3000, 140_000])
def test_mean_and_worst_length_are_within_the_declared_ones(operator, d):
    rng = np.random.default_rng(d)
    declared = operator.bits(d)
    for x in (np.zeros(d), np.eye(1, d)[0], np.ones(d), rng.standard_normal(d), rng.standard_cauchy(d)):
        draws = 40 if d < 1000 else 2
        sent = [operator.encode(x, key=Key(2, step=t)).bits for t in range(draws)]
        assert max(sent) <= declared.worst_case
        assert np.mean(sent) <= declared.expected_upper * (1 + 5 / np.sqrt(draws * d))


def test_gaussian_comes_within_a_fifth_of_a_bit_of_the_declared_mean():
    x = np.random.default_rng(0).standard_normal(20_000)
    for omega in (0.3, 0.03, 0.003):
        sent = TCDQ(omega=omega).encode(x, key=Key(0)).bits
        assert sent <= TCDQ(omega=omega).bits(20_000).expected_upper <= sent + 0.2 * 20_000


@pytest.mark.parametrize("plan", [plan_of(500, 0.1, 8), plan_of(500, 1e-5, 8), plan_of(140_000, 1.0, 8)])
def test_lines_lie_above_every_entry(plan):
    cost, square = size._entries(plan)
    alpha, beta = size.lines(plan)
    assert (cost[:, None] <= alpha + beta * square[:, None] + 1e-9).all()
    assert (np.isclose(cost[:, None], alpha + beta * square[:, None]).any(axis=0)).all()
