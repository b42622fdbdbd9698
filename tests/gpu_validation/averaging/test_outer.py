"""The outer step in the engine against the exact model of ``bounds.dynamics.outer``, and against torch itself."""

from functools import partial

import numpy as np
import pytest
import torch

from bounds.dynamics import Quadratic
from bounds.dynamics.outer import Workers, best_nesterov, largest_lr, mean_model, stationary_variance
from gpu_validation import SGD, Nesterov
from gpu_validation.averaging.mixing import ring
from gpu_validation.averaging.outer import BlockMomentum
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import Identity
from tests.gpu_validation.averaging.quadratics import growth, trajectory

ETA, TAU = 0.125, 4
PROBLEM = [1.0, 0.25]


@pytest.mark.parametrize("outer", [Nesterov(0.7, 0.5), SGD(0.7, 0.5), SGD(1.5)], ids=repr)
def test_the_common_model_moves_as_the_exact_model_says(outer):
    path, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=20, outer=outer)

    workers = Workers.alike(Quadratic(PROBLEM, [1.0, 1.0], [0.0, 0.0]), m=2)
    expected = mean_model(workers, "blocking", eta=ETA, tau=TAU, rounds=20, outer=outer.theory)
    np.testing.assert_allclose(path, expected[1:], rtol=0, atol=1e-14)


@pytest.mark.every(3)
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("kind", [Nesterov, SGD])
def test_just_below_the_largest_outer_rate_it_converges_and_just_above_it_diverges(kind, momentum):
    limit = largest_lr("blocking", x=ETA, tau=TAU, momentum=momentum, nesterov=kind is Nesterov)

    below, above = (
        trajectory([1.0], eta=ETA, tau=TAU, rounds=400, outer=kind(share * limit, momentum))[0]
        for share in (0.98, 1.02)
    )
    assert growth(below) < 0.8
    assert growth(above) > 1.25


def test_the_best_rate_and_momentum_contract_as_computed():
    """The worst root of the recursions that the iterates obey, one for each coordinate."""
    best = best_nesterov(eta=1.0, tau=10, L=1.0, mu=0.001)

    path, _ = trajectory(
        [0.001, 0.01, 0.1, 1.0], eta=1.0, tau=10, rounds=8, outer=Nesterov(best.outer.lr, best.outer.momentum)
    )
    factors = []
    for x in path.T:
        coefficients = np.linalg.lstsq(np.stack([x[1:-1], x[:-2]], axis=1), x[2:], rcond=None)[0]
        factors.append(np.abs(np.roots([1, *-coefficients])).max())
    assert max(factors) == pytest.approx(0.88498, abs=5e-6)


@pytest.mark.parametrize("outer", [Nesterov(0.7, 0.9), SGD(0.3, 0.9), SGD(1.0)], ids=repr)
def test_the_variance_that_stays_is_the_formulas(outer):
    """A unit of noise in one step of one worker leaves a trace; the sum of squares of all traces is the variance."""
    m, noise = 2, 0.3

    def kicks(rank, step):
        return np.eye(TAU)[step] if rank == 0 and step < TAU else np.zeros(TAU)

    traces, _ = trajectory([1.0] * TAU, eta=ETA, tau=TAU, rounds=300, start=np.zeros(TAU), kicks=kicks, outer=outer)
    variance = m * noise * (traces**2).sum()
    workers = Workers.alike(Quadratic([1.0], [0.0], [noise]), m=m)
    assert variance == pytest.approx(
        stationary_variance(workers, "blocking", eta=ETA, tau=TAU, outer=outer.theory)[0], rel=1e-9
    )


def test_rate_1_without_momentum_is_plain_averaging():
    plain, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=9)
    stepped, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=9, outer=SGD(1.0))

    np.testing.assert_allclose(stepped, plain, rtol=1e-14)


def test_block_momentum_is_the_outer_heavy_ball():
    block, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=9, outer=BlockMomentum(0.5))
    ball, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=9, outer=SGD(1.0, 0.5))

    np.testing.assert_allclose(ball, block, rtol=1e-13)
    assert np.abs(block[-1] - trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=9)[0][-1]).max() > 1e-3


@pytest.mark.parametrize("operator", [None, Identity()], ids=repr)
def test_any_optimizer_of_torch_sees_the_movement_as_its_gradient(operator):
    factory = partial(torch.optim.AdamW, lr=0.05)
    path, _ = trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=9, outer=factory, operator=operator)

    theta = torch.ones(2, dtype=torch.float64, requires_grad=True)
    optimizer = factory([theta])
    kept = (1 - ETA * torch.tensor(PROBLEM, dtype=torch.float64)) ** TAU
    for common in path:
        theta.grad = theta.detach() * (1 - kept)
        optimizer.step()
        np.testing.assert_allclose(common, theta.detach(), rtol=1e-14 if operator is None else 1e-5)


def test_the_optimizers_state_is_restored():
    settings = {"eta": ETA, "tau": TAU, "outer": Nesterov(0.7, 0.9)}
    whole, _ = trajectory(PROBLEM, rounds=10, **settings)
    _, first = trajectory(PROBLEM, rounds=5, **settings)
    _, other = trajectory(PROBLEM, rounds=0, **settings)
    for worker in other.engine.workers:
        worker.model.x.data.copy_(first.engine.workers[0].anchor)
    other.load_state_dict(first.state_dict())
    for _ in range(5 * TAU):
        for worker in other.engine.workers:
            x = worker.model.x
            x.data -= ETA * torch.tensor(PROBLEM, dtype=torch.float64) * x.detach()
        other.step()

    assert other.engine.workers[0].anchor.tolist() == whole[-1].tolist()


def test_frozen_parameters_stay_where_they_are():
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.x = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
            self.frozen = torch.nn.Parameter(torch.ones(3, dtype=torch.float64), requires_grad=False)

    models = [Half(), Half()]
    workers = SimulatedWorkers(models, schedule=1, outer=SGD(0.5))
    models[0].x.data -= 1.0
    models[1].frozen.data += 1.0
    workers.step()

    assert workers.engine.d == 2
    assert models[1].x.tolist() == [0.75, 0.75]
    assert models[1].frozen.tolist() == [2.0] * 3
    assert models[0].frozen.tolist() == [1.0] * 3


def test_what_cannot_work_is_refused():
    for given, words in (
        ({"outer": [BlockMomentum(0.5)]}, "outer must be Nesterov"),
        ({"outer": 0.7}, "outer must be Nesterov"),
        ({"outer": lambda parameters: None}, "it made NoneType"),
        ({"outer": SGD(0.7), "mixing": ring(2)}, "Gossip does not work with outer = SGD"),
    ):
        with pytest.raises(ValueError, match=words):
            trajectory(PROBLEM, eta=ETA, tau=TAU, rounds=1, **given)
    with pytest.raises(ValueError, match="0 <= momentum < 1; got 1"):
        Nesterov(0.7, 1.0)
    with pytest.raises(ValueError, match="positive number; got lr = 0"):
        SGD(0.0)
