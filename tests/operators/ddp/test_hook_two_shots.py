"""The hook in two shots, in real processes: gradients by the definition, bytes, memory, restart and accidents."""

import contextlib
import itertools
import time

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from gpu_validation.processes.launch import run_ranks
from operators import EF21, QSGD, ErrorFeedback, Identity, Key, Message, PowerSGD, ScaledSign, TopK
from operators.ddp import register
from operators.ddp.collectives import Scatter
from operators.feedback.memoryless import Memoryless

from .test_hook import (
    KEY,
    OddShapes,
    assert_same,
    compile_kernels,
    gradients_of,
    hang_up,
    impatient,
    reports,
    wanted,
)

pytestmark = pytest.mark.timeout(200)
NAMES = ["scale", "kernel", "matrix"]


def exchange_gradients(place, method, steps=3, settings=None, model=None, first=0, **hook_settings):
    model = model or DistributedDataParallel(OddShapes(), **(settings or {}))
    hook = register(model, method, key=KEY, exchange="two_shot", **hook_settings)
    found = []
    for step in range(first, first + steps):
        model.zero_grad()
        model(wanted(place.rank, step)).backward()
        found.append(gradients_of(model))
    return found, (hook.codec_bits, hook.payload_bytes, hook.predicted_bytes)


def pieces(x, m):
    return [x[owner * len(x) // m : (owner + 1) * len(x) // m] for owner in range(m)]


def by_hand(first, second, scope, m, steps=3):
    """The same in one process, by the contract of Feedback alone; ([gradients], bits of each rank)."""
    units = [NAMES] if scope == "bucket" else [[name] for name in NAMES]
    states, found, bits = {}, [], [0] * m

    def sent(method, stage, unit, owner, rank, step, x):
        key = Key(KEY.seed, step=step, rank=rank, path=(*KEY.path, stage, owner)).fold_in(NAMES.index(unit[0]))
        state = states.get(
            place := (stage, tuple(unit), owner, rank), (method.init(len(x)), method.init_receiver(len(x)))
        )
        sender, message = method.encode(state[0], x, key=key)
        receiver, y = method.decode(state[1], message, d=len(x), key=key)
        states[place] = sender, receiver
        bits[rank] += message.bits
        return y

    for step in range(steps):
        means = {name: [] for name in NAMES}
        gradients = [{name: g.reshape(-1) for name, g in wanted(rank, step).items()} for rank in range(m)]
        for unit, owner in itertools.product(units, range(m)):
            names = [name for name in unit if len(pieces(gradients[0][name], m)[owner])]
            if not names:
                continue
            x = [torch.cat([pieces(g[name], m)[owner] for name in names]) for g in gradients]
            total = sum(sent(first, 1, names, owner, rank, step, x[rank]).double() for rank in range(m))
            y = sent(second, 2, names, owner, owner, step, (total / m).float())
            for name, part in zip(names, y.split([len(pieces(gradients[0][n], m)[owner]) for n in names]), strict=True):
                means[name].append(part)
        found.append({n: torch.cat(p).reshape(wanted(0, 0)[n].shape).double().numpy() for n, p in means.items()})
    return found, bits


METHODS = [
    (Memoryless(QSGD(levels=4)), Memoryless(QSGD(levels=4))),
    (ErrorFeedback(ScaledSign()), ErrorFeedback(ScaledSign())),
    (ErrorFeedback(TopK(fraction=0.1)), Memoryless(QSGD(levels=4))),
    (EF21(TopK(fraction=0.1)), EF21(TopK(fraction=0.1))),
]


@pytest.mark.every(2)
@pytest.mark.parametrize("m", [2, 3])
def test_gradients_are_those_of_the_definition_on_every_rank_and_every_byte_is_counted(m):
    cases = list(itertools.product(range(len(METHODS)), ["bucket", "layer"]))

    def work(place):
        results = []
        for number, scope in cases:
            first, second = METHODS[number]
            results.append(exchange_gradients(place, first, second=None if first == second else second, scope=scope))
        return results

    for i, results in enumerate(zip(*reports(work, processes=m), strict=True)):
        number, scope = cases[i]
        expected, bits = by_hand(*METHODS[number], scope, m)
        for found, _ in results:
            assert_same(found, expected)
        if scope == "bucket":  # by layer, lengths that vary go before the messages
            assert [own for _, (own, *_) in results] == bits
        assert sum(sent for _, (_, sent, _) in results) == results[0][1][2]


def test_matrix_methods_take_shards_by_layer():
    for found, _ in reports(lambda place: exchange_gradients(place, PowerSGD(rank=2), scope="layer"), processes=2):
        assert all(np.isfinite(g).all() for step in found for g in step.values())


@pytest.mark.every(2)
@pytest.mark.parametrize("scope", ["bucket", "layer"])
def test_a_saved_hook_continues_bit_for_bit_in_other_buckets(tmp_path, scope):
    """One bucket before and after; owners follow parameters, so that neither residual is lost between them."""
    method = ErrorFeedback(TopK(fraction=0.1))

    def straight(place):
        return exchange_gradients(place, method, steps=4, scope=scope, settings={"static_graph": True})[0]

    def broken(place):
        found = []
        for first in (0, 2):
            model = DistributedDataParallel(OddShapes(), static_graph=True)
            hook = register(model, method, scope=scope, key=KEY, exchange="two_shot")
            if first:
                hook.load_state_dict(torch.load(tmp_path / f"{place.rank}.pt", weights_only=True))
            for step in (first, first + 1):
                model.zero_grad()
                model(wanted(place.rank, step)).backward()
                found.append(gradients_of(model))
            torch.save(hook.state_dict(), tmp_path / f"{place.rank}.pt")
        return found

    for expected, found in zip(reports(straight), reports(broken), strict=True):
        assert_same(found, expected)


def owed(ends, name):
    """The residuals of a parameter's shards, one after the other."""
    parts = [end[name]["residual"] for end in ends if name in end]
    return np.concatenate(parts) if parts else np.zeros(0)


def test_neither_residual_is_lost_when_the_buckets_are_rebuilt():
    def work(place):
        model = DistributedDataParallel(OddShapes(), bucket_cap_mb=0.001)
        hook = register(model, ErrorFeedback(TopK(fraction=0.1)), exchange="two_shot")
        sent = {name: torch.zeros_like(g) for name, g in wanted(0, 0).items()}
        for step in range(4):
            model.zero_grad()
            model(wanted(place.rank, step)).backward()
            for name, g in gradients_of(model).items():
                sent[name] += g
        return sent, hook.state_dict()

    results = reports(work)
    state = [result[1] for result in results]
    for name, sent in results[0][0].items():
        of_workers = sum(owed(s["senders"], name) for s in state) / 2
        of_owners = owed([s["owner"][0] for s in state], name)
        asked = sum(wanted(rank, step)[name].double().numpy() for rank in range(2) for step in range(4)) / 2
        np.testing.assert_allclose(sent.reshape(-1) + of_workers + of_owners, asked.reshape(-1), atol=1e-5)
        assert name == "scale" or (of_workers.any() and of_owners.any())


def test_auto_takes_two_shots_from_three_ranks_on():
    def work(place):
        model = DistributedDataParallel(OddShapes())
        return register(model, ScaledSign(), exchange="auto").exchange

    assert reports(work, processes=2) == ["gather"] * 2
    assert reports(work, processes=4) == ["two_shot"] * 4


def test_a_gradient_that_is_not_finite_is_one_sentence_on_every_rank():
    def work(place):
        model = DistributedDataParallel(OddShapes(), bucket_cap_mb=0.001)
        register(model, QSGD(levels=4), exchange="two_shot")
        words = []
        for step in range(3):
            gradients = wanted(place.rank, step)
            if step == 2 and place.rank == 1:
                gradients["kernel"].view(-1)[7] = float("nan")
            try:
                model(gradients).backward()
            except ValueError as error:
                words.append(str(error))
        return words

    assert (
        reports(work, processes=3)
        == [
            [
                "the gradient of kernel on rank 1 is not finite in binary32: entry 7 at step 2; "
                "look for an overflow in the loss, or clip"
            ]
        ]
        * 3
    )


def test_a_shard_that_arrives_damaged_is_told_to_all():
    def work(place):
        model = DistributedDataParallel(OddShapes())
        hook = register(model, ScaledSign(), exchange="two_shot")
        if place.rank == 1:
            merge = hook._ends.merge
            hook._ends.merge = lambda messages, names, step: merge(
                [Message(messages[0].payload[:3], 24), *messages[1:]], names, step
            )
        with pytest.raises(ValueError, match="could not form the mean of its shard at step 0") as caught:
            model(wanted(place.rank, 0)).backward()
        return str(caught.value)

    words = reports(work, processes=3)
    assert words[0] == words[2] == "rank 1 could not form the mean of its shard at step 0; its error says why"
    assert words[1].startswith(
        "rank 1 could not form the mean of its shard at step 0: the shard that rank 0 sent is damaged"
    )


@pytest.mark.parametrize("shot", ["first", "second"])
def test_a_peer_lost_in_either_shot_is_an_error_and_no_hang(shot):
    def work(place, emit):
        model = DistributedDataParallel(OddShapes())
        hook = register(model, QSGD(levels=4), exchange="two_shot", group=impatient())
        model(wanted(place.rank, 0)).backward()
        if place.rank == 1:

            def gone(*_):
                hang_up()
                time.sleep(60)

            owner, name = (Scatter, "send") if shot == "first" else (hook._ends, "merge")
            setattr(owner, name, gone)  # in this rank's process alone
            model(wanted(place.rank, 1)).backward()
        with pytest.raises(RuntimeError):
            model(wanted(place.rank, 1)).backward()
        emit("heard of it")
        time.sleep(60)

    compile_kernels(QSGD(levels=4))
    with contextlib.closing(run_ranks(work, processes=2, hang_timeout_s=50)) as heard:
        assert next(heard) == "heard of it"


def test_misuse_is_refused():
    def work(place):
        model, words = DistributedDataParallel(OddShapes()), []
        for settings in ({"exchange": "ring"}, {"second": Identity()}):
            with pytest.raises(ValueError, match="exchange") as caught:
                register(model, QSGD(levels=4), **settings)
            words.append(str(caught.value))
        return words

    unknown, second = reports(work)[0]
    assert unknown.startswith('exchange must be "gather", "two_shot" or "auto"')
    assert second.startswith("second compresses the means of two shots")
