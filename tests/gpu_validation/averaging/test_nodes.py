"""Averaging of ranks in nodes: the definition, simulated and real alike bit for bit, bytes of either link predicted."""

from dataclasses import astuple, replace

import numpy as np
import pytest
import torch
import torch.distributed as dist

from bounds.runtime import Constant, RuntimeModel, TwoShot
from bounds.schedules import AdaComm
from gpu_validation.averaging.exchange import parts
from gpu_validation.averaging.exchange.parts import Cheapest
from gpu_validation.averaging.membership.parts import All, Nodes
from gpu_validation.averaging.merge.rules import Corrected
from gpu_validation.averaging.mixing import Sampled
from gpu_validation.averaging.outer import Nesterov
from gpu_validation.averaging.pacing.clock import SimulatedClock
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.averaging.settings import Pacing
from gpu_validation.averaging.simulated import SimulatedWorkers
from gpu_validation.processes.step_check import UnevenSteps
from operators import EF21, QSGD, ErrorFeedback, Identity, Key, Message, ScaledSign, TopK
from operators.exchange import mean_of_ranks
from operators.exchange.choice import lengths
from operators.random import normal
from operators.summed import SharedScale
from tests.gpu_validation.ranks import in_ranks

pytestmark = pytest.mark.timeout(200)
ETA, STEPS, D, KEY = 0.25, 6, 23, Key(1)
SETTINGS = {
    "gather": {"operator": QSGD(levels=4)},
    "two shots": {"exchange": parts.TwoShot(QSGD(levels=4), QSGD(levels=16))},
    "auto": {"exchange": Cheapest(ScaledSign())},
    "feedback, two shots": {"exchange": parts.TwoShot(ErrorFeedback(ScaledSign()))},
    "feedback with receivers": {"operator": EF21(TopK(fraction=0.5))},
    "adaptive": {
        "exchange": Cheapest(QSGD(levels=4)),
        "schedule": AdaComm(tau_0=3, interval_s=4.0, gamma=0.7),
    },
    "outer": {"operator": QSGD(levels=4), "outer": Nesterov(0.7, 0.5)},
    "in flight": {
        "exchange": parts.TwoShot(ErrorFeedback(ScaledSign())),
        "merge": Corrected(delay=1, fragments=2),
    },
}


class Point(torch.nn.Module):
    def __init__(self, d=D):
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(d))


def clock(m):
    return SimulatedClock(RuntimeModel(Constant(1.0), communication=TwoShot(0.01, 1e3)), m=m, key=Key(8))


def local_step(model, optimizer, rank, step):
    model.x.grad = torch.from_numpy(normal(Key(2, step=step, rank=rank), model.x.numel()).astype(np.float32))
    optimizer.step()
    return float(model.x.detach().square().sum())


def paced(m, schedule=2, **settings):
    return {"schedule": Pacing(schedule, clock=clock(m)), "key": KEY, "membership": Nodes(2)} | settings


def joined(**settings):
    model = Point()
    optimizer = torch.optim.SGD(model.parameters(), lr=ETA)
    averaging = PeriodicAveraging(model, optimizer, **paced(dist.get_world_size(), **settings))
    return model, optimizer, averaging


def simulated(m, **settings):
    models = [Point() for _ in range(m)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=ETA) for model in models]
    workers = SimulatedWorkers(models, optimizers, **paced(m, **settings))
    accounts = []
    for step in range(STEPS):
        losses = [local_step(*pair, rank, step) for rank, pair in enumerate(zip(models, optimizers, strict=True))]
        accounts.append(workers.step(losses))
    return [model.x.detach().numpy() for model in models], accounts, workers


def plainly(account):
    return None if account is None else list(astuple(account))


