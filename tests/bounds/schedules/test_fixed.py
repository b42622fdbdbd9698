import pytest

from bounds.schedules import Fixed, Observation


def taus(rule, etas):
    state, found = rule.init(), []
    for k, eta in enumerate(etas):
        state, tau = rule(state, Observation(float(k), 10 * k, eta))
        found.append(tau)
    return found


def test_fixed_is_fixed():
    assert taus(Fixed(9), [0.1, 0.5, 0.01]) == [9, 9, 9]


def test_zero_steps_are_refused():
    with pytest.raises(ValueError, match="tau must be an integer >= 1; got tau = 0"):
        Fixed(0)
