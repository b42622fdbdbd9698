"""FSDP2 on the CPU in real processes: gradients by the definition, bytes, memory, restart and accidents."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from gpu_validation.processes.launch import run_ranks
from operators import QSGD, ErrorFeedback, Identity, Key, ScaledSign, WaterFilling
from operators.fsdp import CompressedReduceScatter, register

from ...gpu_validation.ranks import plain

pytestmark = pytest.mark.timeout(120)
KEY = Key(7)


def reports(work, processes=2):
    found = run_ranks(lambda place, emit: emit((place.rank, work(place))), processes=processes, hang_timeout_s=60)
    return [value for _, value in sorted(found, key=lambda pair: pair[0])]


def network():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(7, 10), torch.nn.Tanh(), torch.nn.Linear(10, 3))


def sharded(place, shape=None):
    shape = shape or (place.size,)
    names = ("copies", "shards")[-len(shape) :]
    model, mesh = network(), init_device_mesh("cpu", shape, mesh_dim_names=names)
    fully_shard(model[0], mesh=mesh)
    return fully_shard(model, mesh=mesh)


def batch(rank, step):
    return torch.randn(5, 7, generator=torch.Generator().manual_seed(100 * step + rank))


def step_of(model, rank, step):
    model.zero_grad()
    model(batch(rank, step)).square().mean().backward()
    return [p.grad.full_tensor().numpy().copy() for p in model.parameters()]


def alone(rank, step):
    model = network()
    model(batch(rank, step)).square().mean().backward()
    return [p.grad for p in model.parameters()]


def laid_out(gradients, m):
    """A module's gradients as FSDP hands them over: of each parameter as many rows to each rank, filled up by zeros."""
    shards = []
    for owner in range(m):
        parts = []
        for g in gradients:
            rows = -(-len(g) // m)
            full = torch.zeros(rows * m, *g.shape[1:])
            full[: len(g)] = g
            parts.append(full[owner * rows : (owner + 1) * rows].reshape(-1))
        shards.append(torch.cat(parts))
    return shards


def by_hand(operator, m, step):
    """Mean gradients of both modules in one process, by the definition: shards of every rank, decoded and averaged."""
    means = []
    for number, chosen in ((1, slice(0, 2)), (0, slice(2, 4))):  # the model itself comes first, its block second
        key = KEY.fold_in(number)
        sent = [laid_out(alone(rank, step)[chosen], m) for rank in range(m)]
        shapes, owned = [g.shape for g in alone(0, step)[chosen]], []
        for owner in range(m):
            total = torch.zeros(len(sent[0][owner]), dtype=torch.float64)
            for rank in range(m):
                stream = replace(key, step=step, rank=rank).fold_in(1).fold_in(owner)
                message = operator.encode(sent[rank][owner], key=stream)
                total += operator.decode(message, d=len(total), key=stream)
            owned.append((total / m).float())
        start = 0
        for shape in shapes:
            rows, width = -(-shape[0] // m), int(np.prod(shape[1:]))
            pieces = [part[start : start + rows * width].reshape(rows, *shape[1:]) for part in owned]
            means.append(torch.cat(pieces)[: shape[0]].numpy())
            start += rows * width
    return means


@pytest.mark.every(2)
@pytest.mark.parametrize("m", [2, 3])
def test_gradients_are_those_of_the_definition_and_every_byte_is_counted(m):
    operators = [Identity(), QSGD(levels=4), ScaledSign()]

    def work(place):
        found = []
        for operator in operators:
            model = sharded(place)
            shards = register(model, operator, key=KEY)
            gradients = [step_of(model, place.rank, step) for step in range(2)]
            found.append((gradients, shards.payload_bytes, shards.predicted_bytes, shards.codec_bits))
        return found

    results = reports(work, m)
    for i, operator in enumerate(operators):
        for step in range(2):
            for result in results:
                for gradient, expected in zip(result[i][0][step], by_hand(operator, m, step), strict=True):
                    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9)
        assert sum(result[i][1] for result in results) == results[0][i][2] > 0
    exact = [torch.stack(parts).mean(0).numpy() for parts in zip(*(alone(rank, 1) for rank in range(m)), strict=True)]
    for gradient, expected in zip(results[0][0][0][1], exact, strict=True):
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-8)