@pytest.mark.parametrize(
    ("m", "per_node", "names"),
    [
        (4, 2, ["gather", "feedback, two shots"]),
        pytest.param(4, 2, list(SETTINGS), marks=pytest.mark.thorough),
        pytest.param(6, 3, list(SETTINGS), marks=pytest.mark.thorough),
    ],
    ids=["quick", "4 ranks", "6 ranks"],
)
def test_simulated_workers_make_the_run_of_real_processes_bit_for_bit(m, per_node, names):
    def work(place):
        found = {}
        for name in names:
            model, optimizer, averaging = joined(membership=Nodes(per_node), **SETTINGS[name])
            accounts = [averaging.step(local_step(model, optimizer, place.rank, step)) for step in range(STEPS)]
            averaging.state_dict()  # waits for what is in flight
            (inside,), (between,) = (links.values() for links in (averaging.links.inside, averaging.links.between))
            links = [(link.payload_bytes, link.predicted_bytes) for link in (inside, between)]
            found[name] = (model.x, [plainly(account) for account in accounts], links)
        return found

    results = in_ranks(work, m)

    nodes = m // per_node
    for name in names:
        settings = SETTINGS[name]
        expected, accounts, _ = simulated(m, membership=Nodes(per_node), **settings)
        assert any(x.any() for x in expected)
        for rank, result in enumerate(results):
            np.testing.assert_array_equal(result[name][0], expected[rank], err_msg=name)
            np.testing.assert_equal(result[name][1], [plainly(a[rank]) if a else None for a in accounts])
        if "merge" not in settings:
            assert all(np.array_equal(result[name][0], expected[0]) for result in results)
        of_nodes, of_places = range(0, m, per_node), range(per_node)
        for link, first_of_groups in ((0, of_nodes), (1, of_places)):
            handed = sum(result[name][2][link][0] for result in results)
            assert handed == sum(results[rank][name][2][link][1] for rank in first_of_groups) > 0, name
    raw = [4 * (D - lengths(D, per_node)[place]) for place in range(per_node)]
    back = [(per_node - 1) * (8 + 4 + 16 * nodes + 4 * size) for size in lengths(D, per_node)]
    for rank, result in enumerate(results):
        place = rank % per_node
        assert result["gather"][2][0][0] == STEPS / 2 * (32 * (per_node - 1) + raw[place] + back[place])


