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


@pytest.mark.parametrize("tau", [0, 2.0, float("nan")])
def test_what_counts_no_steps_is_refused(tau):
    with pytest.raises(ValueError, match=f"tau must be an integer >= 1; got tau = {tau}"):
        Fixed(tau)
