import numpy as np
import pytest

from bounds.runtime import AutoregressiveLogNormal, Exponential, Pareto, PersistentStragglers, RuntimeModel
from gpu_validation.timing import step_seconds
from operators import Key


def test_the_key_decides_and_workers_differ():
    law = Exponential(0.01)
    first = step_seconds(law, key=Key(3), worker=0, steps=50)
    assert (first == step_seconds(law, key=Key(3), worker=0, steps=50)).all()
    assert (first[:10] == step_seconds(law, key=Key(3), worker=0, steps=10)).all()
    for other in (
        step_seconds(law, key=Key(3), worker=1, steps=50),
        step_seconds(law, key=Key(4), worker=0, steps=50),
    ):
        assert not np.intersect1d(first, other).size


@pytest.mark.parametrize(("law", "tau"), [(Exponential(2.0), 1), (Exponential(2.0), 4), (Pareto(1.0, 4.0), 1)])
def test_the_slowest_worker_takes_what_the_model_expects(law, tau):
    m, rounds = 8, 20_000
    times = np.stack([step_seconds(law, key=Key(1), worker=i, steps=rounds * tau) for i in range(m)])
    slowest = times.reshape(m, rounds, tau).mean(axis=2).max(axis=0)

    error = slowest.std() / np.sqrt(rounds)
    expected = RuntimeModel(step=law, m=m).seconds_per_iteration(tau=tau)
    assert abs(slowest.mean() - expected) < 5 * error  # n = 20000, two-sided level 6e-7


def test_persistent_stragglers_are_slower_by_their_factor():
    law = PersistentStragglers(Exponential(1.0), (1.0, 3.0))
    plain = step_seconds(Exponential(1.0), key=Key(5), worker=1, steps=9)
    assert (step_seconds(law, key=Key(5), worker=1, steps=9) == 3.0 * plain).all()
    with pytest.raises(ValueError, match="needs a slowdown for worker 2; got 2 of them"):
        step_seconds(law, key=Key(5), worker=2, steps=1)


def test_correlated_steps_have_the_mean_spread_and_correlation_of_their_law():
    law, n = AutoregressiveLogNormal(mean=2.0, log_sd=0.3, correlation=0.9), 200_000
    logs = np.log(step_seconds(law, key=Key(2), worker=0, steps=n))
    centred = logs - logs.mean()
    inflation = np.sqrt((1 + 0.9) / (1 - 0.9))

    assert abs(logs.mean() - (np.log(2.0) - 0.3**2 / 2)) < 5 * 0.3 * inflation / np.sqrt(n)
    assert centred.std() == pytest.approx(0.3, rel=0.03)
    assert centred[1:] @ centred[:-1] / (centred @ centred) == pytest.approx(0.9, abs=0.01)


def test_an_unknown_kind_of_step_time_is_refused():
    with pytest.raises(TypeError, match="cannot draw step times of float"):
        step_seconds(0.5, key=Key(0), worker=0, steps=1)
