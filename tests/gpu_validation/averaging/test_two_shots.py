"""Averaging in two shots: simulated workers and real processes alike bit for bit, every byte predicted."""

import contextlib
import io
import time

import numpy as np
import pytest
import torch
import torch.distributed as dist

from bounds.runtime import Constant, RuntimeModel, TwoShot
from bounds.schedules import AdaComm
from gpu_validation.averaging.exchange import parts
from gpu_validation.averaging.mixing import Sampled
from gpu_validation.averaging.outer import BlockMomentum
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.processes.launch import run_ranks
from gpu_validation.processes.step_check import UnevenSteps
from operators import EF21, QSGD, ErrorFeedback, Key, RandomK, ScaledSign, TopK
from operators.operator import Size
from operators.random import normal
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(200)
ETA, STEPS = 0.25, 6
D = {"short": 2, "odd": 11}
ADACOMM = AdaComm(tau_0=3, interval_s=4.0, gamma=0.7)
SETTINGS = {
    "qsgd": {"exchange": parts.TwoShot(QSGD(levels=4))},
    "another operator for means": {"exchange": parts.TwoShot(RandomK(fraction=0.5), QSGD(levels=16))},
    "feedback at both ends": {"exchange": parts.TwoShot(ErrorFeedback(ScaledSign()))},
    "feedback with receivers": {"exchange": parts.TwoShot(EF21(TopK(fraction=0.5)))},
    "sampled": {"exchange": parts.TwoShot(ErrorFeedback(ScaledSign())), "mixing": Sampled(2, Key(4))},
    "adaptive, block momentum": {
        "exchange": parts.TwoShot(QSGD(levels=4)),
        "schedule": ADACOMM,
        "outer": BlockMomentum(0.2),
    },
}


class Point(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(d))


def clock(m):
    return SimulatedClock(RuntimeModel(Constant(1.0), communication=TwoShot(0.01, 1e3)), m=m, key=Key(8))


def local_step(model, optimizer, rank, step):
    model.x.grad = torch.from_numpy(normal(Key(2, step=step, rank=rank), model.x.numel()).astype(np.float32))
    optimizer.step()
    return float(model.x.detach().square().sum())


def paced(m, schedule=2, **settings):
    return {"schedule": Pacing(schedule, clock=clock(m)), "key": Key(1)} | settings


def joined(d, m, **settings):
    model = Point(d)
    optimizer = torch.optim.SGD(model.parameters(), lr=ETA)
    return model, optimizer, PeriodicAveraging(model, optimizer, **paced(m, **settings))


def in_one_process(name, m):
    models = [Point(D[name.partition(", d ")[2]]) for _ in range(m)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=ETA) for model in models]
    workers = SimulatedWorkers(models, optimizers, **paced(m, **SETTINGS[name.partition(", d ")[0]]))
    for step in range(STEPS):
        workers.step([local_step(*pair, rank, step) for rank, pair in enumerate(zip(models, optimizers, strict=True))])
    return [model.x.detach().numpy() for model in models], workers.clock.events


NAMES = [f"{name}, d {size}" for name in SETTINGS for size in D]


@pytest.mark.every(3)
@pytest.mark.parametrize("m", [2, 3, 4])
def test_simulated_workers_make_the_run_of_real_processes_bit_for_bit(m):
    def work(place):
        found = {}
        for name in NAMES:
            setting, _, size = name.partition(", d ")
            model, optimizer, averaging = joined(D[size], m, **SETTINGS[setting])
            for step in range(STEPS):
                averaging.step(local_step(model, optimizer, place.rank, step))
            transport = averaging.transport
            found[name] = (model.x, averaging.clock.events, transport.payload_bytes, transport.predicted_bytes)
        return found

    results = in_ranks(work, m)

    for name in NAMES:
        expected, events = in_one_process(name, m)
        assert any(x.any() for x in expected)
        for rank, result in enumerate(results):
            np.testing.assert_array_equal(result[name][0], expected[rank], err_msg=name)
            assert result[name][1] == events
        assert sum(result[name][2] for result in results) == results[0][name][3], name


def test_bytes_are_those_of_the_declared_sizes():
    """ScaledSign sends 32 + d bits; 11 coordinates on 4 ranks are shards of 2, 3, 3, 3, so five bytes a message."""

    def work(place):
        model, optimizer, averaging = joined(11, 4, exchange=parts.TwoShot(ScaledSign()), schedule=1)
        account = averaging.step(local_step(model, optimizer, place.rank, 0))
        return averaging.transport.payload_bytes, account.bits, account.mean_bits

    for sent, bits, mean_bits in in_ranks(work, 4):
        # 3 times: a header and a shard; a header, the count of steps and a mean
        assert sent == 3 * (32 + 5) + 3 * (8 + 4 + 5)
        assert bits == (4 * 32 + 11,) * 4
        assert mean_bits == (34, 35, 35, 35)


