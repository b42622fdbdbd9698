import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation.averaging.mixing import Elastic, zeta
from gpu_validation.averaging.simulated import SimulatedWorkers


@given(st.integers(1, 40), st.floats(0.001, 0.999))
def test_zeta_is_the_larger_of_the_two_pulls(m, share):
    alpha = share * 2 / (m + 1)
    mode = Elastic(alpha)

    # the m - 1 differences between models shrink by 1 - alpha, that between their mean and the anchor otherwise
    expected = max(abs(1 - alpha), abs(1 - (m + 1) * alpha)) if m > 1 else abs(1 - 2 * alpha)
    assert mode.zeta(m) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("m", [2, 4, 16])
def test_best_pull_has_the_least_zeta(m):
    best = Elastic.best(m)

    assert best.zeta(m) == pytest.approx(m / (m + 2), abs=1e-12)
    for factor in (0.9, 0.99, 1.01):
        assert Elastic(factor * best.alpha).zeta(m) > best.zeta(m)


@pytest.mark.parametrize("alpha", [0.0, -0.1, 1.0, float("nan")])
def test_a_pull_must_be_between_none_and_all(alpha):
    with pytest.raises(ValueError, match="0 < alpha < 1; got"):
        Elastic(alpha)


def test_a_pull_that_overshoots_is_refused():
    with pytest.raises(ValueError, match=r"0 < alpha < 2/\(m \+ 1\) = 0.4; got 0.5"):
        Elastic(0.5).check(4)


def test_models_that_rest_are_pulled_to_the_mean_of_models_and_anchor():
    models = [torch.nn.Linear(1, 1, bias=False).double() for _ in range(4)]
    workers = SimulatedWorkers(models, mixing=Elastic(0.3), schedule=1)
    start = models[0].weight.item()
    with torch.no_grad():
        for i, model in enumerate(models):
            model.weight += i
    for _ in range(200):
        workers.step()

    anchor = workers.engine.workers[0].mixing_state["anchor"].item()
    expected = start + (0 + 0 + 1 + 2 + 3) / 5  # conserved: four models and the anchor
    assert 0.7**200 < 1e-15 > zeta(Elastic(0.3).matrix(4)) ** 200
    np.testing.assert_allclose([anchor, *(m.weight.item() for m in models)], expected, rtol=0, atol=1e-12)
