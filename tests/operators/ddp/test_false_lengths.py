"""Operators whose declared length is false, and means that cannot be decoded: the hook goes on, or all hear of it."""

import contextlib
import time

import pytest
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.processes.launch import run_ranks
from operators import CorruptMessage, ErrorFeedback, ScaledSign
from operators.ddp import register
from operators.operator import Size

from .test_hook import KEY, OddShapes, assert_same, gradients_of, hang_up, impatient, reports, wanted

pytestmark = pytest.mark.timeout(200)
STEPS = 3
SMALL = {"bucket_cap_mb": 0.001}  # several buckets under way at once


class Vague(ScaledSign):
    """Declares no exact length, so that lengths travel first."""

    def bits(self, d):
        return Size(worst_case=32 + d)


class Boasts(ScaledSign):
    """Declares a byte less than it sends."""

    def bits(self, d):
        return Size(exact=32 + d - 8)


class BoastsOnce(ScaledSign):
    """Is wrong about vectors of an odd number of entries, of which some places of a node have none."""

    def bits(self, d):
        return Size(exact=32 + d + 8 * (d % 2))


class Modest(ScaledSign):
    """Declares three bytes more than it sends."""

    def bits(self, d):
        return Size(exact=32 + d + 24)


def run(place, operator, **settings):
    model = DistributedDataParallel(OddShapes(), **SMALL)
    hook = register(model, operator, key=KEY, **settings)
    found, sent = [], []
    for step in range(STEPS):
        model.zero_grad()
        model(wanted(place.rank, step)).backward()
        found.append(gradients_of(model))
        sent.append((hook.payload_bytes, hook.predicted_bytes, hook.codec_bits))
    return found, sent


@pytest.mark.thorough
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
def test_a_false_length_changes_no_gradient_and_its_bytes_are_counted(exchange, nodes):
    kinds = [Vague(), Boasts(), Modest(), BoastsOnce()]

    def work(place):
        settings = {"exchange": exchange, "ranks_per_node": nodes, "feedback": ErrorFeedback}
        return [run(place, operator, **settings) for operator in kinds]

    results = reports(work, 4)

    of_groups = range(nodes)  # ranks whose predictions are those of different exchanges
    honest = [result[0] for result in results]
    for i, operator in enumerate(kinds):
        for result, (gradients, sent) in zip(results, honest, strict=True):
            assert_same(result[i][0], gradients)
            assert [bits for *_, bits in result[i][1]] == [bits for *_, bits in sent]
        for step in range(STEPS):
            payload = sum(result[i][1][step][0] for result in results)
            assert payload == sum(results[rank][i][1][step][1] for rank in of_groups)
        more = [[result[i][1][step][0] - sent[step][0] for step in range(STEPS)] for result, (_, sent) in
                zip(results, honest, strict=True)]  # fmt: skip
        if isinstance(operator, Boasts | Modest):
            assert all(extra[0] > 0 for extra in more)  # the attempts of the first step
            assert all(extra == [extra[0]] * STEPS for extra in more)  # then lengths travel first, as they do there


def test_bytes_of_the_attempt_are_those_of_frames_of_the_declared_length():
    """One bucket of 2131 entries, gathered by three ranks: two headers, and two messages of 269 declared bytes."""

    def work(place):
        sent = []
        for operator in (Vague(), Boasts()):
            model = DistributedDataParallel(OddShapes())
            hook = register(model, operator, key=KEY)
            model(wanted(place.rank, 0)).backward()
            sent.append(hook.payload_bytes)
        return sent

    for honest, boasting in reports(work, 3):
        assert honest == 2 * (8 + 271)
        assert boasting - honest == 2 * (8 + 270)


def test_a_warning_names_the_rank(caplog):
    def work(place):
        with caplog.at_level("WARNING", logger="operators"):
            register(model := DistributedDataParallel(OddShapes()), Boasts())
            model(wanted(place.rank, 0)).backward()
        return [record.getMessage() for record in caplog.records if record.name == "operators"]

    told = (
        "a message of rank 0 is not as long as its operator declares exactly: correct the operator's bits(d); until "
        "then lengths travel first"
    )
    for words in reports(work, 2):
        assert words
        assert set(words) == {told}


def test_a_refusal_is_told_behind_a_false_length_too():
    def work(place):
        model = DistributedDataParallel(OddShapes())
        register(model, Boasts(), exchange="two_shot")
        gradients = wanted(place.rank, 0)
        if place.rank == 2:
            gradients["kernel"][1, 0, 2] = float("inf")
        with pytest.raises(ValueError, match="the gradient of kernel on rank 2 is not finite") as caught:
            model(gradients).backward()
        return str(caught.value)

    assert len(set(reports(work, 3))) == 1


@pytest.mark.parametrize("exchange", ["gather", "two_shot"])
def test_a_mean_that_a_sender_has_damaged_is_told_to_all_ranks_of_all_nodes(exchange):
    def work(place):
        model = DistributedDataParallel(OddShapes())
        hook = register(model, ScaledSign(), exchange=exchange, ranks_per_node=2)
        if place.rank in (0, 2):  # all ranks with this place get it
            mean = hook._ends.mean

            def damaged(messages, names, step):
                raise CorruptMessage(f"of {len(mean(messages, names, step))} means one is damaged")

            hook._ends.mean = damaged
        with pytest.raises(ValueError, match="could not read what the other nodes sent for its shard") as caught:
            model(wanted(place.rank, 0)).backward()
        return str(caught.value)

    words = reports(work, 4)
    assert [sentence.startswith(f"rank {2 * (rank // 2)} could not") for rank, sentence in enumerate(words)] == [
        True
    ] * 4
    assert ["one is damaged" in sentence for sentence in words] == [True, False, True, False]


@pytest.mark.thorough
def test_after_damage_on_the_way_to_one_rank_its_node_raises_and_the_others_end_at_their_next_exchange():
    def work(place, emit):
        group = impatient()
        model = DistributedDataParallel(OddShapes(), process_group=group)
        hook = register(model, ScaledSign(), group=group, exchange="two_shot", ranks_per_node=2)
        if place.rank == 3:

            def damaged(messages, names, step):
                raise CorruptMessage("it is damaged")

            hook._ends.mean = damaged
        if place.rank >= 2:
            with pytest.raises(ValueError, match="rank 3 could not read"):
                model(wanted(place.rank, 0)).backward()
            emit((place.rank, "raised"))
            hang_up()
            time.sleep(60)
        model(wanted(place.rank, 0)).backward()
        with pytest.raises(RuntimeError, match=r"another rank has ended, died or stopped|gloo"):  # the model's own too
            model(wanted(place.rank, 1)).backward()
        emit((place.rank, "heard"))
        time.sleep(60)

    with contextlib.closing(run_ranks(work, processes=4, hang_timeout_s=50)) as heard:
        assert dict(next(heard) for _ in range(4)) == {0: "heard", 1: "heard", 2: "raised", 3: "raised"}
