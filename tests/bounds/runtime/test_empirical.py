import itertools
import math

import numpy as np
import pytest

from bounds.runtime import Constant, Empirical


@pytest.mark.parametrize(("m", "tau"), [(4, 1), (16, 2), (4, 4)])
def test_empirical_law_agrees_with_enumeration(m, tau):
    samples = [0.3, 1.1, 1.7, 2.0, 4.5]
    sums = sorted(sum(pick) / tau for pick in itertools.product(samples, repeat=tau))
    n = len(sums)
    exact = sum(x * ((j / n) ** m - ((j - 1) / n) ** m) for j, x in enumerate(sums, 1))
    assert Empirical(samples).expected_max(m=m, tau=tau) == pytest.approx(exact, rel=2e-6)


def test_equal_samples_are_a_constant():
    assert Empirical([2.0, 2.0]).expected_max(m=5, tau=3) == Constant(2.0).expected_max(m=5, tau=3)


def test_masses_on_the_lattice_keep_total_and_mean():
    law = Empirical([1.0, 1.13, 2.71, 3.0])
    masses = law.lattice(0.1, 64)
    assert masses.sum() == pytest.approx(1, rel=1e-14)
    assert masses @ (1.0 + 0.1 * np.arange(64)) == pytest.approx(law.mean_s, rel=1e-14)


def test_tail_counts_what_lies_strictly_beyond():
    law = Empirical([1.0, 2.0, 2.0, 5.0])
    assert law.sf([0.0, 1.0, 2.0, 5.0]).tolist() == [1.0, 0.75, 0.25, 0.0]
    assert law.quantile(0.25) == 2.0


@pytest.mark.parametrize(
    ("samples", "message"), [([], "at least one sample"), ([1.0, math.nan], "each sample must be")]
)
def test_unusable_samples_are_refused(samples, message):
    with pytest.raises(ValueError, match=message):
        Empirical(samples)


@pytest.mark.parametrize("tau", [1, 2, 5])
@pytest.mark.parametrize("m", [1, 4, 64])
def test_the_longest_of_sums_and_a_floor_agrees_with_enumeration(m, tau):
    samples = (0.4, 0.5, 0.7, 1.1)
    sums, counts = np.unique(
        [round(sum(steps), 9) for steps in itertools.product(samples, repeat=tau)], return_counts=True
    )
    masses = np.diff((np.cumsum(counts) / counts.sum()) ** m, prepend=0)
    for floor in np.linspace(0, 1.2, 13) * tau:
        exact = masses @ np.maximum(sums, floor)
        assert Empirical(samples).expected_max_above(floor, m=m, tau=tau) == pytest.approx(exact, rel=1e-6)
