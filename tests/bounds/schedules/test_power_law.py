import pytest

from bounds.schedules import Decreasing, Increasing, Observation, increasing_converges


def taus(rule, etas):
    state, found = rule.init(), []
    for k, eta in enumerate(etas):
        state, tau = rule(state, Observation(float(k), 10 * k, eta))
        found.append(tau)
    return found


def test_powers_of_the_round():
    assert taus(Increasing(2, 0.5), [0.1] * 5) == [2, 3, 4, 4, 5]
    assert taus(Increasing(2, 0.5, cap=3), [0.1] * 5) == [2, 3, 3, 3, 3]
    assert taus(Decreasing(8, 1.0), [0.1] * 9) == [8, 4, 3, 2, 2, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("a", "b", "converges"),
    [
        (0.9, 0.5, True),
        (1.0, 0.0, True),  # Robbins-Monro with constant tau
        (0.5, 0.0, False),  # sum eta^2 diverges
        (2.0, 0.5, False),  # sum eta tau converges: the run stops moving
        (0.7, 0.6, False),  # sum eta^2 tau diverges
        (2.0, 2.4, False),  # eta tau grows beyond Theorem 1's condition
    ],
)
def test_increasing_periods_converge_where_theorem_3_says(a, b, converges):
    assert increasing_converges(eta_exponent=a, tau_exponent=b) is converges


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Increasing(1, -0.1), "exponent must be finite and >= 0"),
        (lambda: Increasing(1, 0.1, cap=0), "cap must be an integer >= 1"),
        (lambda: Decreasing(0, 0.1), "tau_0 must be an integer >= 1"),
    ],
)
def test_impossible_settings_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
