import pytest

from bounds.schedules import Observation, PostLocal


def taus(rule, etas):
    state, found = rule.init(), []
    for k, eta in enumerate(etas):
        state, tau = rule(state, Observation(float(k), 10 * k, eta))
        found.append(tau)
    return found


def test_post_local_waits_for_the_first_decay_and_ignores_the_warm_up():
    assert taus(PostLocal(16), [0.01, 0.1, 0.1, 0.05, 0.05, 0.1]) == [1, 1, 1, 16, 16, 16]


def test_zero_steps_are_refused():
    with pytest.raises(ValueError, match="tau must be an integer >= 1; got tau = 0"):
        PostLocal(0)


def test_stated_steps_switch_whatever_the_learning_rate_does():
    assert taus(PostLocal(16, steps=25), [0.1, 0.05, 0.01, 0.1, 0.1]) == [1, 1, 1, 16, 16]
    assert taus(PostLocal(16, steps=0), [0.1, 0.1]) == [16, 16]


@pytest.mark.parametrize("steps", [-1, 2.5, "2"])
def test_steps_are_a_whole_number(steps):
    with pytest.raises(ValueError, match="steps must be an integer"):
        PostLocal(16, steps=steps)
