"""The bets: fair under the claim, never in debt, and quick against a false one."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from operators.laws.betting.eprocess import SLACK, DirectionBets, ExcessBets, Wealth, inflated
from operators.laws.betting.mean_bets import MeanBets

LEVEL = 0.05
PATHS = 600
ALLOWED = int(binom.ppf(0.999, PATHS, LEVEL))  # false alarms of a valid test, with probability 0.999


def factors_of(bets, draws):
    """The payoff of each bet at each draw, shape (draws, bets)."""
    seen = []
    bets.wealth.multiply = lambda factors: seen.append(factors)
    bets.update(draws)
    return seen[0]


@pytest.mark.parametrize("s2", [1e-6, 0.25, 1.0, 40.0])
def test_mean_bets_never_owe_money_and_are_fair_for_two_points_that_meet_the_claim(s2):
    s = math.sqrt(s2)
    errors = np.array([[s], [-s]])  # mean 0, second moment s^2 exactly

    payoff = factors_of(DirectionBets(s2, np.ones((1, 1))), errors)

    assert (payoff >= 0).all()
    assert payoff.mean(axis=0).max() <= 1 + 1e-12


def test_mean_bets_are_fair_for_rare_large_errors():
    s2, p = 0.5, 1e-3
    large = math.sqrt(s2 / p)
    values = np.array([[large], [-large], [0.0]])

    payoff = factors_of(DirectionBets(s2, np.ones((1, 1))), values)

    assert (payoff >= 0).all()
    assert (np.array([p / 2, p / 2, 1 - p]) @ payoff).max() <= 1 + 1e-12


def test_mean_bets_allow_the_rounding_of_binary32():
    s2 = 0.3
    s = math.sqrt(s2)
    errors = np.array([[s + SLACK], [-s + SLACK]])  # mean off by the slack

    assert factors_of(DirectionBets(s2, np.ones((1, 1))), errors).mean(axis=0).max() <= 1 + 1e-12


def test_excess_bets_are_fair_at_the_claimed_mean():
    draws = np.array([0.0, 1.0, 2.0, 9.0])  # mean 3

    assert factors_of(ExcessBets(3.0), draws).mean(axis=0) == pytest.approx(1)


def test_wealth_remembers_its_peak_and_not_only_its_end():
    wealth = Wealth(2)
    steps = np.array([[2.0, 1.0], [3.0, 0.5], [0.01, 0.01]])

    wealth.multiply(steps[:2])
    wealth.multiply(steps[2:])

    capital = np.cumprod(steps, axis=0).mean(axis=1)
    assert wealth.peak == pytest.approx(math.log(capital.max()))
    assert wealth.rejects(1 / 3)
    assert not wealth.rejects(1 / 4)


def test_ruin_of_every_bet_is_final():
    wealth = Wealth(2)
    wealth.multiply(np.array([[0.0, 0.0], [5.0, 5.0]]))
    assert wealth.peak == 0


@pytest.mark.parametrize("law", ["sign", "rare", "gauss"])
def test_false_alarms_of_the_mean_bets_keep_their_level_at_any_time(law):
    """n = 600 paths of 300 draws, stopped at the best moment, level .05, quantile .999."""
    rng = np.random.default_rng(11)
    alarms = 0
    for _ in range(PATHS):
        if law == "sign":
            errors = rng.choice([-1.0, 1.0], (300, 1))
        elif law == "rare":
            errors = 10.0 * rng.choice([-1, 0, 1], (300, 1), p=[0.005, 0.99, 0.005])
        else:
            errors = rng.standard_normal((300, 1))
        bets = DirectionBets(1.0, np.ones((1, 1)))
        bets.update(errors)
        alarms += bets.wealth.rejects(LEVEL)
    assert alarms <= ALLOWED


def test_a_two_percent_shrink_is_found_along_a_direction_nobody_gave():
    """The learnt direction: the bias is orthogonal to all given ones."""
    rng = np.random.default_rng(12)
    bets = DirectionBets(0.09, np.eye(4)[:1])
    for _ in range(40):
        errors = 0.3 * rng.choice([-0.5, 0.5], (100, 4))
        errors[:, 2] += 0.02
        bets.update(errors)
    assert bets.wealth.rejects(1e-6)


def test_excess_of_a_tenth_is_found_and_a_fair_mean_is_not():
    rng = np.random.default_rng(13)
    guilty, innocent = ExcessBets(1.0), ExcessBets(1.0)
    draws = rng.exponential(1.0, 6000)
    guilty.update(1.1 * draws)
    innocent.update(draws)
    assert guilty.wealth.rejects(1e-6)
    assert not innocent.wealth.rejects(1e-6)


def test_inflated_second_moment_adds_the_slack_to_the_root():
    assert inflated(0.25) == pytest.approx((0.5 + SLACK) ** 2)
    assert inflated(0.0) == SLACK**2


def cheating(errors):
    """The capital of the bets over all vectors after draws at two vectors in turn."""
    bets = MeanBets([np.eye(4)[0], np.ones(2) / math.sqrt(2)], [1.0, 1.0])
    for _ in range(15):
        bets.update(0, errors(20, 4))
        bets.update(1, errors(20, 2))
    return bets


@pytest.mark.thorough
@pytest.mark.parametrize("law", ["sign", "rare", "gauss"])
def test_false_alarms_of_bets_over_all_vectors_keep_their_level_at_any_time(law):
    """n = 300 paths of 600 draws, stopped at the best moment, level .05, quantile .999."""
    rng = np.random.default_rng(21)

    def errors(n, d):
        if law == "gauss":
            return rng.standard_normal((n, d)) / math.sqrt(d)
        at = np.eye(d)[rng.integers(0, d, n)] * rng.choice([-1.0, 1.0], (n, 1))
        return at if law == "sign" else 10 * at * (rng.random((n, 1)) < 0.01)

    alarms = sum(cheating(errors).ledger.rejects(LEVEL) for _ in range(PATHS // 2))

    assert alarms <= int(binom.ppf(0.999, PATHS // 2, LEVEL))


def test_half_the_vector_missing_is_found_in_two_hundred_draws():
    """omega = 1 claimed, C(x) = x/2, forty vectors: the evidence of all of them adds up."""
    bets = MeanBets([np.eye(3)[0]] * 40, [1.0] * 40)
    for vector in range(40):
        bets.update(vector, np.tile([-0.5, 0.0, 0.0], (5, 1)))
    assert bets.ledger.rejects(1e-6)