def test_a_rank_tells_what_the_owners_decode_its_shards_to():
    """The same sum of squares that a scalar loop finds; measuring it changes neither models nor bytes."""

    def work(place):
        found = {}
        for errors in (True, False):
            model, optimizer, averaging = joined(11, 4, exchange=parts.TwoShot(ScaledSign(), errors=errors), schedule=1)
            local_step(model, optimizer, place.rank, 0)
            delta = model.x.detach().double().numpy().copy()
            account = averaging.average()
            told = (account.error2, account.norm2, account.error_along)
            found[errors] = (delta, told, averaging.transport.payload_bytes, model.x)
        return found

    for result in in_ranks(work, 4):
        (delta, told, *after), (_, untold, *plain) = result[True], result[False]
        shards = [delta[owner * 11 // 4 : (owner + 1) * 11 // 4] for owner in range(4)]
        error = [np.abs(shard).mean() * np.sign(entry) - entry for shard in shards for entry in shard]
        np.testing.assert_allclose(told, (np.dot(error, error), np.dot(delta, delta), np.dot(error, delta)), rtol=1e-6)
        assert (untold[0], untold[2]) == (0, 0)
        assert np.isnan(untold[1])
        assert after[0] == plain[0]
        np.testing.assert_array_equal(after[1], plain[1])


def test_what_remembers_at_the_receivers_is_followed_from_round_to_round():
    """EF21 sends the difference to what was decoded before, which its sender keeps as well."""
    models = [Point(11) for _ in range(3)]
    workers = SimulatedWorkers(models, exchange=parts.TwoShot(EF21(TopK(fraction=0.3))))
    for step in range(4):
        deltas = []
        for rank, model in enumerate(models):
            before = model.x.detach().clone()
            model.x.data += torch.from_numpy(normal(Key(2, step=step, rank=rank), 11).astype(np.float32))
            deltas.append((model.x.detach() - before).double())
        for worker, account, delta in zip(workers.engine.workers, workers.average(), deltas, strict=True):
            kept = torch.cat([end.state["estimate"] for end in worker.sender.senders]).double()
            assert account.error2 == pytest.approx(float((kept - delta).square().sum()), rel=1e-6)


def test_a_state_without_the_ends_that_measure_errors_is_refused():
    states = [
        SimulatedWorkers([Point(11)] * 2, exchange=parts.TwoShot(ScaledSign(), errors=errors))
        for errors in (False, True)
    ]
    with pytest.raises(ValueError, match="differs in exchange: give the same exchange"):
        states[1].load_state_dict(states[0].state_dict())


def test_auto_says_which_and_all_ranks_agree():
    def work(place):
        taken = []
        for d in (4, 4000):
            _, _, averaging = joined(d, 4, exchange=parts.Cheapest(ScaledSign()))
            taken.append(averaging.exchange)
        return taken

    assert in_ranks(work, 4) == [["gather", "two_shot"]] * 4
    assert in_ranks(work, 2) == [["gather", "gather"]] * 2


def test_a_resumed_run_continues_exactly():
    def run(breaks):
        models = [Point(11) for _ in range(3)]
        optimizers = [torch.optim.SGD(model.parameters(), lr=ETA) for model in models]

        def join():
            settings = paced(3, 1, exchange=parts.TwoShot(ErrorFeedback(ScaledSign())))
            return SimulatedWorkers(models, optimizers, **settings)

        workers = join()
        for step in range(STEPS):
            if breaks and step == 3:
                buffer = io.BytesIO()
                torch.save(workers.state_dict(), buffer)
                buffer.seek(0)
                workers = join()
                workers.load_state_dict(torch.load(buffer, weights_only=True))
            for rank, pair in enumerate(zip(models, optimizers, strict=True)):
                local_step(*pair, rank, step)
            workers.step()
        return models[0].x.detach()

    assert torch.equal(run(breaks=True), run(breaks=False))


def test_ranks_that_have_made_different_numbers_of_steps_are_told():
    def work(place):
        model, optimizer, averaging = joined(11, 3, exchange=parts.TwoShot(ScaledSign()), schedule=10)
        for step in range(2 + (place.rank == 1)):
            averaging.step(local_step(model, optimizer, place.rank, step))
        with pytest.raises(UnevenSteps) as caught:
            averaging.average()
        return str(caught.value)

    assert all(words.startswith("the ranks have made [2, 3, 2] local steps") for words in in_ranks(work, 3))


def test_a_movement_that_is_not_finite_is_one_sentence_on_every_rank():
    def work(place):
        model, _, averaging = joined(11, 3, exchange=parts.TwoShot(ScaledSign()))
        if place.rank == 1:
            model.x.data[7] = float("inf")
        with pytest.raises(ValueError, match="movement") as caught:
            averaging.average()
        return str(caught.value)

    words = in_ranks(work, 3)
    assert len(set(words)) == 1
    assert words[0].startswith(
        "the movement of rank 1 in averaging 0, after 0 local steps, is not finite in binary32: entry 7 of x"
    )


def test_a_shard_that_arrives_damaged_is_told_to_all():
    def work(place):
        model, optimizer, averaging = joined(11, 3, exchange=parts.TwoShot(ScaledSign()), schedule=10)
        local_step(model, optimizer, place.rank, 0)
        if place.rank == 2:
            merge = averaging._worker.sender.merge

            def damaged(messages, members, step):
                messages[0].payload[:] = 255
                return merge(messages, members, step)

            averaging._worker.sender.merge = damaged
        with pytest.raises(ValueError, match="mean") as caught:
            averaging.average()
        return str(caught.value)

    first, second, third = in_ranks(work, 3)
    start = "the mean of the shard of rank 2 in averaging 0, after 0 local steps, could not be formed"
    assert first == second == f"{start}; the error of that rank says why"
    assert third.startswith(f"{start}: CorruptMessage: the shard that rank 0 sent is damaged: ")


@pytest.mark.parametrize("shot", ["encode", "merge"])
def test_a_rank_that_dies_in_either_shot_ends_the_others_with_one_sentence(shot):
    """Rank 1 is gone before its shards are sent, or after they are, before it has sent the mean of its own."""

    def work(place, emit):
        model, optimizer, averaging = joined(11, 3, exchange=parts.TwoShot(ScaledSign()), schedule=1)
        averaging.step(local_step(model, optimizer, place.rank, 0))
        if place.rank == 1:

            def gone(*_):
                dist.destroy_process_group()
                time.sleep(60)

            setattr(averaging._worker.sender, shot, gone)
        began = time.monotonic()
        with pytest.raises(RuntimeError) as caught:
            averaging.step(local_step(model, optimizer, place.rank, 1))
        emit((str(caught.value), time.monotonic() - began))
        time.sleep(60)

    with contextlib.closing(run_ranks(work, processes=3, hang_timeout_s=60)) as reports:
        for words, seconds in (next(reports), next(reports)):
            assert words.startswith("averaging 1 after 2 local steps failed, because another rank has ended")
            assert seconds < 20


def test_an_exchange_is_a_part():
    with pytest.raises(ValueError, match="exchange must be Gather"):
        SimulatedWorkers([Point(3)], exchange="ring")
    with pytest.raises(ValueError, match="give operator or exchange, not both"):
        SimulatedWorkers([Point(3)], operator=ScaledSign(), exchange=parts.Gather())


class Miscounted(ScaledSign):
    """Declares a byte more than it sends."""

    def bits(self, d):
        return Size.fixed(super().bits(d).exact + 8)


@pytest.mark.every(3)
@pytest.mark.parametrize("stages", [{"operator"}, {"means"}, {"operator", "means"}], ids=sorted)
def test_a_false_declaration_at_either_stage_costs_one_attempt_whose_bytes_are_counted(stages):
    def work(place):
        found = []
        for operators in ({}, dict.fromkeys(stages, Miscounted())):
            exchange = parts.TwoShot(**{"operator": ScaledSign(), "means": ScaledSign()} | operators)
            model, optimizer, averaging = joined(12, 3, exchange=exchange, schedule=1)
            rounds = []
            for step in range(3):
                before = averaging.transport.payload_bytes
                averaging.step(local_step(model, optimizer, place.rank, step))
                rounds.append(averaging.transport.payload_bytes - before)
            found.append((model.x.detach().clone(), rounds, averaging.transport.predicted_bytes))
        return found

    results = in_ranks(work, 3)
    wasted = 0
    for (honest, rounds, _), (model, with_attempt, _) in results:
        np.testing.assert_array_equal(model, honest)
        assert with_attempt[1:] == rounds[1:]
        shards = 2 * (32 + 6) if "operator" in stages else 0  # to two owners: a header, and 5 bytes + 1
        means = 2 * (8 + 4 + 6) if "means" in stages else 0
        assert with_attempt[0] - rounds[0] == shards + means
        wasted += shards + means
    assert sum(sum(with_attempt) for _, (_, with_attempt, _) in results) == results[0][1][2]
    assert wasted
