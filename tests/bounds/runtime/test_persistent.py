import math

import numpy as np
import pytest

from bounds.runtime import Constant, Exponential, Pareto, PersistentStragglers, Uniform, Weibull


def test_one_slow_worker_is_not_averaged_away():
    workers = PersistentStragglers(Exponential(1.0), [1.0] * 7 + [1.5])
    known = {1: 2.94, 10: 1.69, 100: 1.50}
    for tau, value in known.items():
        assert workers.expected_max(m=8, tau=tau) == pytest.approx(value, abs=5e-3)


@pytest.mark.parametrize("law", [Exponential(1.0), Uniform(0.2, 1.0), Weibull(1.0, 0.7), Pareto(1.0, 3.0)])
@pytest.mark.parametrize("tau", [1, 5])
def test_equal_workers_are_the_plain_law(law, tau):
    same = PersistentStragglers(law, [2.0] * 6).expected_max(m=6, tau=tau)
    assert same == pytest.approx(2 * law.expected_max(m=6, tau=tau), rel=1e-7)


def test_two_exponential_workers_by_hand():
    # E max(X, Y) = a + b - 1/(1/a + 1/b) for independent exponentials of means a, b
    workers = PersistentStragglers(Exponential(1.0), [1.0, 3.0])
    assert workers.expected_max(m=2) == pytest.approx(4 - 0.75, rel=1e-12)
    assert workers.mean_s == 2.0


def test_lattice_path_agrees_with_simulation():
    law, slowdowns = Weibull(1.0, 0.7), np.array([1.0, 1.0, 1.3, 2.0])
    sample = (law.sample(np.random.default_rng(3), (40_000, 4, 5)).mean(axis=2) * slowdowns).max(axis=1)
    computed = PersistentStragglers(law, slowdowns).expected_max(m=4, tau=5)
    assert computed == pytest.approx(sample.mean(), abs=4 * sample.std() / math.sqrt(sample.size))


def test_constant_steps_wait_for_the_slowest():
    workers = PersistentStragglers(Constant(2.0), [1.0, 1.5])
    assert workers.expected_max(m=2, tau=7) == pytest.approx(3.0)
    assert workers.expected_max_above(5.0, m=2) == pytest.approx(5.0)


def test_the_number_of_workers_must_match():
    with pytest.raises(ValueError, match="m must be the number of slowdowns, 2; got m = 3"):
        PersistentStragglers(Constant(1.0), [1.0, 2.0]).expected_max(m=3)
    with pytest.raises(ValueError, match="one factor for each worker"):
        PersistentStragglers(Constant(1.0), [])