@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
@pytest.mark.parametrize(("m", "per_node"), [(4, 2), (6, 3), (6, 2), (8, 4)])
def test_models_are_those_of_the_definition(m, per_node, exchange):
    operator, second = QSGD(levels=4), QSGD(levels=16) if exchange == "two_shot" else None
    part = parts.TwoShot(operator, second) if exchange == "two_shot" else parts.Gather(operator)
    found, accounts, _ = simulated(m, membership=Nodes(per_node), exchange=part)

    x, cut = torch.zeros(D), lengths(D, per_node)
    for number in range(STEPS // 2):
        ranks = []
        for rank in range(m):
            model = Point()
            model.x.data = x.clone()
            optimizer = torch.optim.SGD(model.parameters(), lr=ETA)
            for step in (2 * number, 2 * number + 1):
                local_step(model, optimizer, rank, step)
            ranks.append(model.x.detach() - x)
        nodes = [
            (sum(v.double() for v in ranks[first : first + per_node]) / per_node).float()
            for first in range(0, m, per_node)
        ]
        shards = [
            mean_of_ranks(
                [node.split(cut)[place] for node in nodes],
                operator,
                exchange=exchange,
                second=second,
                key=replace(KEY.fold_in(place), step=number),
            )
            for place in range(per_node)
        ]
        x = x + torch.cat([shard.mean.float() for shard in shards])
    for model in found:
        np.testing.assert_array_equal(model, x.numpy())
    account = accounts[-1][0]
    others = m // per_node - 1
    for rank, bits in enumerate(account.bits):
        node, place = divmod(rank, per_node)
        mean_bits = account.mean_bits[rank] if account.mean_bits else 0
        sent = shards[place].sent_bits[node]
        assert sent == (others * bits if exchange == "gather" else sent)
        assert mean_bits > 0 or exchange == "gather"


def test_without_compression_models_meet_in_their_mean():
    found, _, _ = simulated(4, exchange=parts.TwoShot(Identity()), schedule=1)
    exact, _, _ = simulated(4, membership=All(), schedule=1)

    for x, y in zip(found, exact, strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-6, atol=1e-6)


def test_a_restart_goes_on_bit_for_bit():
    names = ("feedback, two shots", "feedback with receivers", "outer", "in flight")

    def work(place):
        found = {}
        for name in names:
            straight = joined(**SETTINGS[name])
            for step in range(STEPS):
                straight[2].step(local_step(*straight[:2], place.rank, step))
            model, optimizer, averaging = joined(**SETTINGS[name])
            for step in range(STEPS):
                if step == 3:
                    saved = [part.state_dict() for part in (model, optimizer, averaging)]
                    model, optimizer, averaging = joined(**SETTINGS[name])
                    for part, state in zip((model, optimizer, averaging), saved, strict=True):
                        part.load_state_dict(state)
                averaging.step(local_step(model, optimizer, place.rank, step))
            found[name] = (straight[0].x, model.x)
        return found

    for result in in_ranks(work, 4):
        for name in names:
            assert result[name][0].any()
            np.testing.assert_array_equal(*result[name], err_msg=name)


@pytest.mark.parametrize("exchange", [parts.Gather(QSGD(levels=4)), parts.TwoShot(QSGD(levels=4))], ids=repr)
def test_a_movement_that_is_not_finite_is_one_sentence_on_every_rank_of_every_node(exchange):
    def work(place):
        model, _, averaging = joined(exchange=exchange)
        if place.rank == 2:
            model.x.data[17] = float("nan")  # in the shard of the other rank of its node
        with pytest.raises(ValueError, match="is not finite") as caught:
            averaging.average()
        return str(caught.value)

    words = set(in_ranks(work, 4))
    assert len(words) == 1
    assert "the movement of rank 2 in averaging 0" in (sentence := words.pop())
    assert "entry 17 of x" in sentence


def test_what_a_rank_cannot_compress_is_told_to_all():
    def work(place):
        _, _, averaging = joined(operator=ScaledSign())
        if place.rank == 2:
            averaging._worker.sender.encode = lambda *_: 1 / 0
        with pytest.raises(ValueError, match="could not be compressed") as caught:
            averaging.average()
        return str(caught.value)

    words = in_ranks(work, 4)
    told = "the movement of rank 2 in averaging 0, after 0 local steps, could not be compressed"
    assert all(sentence.startswith(told) for sentence in words)
    assert ["ZeroDivisionError" in sentence for sentence in words] == [False, False, True, False]


def test_a_damaged_shard_is_told_to_all():
    def work(place):
        _, _, averaging = joined(exchange=parts.TwoShot(ScaledSign()))
        if place.rank == 3:
            ends = averaging._worker.sender
            merge = ends.merge
            ends.merge = lambda messages, *rest: merge({**messages, 0: Message(messages[0].payload[:3], 24)}, *rest)
        with pytest.raises(ValueError, match="the mean of the shard of rank 3") as caught:
            averaging.average()
        return str(caught.value)

    words = in_ranks(work, 4)
    assert ["is damaged" in sentence for sentence in words] == [False, False, False, True]


def test_a_mean_that_one_place_cannot_read_is_told_inside_every_node():
    def work(place):
        _, _, averaging = joined(exchange=parts.TwoShot(ScaledSign()))
        if place.rank == 0:  # sends a damaged mean to its place in every node
            ends = averaging._worker.sender
            merge = ends.merge
            ends.merge = lambda *given: Message(merge(*given).payload[:3], 24)
        with pytest.raises(ValueError, match="could not be formed") as caught:
            averaging.average()
        return str(caught.value)

    words = in_ranks(work, 4)
    assert ["the mean that rank 0 sent is damaged" in sentence for sentence in words] == [True, False, True, False]


def test_uneven_steps_inside_a_node_are_told_to_all():
    def work(place):
        model, optimizer, averaging = joined(operator=ScaledSign(), schedule=10)
        for step in range(1 + (place.rank == 1)):
            averaging.step(local_step(model, optimizer, place.rank, step))
        with pytest.raises(UnevenSteps, match="the ranks 0 to 1 have made unequal numbers of local steps"):
            averaging.average()
        return True

    assert all(in_ranks(work, 4))


def test_uneven_nodes_are_told_to_all():
    def work(place):
        model, optimizer, averaging = joined(operator=ScaledSign(), schedule=10)
        for step in range(1 + (place.rank >= 2)):
            averaging.step(local_step(model, optimizer, place.rank, step))
        with pytest.raises(UnevenSteps):
            averaging.average()
        return True

    assert all(in_ranks(work, 4))


def test_models_that_all_have_changed_are_joined_again():
    def work(place):
        model, optimizer, averaging = joined(operator=QSGD(levels=4))
        averaging.step(local_step(model, optimizer, place.rank, 0))
        model.register_parameter("y", torch.nn.Parameter(torch.full((5,), float(place.rank))))
        averaging.step(local_step(model, optimizer, place.rank, 1))
        met = model.y.detach().clone()
        for step in (2, 3):
            averaging.step(local_step(model, optimizer, place.rank, step))
        return met, model.x, model.y

    results = in_ranks(work, 4)
    for met, *after in results:
        np.testing.assert_array_equal(met, np.full(5, 1.5))
        np.testing.assert_array_equal(np.concatenate(after), np.concatenate(results[0][1:]))


@pytest.mark.parametrize(
    ("settings", "m", "text"),
    [
        ({"operator": None}, 4, "Nodes does not work with operator = None"),
        ({"operator": SharedScale()}, 4, "Nodes does not work with operator = .*an operator that is not a Summed"),
        ({"operator": QSGD(levels=4), "mixing": Sampled(2, Key(4))}, 4, "Nodes does not work with mixing = Sampled"),
        ({"operator": QSGD(levels=4)}, 5, "must be 1, or divide the number of ranks into two nodes or more"),
        ({"operator": QSGD(levels=4), "membership": Nodes(4)}, 4, "two nodes or more"),
        ({"operator": QSGD(levels=4), "membership": Nodes(24)}, 48, "at most the number of averaged parameters"),
    ],
)
def test_nodes_that_cannot_be_are_refused(settings, m, text):
    with pytest.raises(ValueError, match=text):
        simulated(m, **settings)