def test_bytes_are_those_of_the_declared_sizes():
    """Two ranks, two modules: shards of 40 and 17 entries (three rows become two and two), 32 bits and one an entry."""

    def work(place):
        model = sharded(place)
        shards = register(model, ScaledSign(), key=KEY)
        step_of(model, place.rank, 0)
        return shards.payload_bytes, shards.codec_bits

    sizes = [5 * 7 + 5, 2 * 10 + 2]
    for sent, bits in reports(work):
        assert sent == sum(32 + (32 + size + 7) // 8 for size in sizes)
        assert bits == sum(2 * (32 + size) for size in sizes)


def test_a_resumed_run_continues_exactly_with_its_residuals(tmp_path):
    def work(place):
        def trained(breaks):
            model = sharded(place)
            shards, found = register(model, ErrorFeedback(ScaledSign()), key=KEY), []
            for step in range(4):
                if breaks and step == 2:
                    torch.save(shards.state_dict(), tmp_path / str(place.rank))
                    model = sharded(place)
                    shards = register(model, ErrorFeedback(ScaledSign()), key=KEY)
                    shards.load_state_dict(torch.load(tmp_path / str(place.rank), weights_only=True))
                found.append(step_of(model, place.rank, step))
            return found, shards.payload_bytes

        return trained(False), trained(True)

    for (straight, sent), (broken, sent_again) in reports(work):
        assert sent == sent_again
        for expected, gradients in zip(straight, broken, strict=True):
            for a, b in zip(expected, gradients, strict=True):
                np.testing.assert_array_equal(a, b)


def test_ranks_and_states_that_differ_are_refused_by_name():
    def words_of(work):
        with pytest.raises(ValueError, match=r"rank|state") as caught:
            work()
        return str(caught.value)

    def work(place):
        refused = [
            words_of(lambda: register(sharded(place), QSGD(levels=4 + place.rank))),
            words_of(lambda: register(sharded(place), QSGD(levels=4), key=Key(place.rank))),
        ]
        model = sharded(place)
        shards = register(model, ErrorFeedback(ScaledSign()), key=KEY)
        step_of(model, place.rank, 0)
        state = shards.state_dict()
        bad = shards.state_dict()
        bad["modules"]["0"]["states"][0]["residual"][0] = float("nan")
        long = shards.state_dict()
        long["modules"]["0"]["states"][0]["residual"] = torch.zeros(3)
        fresh = register(sharded(place), ErrorFeedback(ScaledSign()), key=KEY)
        for saved in ({}, bad, state | {"place": [[1 - place.rank], [2]]}, state | {"place": [[0], [4]]}):
            refused.append(words_of(lambda saved=saved: fresh.load_state_dict(saved)))
        step_of(model, place.rank, 1)
        before, last = shards.state_dict(), list(state["modules"])[-1]
        broken = state | {"modules": state["modules"] | {last: state["modules"][last] | {"counters": [1]}}}
        with pytest.raises(ValueError, match="unpack"):
            shards.load_state_dict(broken)
        refused.append(words_of(lambda: shards.load_state_dict(long)))
        torch.testing.assert_close(shards.state_dict(), before, rtol=0, atol=0)  # as it was
        other = register(sharded(place), ScaledSign(), key=KEY)
        refused.append(words_of(lambda: other.load_state_dict(state)))
        return refused

    operator, key, empty, nan, rank, size, shape, method = reports(work)[0]
    assert "ranks 0 and 1 differ in operator: give all ranks the same operator" in operator
    assert "ranks 0 and 1 differ in key" in key
    assert "got an empty one" in empty
    assert "module '0', 0, residual has NaN or infinity" in nan
    assert "the state is of rank [1] in a mesh of [2]; this is rank [0] of [2]" in rank
    assert "in a mesh of [4]" in size
    assert "module '0', 0, residual must have the shape and dtype (40,), float32; got (3,), float32" in shape
    assert "differs in operator: give the same operator" in method


def test_a_gradient_that_is_not_finite_is_one_sentence_on_every_rank():
    def work(place):
        model = sharded(place)
        register(model, ScaledSign(), key=KEY)
        x = batch(place.rank, 0)
        if place.rank == 1:
            x[:] = float("inf")
        with pytest.raises(ValueError, match="not finite") as caught:
            model(x).square().mean().backward()
        return str(caught.value)

    first, second = reports(work)
    assert first == second
    assert first.startswith("entry ")
    assert " of the gradients of the model, step 0, on rank 1 is not finite in binary32" in first


METHOD = ErrorFeedback(ScaledSign())  # uses no random numbers: a refused step leaves no trace
BAD = {0: "model", 2: "block", 5: "model"}  # steps, and whose gradients are infinite
SHAPES = {"one shard a rank": (2,), "copies of two shards": (2, 2)}


def remembered(shards):
    states = [state for module in shards.state_dict()["modules"].values() for state in module["states"]]
    return [value.numpy() for state in states for value in state.values()]


def trained(place, shape, refusing):
    """Train and skip refused steps; gradients of the rank ``refusing`` are infinite at the ``BAD`` steps.

    Without such a rank the run leaves these steps out.
    """
    model = sharded(place, shape)
    shards, words = register(model, METHOD, key=KEY), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(7):
        if step in BAD and refusing is None:
            continue
        bad = BAD.get(step) if place.rank == refusing else None
        if bad == "block":
            model[1].register_forward_hook(lambda module, x, y: y.register_hook(lambda g: g * float("inf")) and None)
        optimizer.zero_grad()
        loss = model(batch(place.rank, step)).square().mean() * (float("inf") if bad == "model" else 1.0)
        model[1]._forward_hooks.clear()
        before = remembered(shards)
        try:
            loss.backward()
        except ValueError as error:
            words.append((step, str(error)))
            assert all(np.array_equal(a, b) for a, b in zip(remembered(shards), before, strict=bool(before)))
            assert any(not p.grad.full_tensor().isfinite().all() for p in model.parameters())
            continue
        optimizer.step()
    return words, [p.full_tensor().detach() for p in model.parameters()], remembered(shards)


@pytest.mark.parametrize("name", SHAPES)
def test_training_continues_after_refused_gradients_as_without_their_steps(name):
    shape = SHAPES[name]
    m = int(np.prod(shape))

    def work(place):
        straight = trained(place, shape, None)
        return [plain((trained(place, shape, refusing), straight)) for refusing in range(m)]

    for refusing, runs in enumerate(zip(*reports(work, m), strict=True)):
        (first, _, _), _ = runs[0]
        assert [step for step, _ in first] == list(BAD)
        for step, words in first:
            assert f"step {step}, on rank {refusing} is not finite" in words
        for (words, model, states), (none, expected, right) in runs:
            assert words == first
            assert none == []
            for a, b in zip([*model, *states], [*expected, *right], strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("differing", range(4))
def test_every_rank_of_a_mesh_refuses_what_one_has_or_is(differing):
    """The other ranks of its row, of its column, and the one that shares neither."""

    def outcome(place, operator=None, **settings):
        with pytest.raises((ValueError, TypeError)) as caught:
            register(sharded(place, (2, 2)), operator or QSGD(levels=4), **settings)
        return str(caught.value)

    def work(place):
        mine = place.rank == differing
        found = [
            outcome(place, QSGD(levels=8 if mine else 4)),
            outcome(place, key=Key(int(mine))),
            outcome(place, "qsgd" if mine else None),
        ]
        register(sharded(place, (2, 2)), QSGD(levels=4))
        return found

    by_case = list(zip(*reports(work, 4), strict=True))
    for words, name in zip(by_case, ("operator", "key"), strict=False):
        assert len(set(words)) == 1
        assert f"ranks 0 and {differing or 1} differ in {name}" in words[0]
    own = by_case[2][differing]
    assert "operator must be an instance of Operator or Feedback; got 'qsgd'" in own
    for rank, words in enumerate(by_case[2]):
        assert rank == differing or words == f"the arguments of rank {differing} are refused: {own}"


@pytest.mark.parametrize(("other", "name"), [((QSGD(levels=8), KEY), "operator"), ((QSGD(levels=4), Key(1)), "key")])
def test_the_state_of_one_module_is_refused_by_another_method_or_key(other, name):
    state = CompressedReduceScatter(QSGD(levels=4), key=KEY, module="head").state_dict()
    CompressedReduceScatter(QSGD(levels=4), key=replace(KEY, step=3, rank=1)).load_state_dict(state)
    with pytest.raises(ValueError, match=f"module 'head' differs in {name}: give the same {name}"):
        CompressedReduceScatter(other[0], key=other[1], module="head").load_state_dict(state)


def test_misuse_is_refused():
    with pytest.raises(ValueError, match="no module of the model is sharded"):
        register(network(), ScaledSign())
    with pytest.raises(TypeError, match="operator must be an instance"):
        CompressedReduceScatter("qsgd")


def test_an_allocation_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"allocation must be None for a sharded model; got WaterFilling\(bits=2.0"):
        register(network(), QSGD(levels=16), allocation=WaterFilling(bits=2.0))
