import pytest

from bounds.schedules import Observation, StlSgd


def taus(rule, etas):
    state, found = rule.init(), []
    for k, eta in enumerate(etas):
        state, tau = rule(state, Observation(float(k), 10 * k, eta))
        found.append(tau)
    return found


def test_stagewise_rule_doubles_when_the_rate_halves():
    assert taus(StlSgd(3), [0.4, 0.2, 0.1, 0.05]) == [3, 6, 12, 24]
    assert taus(StlSgd(8, exponent=0.5), [0.4, 0.2, 0.1]) == [8, 11, 16]


@pytest.mark.parametrize("exponent", [-1.0, float("nan")])
def test_an_exponent_that_is_no_number_from_zero_on_is_refused(exponent):
    with pytest.raises(ValueError, match=f"exponent must be finite and >= 0; got exponent = {exponent}"):
        StlSgd(1, exponent=exponent)
