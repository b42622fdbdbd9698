"""PASGD: when it synchronises, that all ranks agree, and that the averaged model is what a plain loop gives."""

import numpy as np
import pytest
import torch

from gpu_validation.averaging import PeriodicAveraging
from gpu_validation.exchange import Exchange
from gpu_validation.launch import run_ranks
from gpu_validation.workloads import Quadratic
from operators import Identity, Key, RandomisedSparseDithering

pytestmark = pytest.mark.timeout(120)
WORKERS, STEPS = 4, 32


def pasgd(operator, tau, seed=0, steps=STEPS):
    """Real processes: {rank: (anchors after every round, indices of the synchronising steps)}."""

    def work(place, emit):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
        averaging = PeriodicAveraging(
            model.parameters(), tau=tau, operator=operator, exchange=Exchange(), key=Key(seed).fold(1)
        )
        anchors, synced = [], []
        for k in range(steps):
            optimizer.zero_grad()
            workload.loss(model, key=Key(seed, step=k, rank=place.rank)).backward()
            optimizer.step()
            if averaging.step() is not None:
                anchors.append(averaging.anchor.numpy().copy())
                synced.append(k + 1)
        emit((place.rank, np.array(anchors), synced))

    return {rank: (anchors, synced) for rank, anchors, synced in run_ranks(work, processes=WORKERS, silence_s=60)}


def plain_loop(operator, tau, seed=0, steps=STEPS):
    """The same algorithm in one process, without torch.distributed or autograd."""
    workload = Quadratic()
    from operators.random import normal

    anchor, anchors = np.ones(workload.d), []
    for start in range(0, steps, tau):
        deltas = []
        for rank in range(WORKERS):
            x = anchor.copy()
            for k in range(start, start + tau):
                noise = np.sqrt(workload.noise) * normal(Key(seed, step=k, rank=rank), workload.d)
                x -= workload.eta * (workload.eigenvalues * x + noise)
            key = Key(seed, step=start // tau, rank=rank).fold(1)
            deltas.append(operator((x - anchor).astype(np.float32), key=key).astype(float))
        anchor = anchor + sum(deltas) / WORKERS
        anchors.append(anchor)
    return np.array(anchors)


@pytest.mark.parametrize("tau", [1, 4])
def test_synchronisations_come_after_steps_tau_two_tau_and_so_on(tau):
    reports = pasgd(Identity(), tau)

    for _, synced in reports.values():
        assert synced == list(range(tau, STEPS + 1, tau))


def test_averaged_model_of_the_additive_noise_quadratic_does_not_depend_on_tau():
    often = pasgd(Identity(), tau=1)[0][0]
    seldom = pasgd(Identity(), tau=16)[0][0]

    # messages are binary32 and deltas are below 1: each of the 32 averagings rounds by at most 2^-25
    np.testing.assert_allclose(often[15::16], seldom, rtol=0, atol=STEPS * 2.0**-25)
    assert np.abs(often[-1] - often[15]).max() > 1e-3  # the model did move


@pytest.mark.parametrize("operator", [Identity(), RandomisedSparseDithering(omega=1.0)], ids=repr)
def test_real_processes_agree_with_each_other_and_with_a_plain_loop(operator):
    reports = pasgd(operator, tau=4)

    for rank in range(1, WORKERS):
        np.testing.assert_array_equal(reports[rank][0], reports[0][0])
    np.testing.assert_allclose(reports[0][0], plain_loop(operator, tau=4), rtol=1e-12, atol=1e-15)


def test_same_seed_gives_identical_bits_and_another_seed_does_not():
    operator = RandomisedSparseDithering(omega=1.0)

    first, second, other = (pasgd(operator, tau=8, seed=s)[0][0] for s in (3, 3, 4))

    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_bad_arguments_are_refused_before_anything_is_sent():
    with pytest.raises(ValueError, match="tau must satisfy tau >= 1; got tau = 0"):
        PeriodicAveraging([torch.zeros(2)], tau=0, operator=Identity(), exchange=None, key=Key(0))
    with pytest.raises(ValueError, match="parameter list is empty"):
        PeriodicAveraging([], tau=1, operator=Identity(), exchange=None, key=Key(0))
