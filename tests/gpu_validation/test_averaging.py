"""PASGD: when it synchronises, that all ranks agree, and that the averaged model is what a plain loop gives."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from bounds.schedules import AdaComm, Observation, Schedule, State
from gpu_validation.averaging import PeriodicAveraging
from gpu_validation.exchange import Exchange
from gpu_validation.launch import run_ranks
from gpu_validation.tensors import flat
from gpu_validation.workloads import Quadratic
from operators import ErrorFeedback, Identity, Key, RandomisedSparseDithering, TopK
from operators.random import normal

pytestmark = pytest.mark.timeout(120)
WORKERS, STEPS = 4, 32


def in_ranks(work, processes=WORKERS):
    """What ``work(place)`` returns in every rank, in rank order; tensors come as arrays."""

    def report(place, emit):
        value = work(place)
        parts = value if isinstance(value, tuple) else (value,)
        emit((place.rank, [p.numpy() if isinstance(p, torch.Tensor) else p for p in parts]))

    reports = sorted(run_ranks(report, processes=processes, silence_s=60), key=lambda pair: pair[0])
    return [tuple(parts) if len(parts) > 1 else parts[0] for _, parts in reports]


def local_step(workload, model, optimizer, step, rank, seed=0):
    optimizer.zero_grad()
    loss = workload.loss(model, key=Key(seed, step=step, rank=rank))
    loss.backward()
    optimizer.step()
    return loss


def pasgd(operator, tau, seed=0, **settings):
    """Real processes; per rank (anchors after every round, indices of the synchronising steps)."""

    def work(place):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
        averaging = PeriodicAveraging(
            model, optimizer, schedule=tau, operator=operator, key=Key(seed).fold(1), **settings
        )
        anchors, synced = [], []
        for k in range(STEPS):
            loss = local_step(workload, model, optimizer, k, place.rank, seed)
            if averaging.step(loss) is not None:
                anchors.append(averaging.anchor.numpy().copy())
                synced.append(k + 1)
        return np.array(anchors), synced

    return in_ranks(work)


def plain_loop(compress, tau, seed=0, block_momentum=0.0):
    """The same algorithm in one process, without torch.distributed or autograd.

    compress(rank, delta, key) gives what the others decode.
    """
    workload = Quadratic()
    anchor, momentum, anchors = np.ones(workload.d), np.zeros(workload.d), []
    for start in range(0, STEPS, tau):
        mean = np.zeros(workload.d)
        for rank in range(WORKERS):
            x = anchor.copy()
            for k in range(start, start + tau):
                noise = np.sqrt(workload.noise) * normal(Key(seed, step=k, rank=rank), workload.d)
                x -= workload.eta * (workload.eigenvalues * x + noise)
            key = Key(seed, step=start // tau, rank=rank).fold(1)
            mean += compress(rank, (x - anchor).astype(np.float32), key).astype(float) / WORKERS
        momentum = block_momentum * momentum - mean / workload.eta
        anchor = anchor - workload.eta * momentum
        anchors.append(anchor)
    return np.array(anchors)


@dataclass(frozen=True)
class Scripted(Schedule):
    """The taus of a list, one a round."""

    taus: tuple[int, ...]

    def init(self):
        return Turn(0)

    def __call__(self, state, observation):
        return Turn(state.turn + 1), self.taus[state.turn]

    def restore(self, data):
        return Turn(**data)


@dataclass(frozen=True)
class Turn(State):
    turn: int


@pytest.mark.parametrize("tau", [1, 4])
def test_synchronisations_come_after_steps_tau_two_tau_and_so_on(tau):
    for _, synced in pasgd(Identity(), tau):
        assert synced == list(range(tau, STEPS + 1, tau))


def test_a_new_tau_begins_with_a_new_round():
    for _, synced in pasgd(Identity(), Scripted((2, 5, 1, 3, 20, 20))):
        assert synced == [2, 7, 8, 11, 31]


def test_averaged_model_of_the_additive_noise_quadratic_does_not_depend_on_tau():
    often, _ = pasgd(Identity(), tau=1)[0]
    seldom, _ = pasgd(Identity(), tau=16)[0]

    # messages are binary32 and deltas are below 1: each of the 32 averagings rounds by at most 2^-25
    np.testing.assert_allclose(often[15::16], seldom, rtol=0, atol=STEPS * 2.0**-25)
    assert np.abs(often[-1] - often[15]).max() > 1e-3  # the model did move


@pytest.mark.parametrize("operator", [Identity(), RandomisedSparseDithering(omega=1.0)], ids=repr)
def test_real_processes_agree_with_each_other_and_with_a_plain_loop(operator):
    reports = pasgd(operator, tau=4)

    for anchors, _ in reports[1:]:
        np.testing.assert_array_equal(anchors, reports[0][0])
    expected = plain_loop(lambda rank, delta, key: operator(delta, key=key), tau=4)
    np.testing.assert_allclose(reports[0][0], expected, rtol=1e-12, atol=1e-15)


def test_feedback_carries_each_workers_residual_from_round_to_round():
    operator, owed = TopK(fraction=0.2), np.zeros((WORKERS, 10), np.float32)

    def compress(rank, delta, key):
        wanted = delta + owed[rank]
        sent = operator(wanted, key=key)
        owed[rank] = wanted - sent
        return sent

    reports = pasgd(ErrorFeedback(operator), tau=4)

    np.testing.assert_allclose(reports[3][0], plain_loop(compress, tau=4), rtol=1e-12, atol=1e-15)
    assert np.abs(owed).max() > 0


def test_block_momentum_is_in_gradient_units():
    reports = pasgd(Identity(), tau=4, block_momentum=0.3)

    expected = plain_loop(lambda rank, delta, key: delta, tau=4, block_momentum=0.3)
    np.testing.assert_allclose(reports[0][0], expected, rtol=1e-12, atol=1e-15)


def test_same_seed_gives_identical_bits_and_another_seed_does_not():
    operator = RandomisedSparseDithering(omega=1.0)

    first, second, other = (pasgd(operator, tau=8, seed=s)[0][0] for s in (3, 3, 4))

    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_all_ranks_choose_the_same_tau_from_different_losses_and_clocks():
    def work(place):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
        rule = AdaComm(tau_0=8, interval_s=1e-9)  # decides anew at every averaging
        averaging = PeriodicAveraging(model, optimizer, schedule=rule)
        averaging.clock._began -= 100.0 * place.rank  # clocks far apart
        taus = []
        for k in range(STEPS):
            local_step(workload, model, optimizer, k, place.rank)
            account = averaging.step(10.0 * (1 + place.rank) / (1 + k))  # losses far apart
            if account is not None:
                taus.append(account.tau)
        return taus, averaging.exchange.payload_bytes, averaging.exchange.predicted_bytes

    reports = in_ranks(work)

    taus = [taus for taus, _, _ in reports]
    assert taus[0] == taus[1] == taus[2] == taus[3]
    assert taus[0][0] == 8
    assert min(taus[0]) < 8  # it did adapt
    assert sum(sent for _, sent, _ in reports) == reports[0][2]


def test_starting_point_and_buffers_are_the_same_everywhere():
    def work(place):
        torch.manual_seed(place.rank)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        averaging = PeriodicAveraging(model, schedule=2)
        start = flat(averaging.parameters)
        own = []
        for _ in range(2):
            model(torch.randn(8, 3))
            own.append(model[1].running_mean.clone())
            averaging.step()
        return start, own[-1], model[1].running_mean.clone(), model[1].num_batches_tracked.item()

    reports = in_ranks(work, processes=2)

    (start, own, after, _), (other_start, other_own, other_after, _) = reports
    np.testing.assert_array_equal(start, other_start)
    assert (own != other_own).any()
    mean = ((own.astype(float) + other_own) / 2).astype(np.float32)
    np.testing.assert_array_equal(after, mean)
    np.testing.assert_array_equal(other_after, mean)
    assert [tracked for *_, tracked in reports] == [2, 2]


@pytest.mark.parametrize("policy", ["keep", "average", "reset"])
def test_optimizer_state_is_kept_averaged_or_reset(policy):
    def work(place):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta, momentum=0.9)
        averaging = PeriodicAveraging(model, optimizer, schedule=3, optimizer_state=policy)
        for k in range(3):
            local_step(workload, model, optimizer, k, place.rank)
            before = optimizer.state[model.x]["momentum_buffer"].clone()
            averaging.step()
        return before, optimizer.state.get(model.x, {}).get("momentum_buffer")

    (before_0, after_0), (before_1, after_1) = in_ranks(work, processes=2)

    assert (before_0 != before_1).any()
    if policy == "reset":
        assert after_0 is None
        assert after_1 is None
    elif policy == "average":
        mean = (before_0 + before_1) / 2
        np.testing.assert_array_equal(after_0, mean)
        np.testing.assert_array_equal(after_1, mean)
    else:
        np.testing.assert_array_equal(after_0, before_0)
        np.testing.assert_array_equal(after_1, before_1)


def test_a_resumed_run_continues_bit_for_bit(tmp_path):
    def run(place, stop=None, resume=False):
        workload = Quadratic()
        model = workload.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta, momentum=0.5)
        averaging = PeriodicAveraging(
            model, optimizer, schedule=Scripted((3, 5, 4, 9, 9, 9)), operator=ErrorFeedback(TopK(k=2)), key=Key(7)
        )
        path, start = tmp_path / f"{place.rank}.pt", 0
        if resume:
            saved = torch.load(path, weights_only=True)
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            averaging.load_state_dict(saved["averaging"])
            start = saved["step"]
        for k in range(start, stop or STEPS):
            local_step(workload, model, optimizer, k, place.rank)
            averaging.step()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": stop}
        torch.save({**state, "averaging": averaging.state_dict()}, path)
        return flat(averaging.parameters)

    straight = in_ranks(run, processes=2)
    in_ranks(lambda place: run(place, stop=10), processes=2)  # in the middle of a round
    resumed = in_ranks(lambda place: run(place, resume=True), processes=2)

    np.testing.assert_array_equal(straight, resumed)


def test_bad_arguments_are_refused_with_the_rule():
    model = torch.nn.Linear(1, 1)
    for settings, words in (
        ({"schedule": 0}, "tau"),
        ({"schedule": AdaComm(tau_0=2, interval_s=1.0)}, "need the optimizer"),
        ({"optimizer_state": "forget"}, "must be keep, average or reset; got 'forget'"),
        ({"block_momentum": 1.0}, "0 <= beta < 1; got 1.0"),
    ):
        with pytest.raises(ValueError, match=words):
            PeriodicAveraging(model, **settings)
    with pytest.raises(ValueError, match="the model has no parameters"):
        PeriodicAveraging(torch.nn.Identity())


def test_observation_needs_every_ranks_loss():
    def work(place):
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        seen = []

        @dataclass(frozen=True)
        class Spy(Scripted):
            def __call__(self, state, observation):
                seen.append(observation)
                return super().__call__(state, observation)

        averaging = PeriodicAveraging(model, optimizer, schedule=Spy((1, 1, 1)), exchange=Exchange(), steps=9)
        averaging.step(1.0 + place.rank)
        averaging.step(5.0 if place.rank else None)
        return [(o.loss, o.step, o.steps_left) for o in seen]

    assert in_ranks(work, processes=2) == [[(1.5, 0, 9), (1.5, 1, 8), (None, 2, 7)]] * 2
    assert Observation(0.0, 0, 0.1).loss is None
