import pytest

from bounds.runtime import Empirical, Exponential, Gamma, LogNormal, Pareto, Uniform, Weibull
from bounds.runtime.convolution import expected_max_of_sum, lattice_pair, lattice_sum

LAWS = (
    Exponential(1.0),
    Gamma(2.5, 0.4),
    Pareto(2 / 3, 3.0),
    Pareto(1 / 3, 1.5),
    Uniform(0.5, 1.5),
    Weibull(1.0, 0.7),
    LogNormal(-0.125, 0.5),
    Empirical([0.9, 1.0, 1.3, 2.6]),
)


def name(law):
    return type(law).__name__


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("tau", [1, 7, 200])
def test_one_worker_has_the_mean_on_both_lattices(law, tau):
    for total in lattice_pair(law, tau):
        assert total.expected_max(1) / tau == pytest.approx(law.mean_s, rel=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=name)
@pytest.mark.parametrize("tau", [1, 7, 200])
def test_the_second_lattice_is_twice_as_wide_and_reaches_as_far(law, tau):
    fine, coarse = lattice_pair(law, tau)
    assert coarse.width_s == 2 * fine.width_s
    assert coarse.end_s == pytest.approx(fine.end_s)
    assert fine.tail.size <= 2**18


@pytest.mark.parametrize("law", LAWS, ids=name)
def test_a_single_step_agrees_with_its_direct_value(law):
    accuracy = 1e-6 if isinstance(law, Empirical) else 1e-9  # atoms between lattice points cost most
    for m in (4, 16, 64):
        assert expected_max_of_sum(law, 1, m) == pytest.approx(law.expected_max(m=m), rel=accuracy)


@pytest.mark.parametrize("law", [Exponential(1.0), Gamma(2.5, 0.4)], ids=name)
@pytest.mark.parametrize(("m", "tau"), [(4, 4), (64, 50)])
def test_sums_that_stay_in_their_family_agree_with_quadrature(law, m, tau):
    assert expected_max_of_sum(law, tau, m) / tau == pytest.approx(law.expected_max(m=m, tau=tau), rel=1e-10)


def test_the_error_is_of_second_order_in_the_width():
    exact = Exponential(1.0).expected_max(m=16, tau=4) * 4
    errors = [lattice_sum(Exponential(1.0), 4, 0.01 / 2**k, 2**12 * 2**k).expected_max(16) - exact for k in range(3)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.01)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.01)


def test_the_tail_of_a_sum_falls_from_one_to_zero():
    total, _ = lattice_pair(Uniform(0.5, 1.5), 3)
    assert total.offset_s == 1.5
    assert total.sf([1.5, 3.0, 4.5]) == pytest.approx([1.0, 0.5, 0.0], abs=1e-6)
