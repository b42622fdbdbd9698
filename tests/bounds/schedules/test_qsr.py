import pytest

from bounds.schedules import QSR, Observation


def taus(rule, etas, steps_left=None):
    state, found = rule.init(), []
    for k, eta in enumerate(etas):
        state, tau = rule(state, Observation(float(k), 10 * k, eta, steps_left=steps_left))
        found.append(tau)
    return found


def test_quadratic_rule_grows_with_the_inverse_square():
    assert taus(QSR(2, 0.2), [0.2, 0.1, 0.05, 0.02]) == [2, 4, 16, 100]
    assert taus(QSR(2, 0.2), [0.02], steps_left=30) == [30]
    assert taus(QSR(2, 0.2, warmup_steps=20, peak_eta=0.1), [0.001, 0.05, 0.1, 0.05]) == [4, 4, 4, 16]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: QSR(1, 0.0), "growth must be finite and > 0"),
        (lambda: QSR(1, 0.1, warmup_steps=5), "a warm-up needs peak_eta > 0"),
        (lambda: QSR(1, 0.1, warmup_steps=-5), "warmup_steps must be >= 0"),
    ],
)
def test_impossible_settings_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
