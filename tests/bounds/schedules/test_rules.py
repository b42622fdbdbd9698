import pytest

from bounds.schedules import QSR, Decreasing, Fixed, Increasing, Observation, PostLocal, StlSgd, increasing_converges


def taus(rule, etas, steps_left=None):
    state, found = rule.init(), []
    for k, eta in enumerate(etas):
        state, tau = rule(state, Observation(float(k), 10 * k, eta, steps_left=steps_left))
        found.append(tau)
    return found


def test_fixed_is_fixed():
    assert taus(Fixed(9), [0.1, 0.5, 0.01]) == [9, 9, 9]


def test_post_local_waits_for_the_first_decay_and_ignores_the_warm_up():
    assert taus(PostLocal(16), [0.01, 0.1, 0.1, 0.05, 0.05, 0.1]) == [1, 1, 1, 16, 16, 16]


def test_quadratic_rule_grows_with_the_inverse_square():
    assert taus(QSR(2, 0.2), [0.2, 0.1, 0.05, 0.02]) == [2, 4, 16, 100]
    assert taus(QSR(2, 0.2), [0.02], steps_left=30) == [30]
    assert taus(QSR(2, 0.2, warmup_steps=20, peak_eta=0.1), [0.001, 0.05, 0.1, 0.05]) == [4, 4, 4, 16]


def test_stagewise_rule_doubles_when_the_rate_halves():
    assert taus(StlSgd(3), [0.4, 0.2, 0.1, 0.05]) == [3, 6, 12, 24]
    assert taus(StlSgd(8, exponent=0.5), [0.4, 0.2, 0.1]) == [8, 11, 16]


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
        (lambda: Fixed(0), "tau must be an integer >= 1; got tau = 0"),
        (lambda: PostLocal(0), "tau must be an integer >= 1"),
        (lambda: QSR(1, 0.0), "growth must be finite and > 0"),
        (lambda: QSR(1, 0.1, warmup_steps=5), "a warm-up needs peak_eta > 0"),
        (lambda: QSR(1, 0.1, warmup_steps=-5), "warmup_steps must be >= 0"),
        (lambda: StlSgd(1, exponent=-1), "exponent must be >= 0"),
        (lambda: Increasing(1, -0.1), "exponent must be finite and >= 0"),
        (lambda: Decreasing(0, 0.1), "tau_0 must be an integer >= 1"),
    ],
)
def test_impossible_settings_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
