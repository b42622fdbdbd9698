import pytest

from bounds.runtime import Exponential, ShiftedExponential, ShiftedGamma


@pytest.mark.parametrize("tau", [1, 4])
def test_the_shift_is_added_and_the_rest_unchanged(tau):
    shifted = ShiftedExponential(shift=0.8, scale=0.2)
    assert shifted.expected_max(m=16, tau=tau) == pytest.approx(0.8 + Exponential(0.2).expected_max(m=16, tau=tau))
    assert (shifted.mean_s, shifted.sd_s, shifted.lower_s) == (1.0, 0.2, 0.8)
    assert shifted.expected_max_above(1.5, m=3) == pytest.approx(0.8 + Exponential(0.2).expected_max_above(0.7, m=3))


def test_sums_of_steps_are_a_shifted_gamma_law():
    assert ShiftedExponential(0.5, 2.0).sum_law(3) == ShiftedGamma(1.5, 3.0, 2.0)
    assert ShiftedGamma(1.5, 3.0, 2.0).sum_law(2) == ShiftedGamma(3.0, 6.0, 2.0)


def test_a_negative_shift_is_refused():
    with pytest.raises(ValueError, match="shift must be finite and >= 0; got shift = -1"):
        ShiftedExponential(-1, 1.0)
