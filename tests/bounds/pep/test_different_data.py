"""Short horizons on different data: the worst case is enclosed from both sides, so that the best tau is proved."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bounds.pep import NotProved, attained, certify, different_data, short_horizon, solve, verify, worst_case

SHORT = {"time_s": Fraction(24), "step_s": Fraction(1), "delay_s": Fraction(4)}
QUICK = [  # zeta2 = .0025: tau, rounds, eta, worst case to three digits
    (1, 4, "1.5", 0.0385),
    (2, 4, "1", 0.0306),
    (4, 3, "0.6", 0.0373),
    (8, 2, "0.35", 0.0526),
]
MINIMAX = [  # zeta2, worst case at the best rate of the grid for tau = 1, 2, 4, 8, 20, the best tau
    ("0.0025", (0.0385, 0.0306, 0.0373, 0.0526, 0.0930), 2),
    ("0.04", (0.0385, 0.0460, 0.0585, 0.0770, 0.120), 1),
    ("1", (0.0385, 0.0895, 0.115, 0.153, 0.218), 1),
]


@pytest.mark.parametrize(("tau", "rounds", "x", "value"), QUICK)
def test_worst_cases_are_enclosed_from_both_sides(tau, rounds, x, value):
    program = different_data(x=Fraction(x), tau=tau, rounds=rounds, zeta2=Fraction("0.0025"))
    _, above = certify(program)
    _, below = worst_case(program)
    assert below.lo <= above.hi
    assert above.hi - below.lo < 2e-3 * value
    assert above.hi == pytest.approx(value, abs=5.1e-5)


@pytest.mark.parametrize("steps", [1, 2, 4, 7])
def test_gradient_descent_has_its_known_worst_case(steps):
    """Drori and Teboulle: L R0^2/(4 N + 2) at eta = 1/L, whatever zeta2 is where every step is averaged."""
    program = different_data(x=Fraction(1), tau=1, rounds=steps, zeta2=Fraction(1, 10))
    assert solve(program).value == pytest.approx(1 / (4 * steps + 2), rel=1e-6)


def test_a_simulated_run_stays_below():
    rng = np.random.default_rng(3)
    program = different_data(x=Fraction(1, 2), tau=3, rounds=2, zeta2=Fraction(1, 4))
    limit = certify(program)[1].hi
    for _ in range(50):
        curvatures, pulls = rng.uniform(0, 1, 4), rng.normal(size=4)
        pulls -= pulls.mean()
        pulls *= 0.5 / np.sqrt((pulls**2).mean())
        x = np.ones(4)
        for _ in range(2):
            for _ in range(3):
                x = x - 0.5 * (curvatures * x + pulls)  # the minimiser of the mean is 0
            x = np.full(4, x.mean())
        assert curvatures.mean() * x[0] ** 2 / 2 <= limit


def test_a_false_witness_or_certificate_is_refused():
    program = different_data(x=Fraction(1), tau=2, rounds=2, zeta2=Fraction("0.0025"))
    certificate, _ = certify(program)
    for index in range(len(certificate.pairs)):
        pairs = list(certificate.pairs)
        pairs[index] += 1
        with pytest.raises(NotProved):
            verify(program, replace(certificate, pairs=pairs))
    witness, below = worst_case(program)
    better = replace(witness, values=[value * 101 // 100 for value in witness.values])
    with pytest.raises(NotProved, match="breaks the interpolation inequality"):
        attained(program, better)
    longer = [[2 * v for v in row] for row in witness.common]
    with pytest.raises(NotProved, match="exceeds a limit"):
        attained(program, replace(witness, common=longer))
    assert attained(program, witness) == below


@pytest.mark.thorough
@pytest.mark.parametrize(("zeta2", "values", "tau"), MINIMAX)
def test_the_minimax_table_is_proved(zeta2, values, tau):
    horizon = short_horizon(**SHORT, zeta2=Fraction(zeta2), taus=(1, 2, 4, 8, 20))
    for worst, value in zip(horizon.periods, values, strict=True):
        assert worst.gap.hi == pytest.approx(value, abs=5.1e-5 if value < 0.1 else 5.1e-4)
    assert horizon.best.tau == tau
    assert horizon.is_proved


def test_two_steps_beat_one_where_the_data_hardly_differ():
    for zeta2, tau in (("0.0025", 2), ("0.04", 1)):
        horizon = short_horizon(**SHORT, zeta2=Fraction(zeta2), taus=(1, 2))
        assert (horizon.best.tau, horizon.is_proved) == (tau, True)


def test_horizons_that_are_none_are_refused():
    with pytest.raises(ValueError, match="one round of 1 steps and an averaging, 5 s > 0; got time_s = 3"):
        short_horizon(time_s=Fraction(3), step_s=Fraction(1), delay_s=Fraction(4), zeta2=Fraction(1), taus=(1,))
    with pytest.raises(ValueError, match="at most 24 local steps; got tau = 20, 2 rounds"):
        short_horizon(time_s=Fraction(48), step_s=Fraction(1), delay_s=Fraction(4), zeta2=Fraction(1), taus=(20,))
    with pytest.raises(ValueError, match="different data needs x > 0"):
        different_data(x=Fraction(0), tau=1, rounds=1, zeta2=Fraction(0))
