"""Rounds against formulas: momentum between rounds, whole models against deltas, the policy for optimizers."""

import numpy as np
import pytest
import torch

from bounds.schedules import QSR
from gpu_validation.averaging.merge.rules import Blocking
from gpu_validation.averaging.mixing import Elastic, Full, Sampled, ring
from gpu_validation.averaging.outer import BlockMomentum
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from operators import Identity, Key
from operators.random import normal

M, D, TAU, ETA, ROUNDS = 3, 6, 2, 0.25, 4


class Point(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(D, dtype=torch.float64))


def gradient(rank, step):
    return normal(Key(2, step=step, rank=rank), D)


def run(momentum=0.0, rounds=ROUNDS, **settings):
    """The models after every round, shape (rounds, m, d), and the workers."""
    models = [Point() for _ in range(M)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=ETA, momentum=momentum) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=TAU, **settings)
    path = []
    for step in range(rounds * TAU):
        for rank, (model, optimizer) in enumerate(zip(models, optimizers, strict=True)):
            model.x.grad = torch.from_numpy(gradient(rank, step))
            optimizer.step()
        if workers.step() is not None:
            path.append(np.stack([model.x.detach().numpy().copy() for model in models]))
    return np.array(path), workers


@pytest.mark.parametrize("beta", [0.0, 0.4])
@pytest.mark.parametrize("settings", [{}, {"operator": Identity()}, {"mixing": Sampled(2, Key(1))}], ids=repr)
def test_block_momentum_by_its_formula(beta, settings):
    path, _ = run(outer=BlockMomentum(beta), **settings)

    x, u = np.zeros(D), np.zeros(D)
    for round_index in range(ROUNDS):
        members = settings["mixing"].members(round_index, M) if "mixing" in settings else range(M)
        G = np.mean([sum(gradient(r, round_index * TAU + k) for k in range(TAU)) for r in members], axis=0)
        u = beta * u + G
        x = x - ETA * u
        # movements are below 4; a message of float32 rounds them by 2^-23 at most, once a round
        tolerance = round_index * 2.0**-20 + 2.0**-22 if "operator" in settings else 1e-14
        np.testing.assert_allclose(path[round_index], np.tile(x, (M, 1)), rtol=0, atol=tolerance)


def test_block_momentum_goes_by_the_learning_rate_of_rank_0():
    models = [Point() for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=rate) for model, rate in zip(models, (0.5, 2.0), strict=True)]
    workers = SimulatedWorkers(models, optimizers, schedule=1, outer=BlockMomentum(0.5))
    with torch.no_grad():
        models[1].x -= 2.0
    workers.step()

    assert workers.engine.outer.momentum.tolist() == [2.0] * D  # the mean movement of -1 over 0.5


def test_block_momentum_of_rounded_models_does_not_count_their_rounding():
    models = [Point().bfloat16() for _ in range(2)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=1.0) for model in models]
    workers = SimulatedWorkers(models, optimizers, schedule=1, outer=BlockMomentum(0.5))
    with torch.no_grad():
        models[0].x += 1.0
        models[1].x += 1.0 + 2.0**-7
    workers.step()  # the anchor, 1 + 2^-8, lies between two numbers of bfloat16

    assert workers.engine.outer.momentum.tolist() == [-1 - 2.0**-8] * D
    with torch.no_grad():
        for model in models:
            model.x += 0.5
    workers.step()

    assert workers.engine.outer.momentum.tolist() == [-(1 + 2.0**-8) / 2 - 0.5] * D
    assert workers.engine.workers[0].anchor.tolist() == [(1 + 2.0**-8) * 1.5 + 0.5] * D


def test_local_momentum_is_kept_or_starts_anew():
    kept, reset = (run(momentum=0.5, merge=Blocking(optimizer_state=policy))[0] for policy in ("keep", "reset"))

    def expected(fresh):
        x, buffers = np.zeros((M, D)), [None] * M
        for step in range(ROUNDS * TAU):
            for rank in range(M):
                g = gradient(rank, step)
                buffers[rank] = g if buffers[rank] is None else 0.5 * buffers[rank] + g
                x[rank] -= ETA * buffers[rank]
            if (step + 1) % TAU == 0:
                x[:] = x.mean(axis=0)
                buffers = [None] * M if fresh else buffers
        return x

    np.testing.assert_allclose(kept[-1], expected(fresh=False), rtol=0, atol=1e-13)
    np.testing.assert_allclose(reset[-1], expected(fresh=True), rtol=0, atol=1e-13)
    assert np.abs(kept[-1] - reset[-1]).max() > 0.01


@pytest.mark.parametrize("mixing", [Full(), ring(M), Elastic(0.2)], ids=repr)
def test_optimizer_states_are_averaged_in_the_same_way_as_the_models(mixing):
    _, workers = run(momentum=0.5, rounds=1, mixing=mixing, merge=Blocking(optimizer_state="average"))

    own = np.stack([gradient(r, 1) + 0.5 * gradient(r, 0) for r in range(M)])
    W = mixing.matrix(M) if mixing == ring(M) else np.full((M, M), 1 / M)
    found = [w.optimizer.state[w.parameters[0]]["momentum_buffer"].numpy() for w in workers.engine.workers]
    np.testing.assert_allclose(found, W @ own, rtol=0, atol=1e-14)


def test_a_round_can_be_ended_early_and_the_next_one_is_whole():
    workers = SimulatedWorkers([Point() for _ in range(M)], schedule=5)
    taus = [workers.step() for _ in range(3)]
    (account, *_) = workers.average()
    later = [workers.step() for _ in range(5)]

    assert taus == [None] * 3
    assert (account.index, account.tau) == (0, 3)
    assert [accounts is not None for accounts in later] == [False] * 4 + [True]
    assert later[-1][0].tau == 5


def test_schedules_see_the_learning_rate_and_the_steps_that_are_left():
    models = [Point()]
    optimizer = torch.optim.SGD(models[0].parameters(), lr=0.5)
    workers = SimulatedWorkers(models, [optimizer], schedule=Pacing(QSR(tau_base=2, growth=1.0), steps=23))
    taus = []
    for step in range(23):
        optimizer.param_groups[0]["lr"] = 0.5 if step < 8 else 0.25
        accounts = workers.step()
        if accounts:
            taus.append(accounts[0].tau)

    assert taus == [4, 4, 4, 11]  # (1/eta)^2 = 4, seen also after step 8; then 16, of which 11 are left
