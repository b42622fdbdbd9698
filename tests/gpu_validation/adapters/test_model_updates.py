"""What a federation exchanges: the bits of PeriodicAveraging, and of a scalar loop where weights differ."""

import math
from fractions import Fraction

import hypothesis
import numpy as np
import pytest
import torch

from gpu_validation import PeriodicAveraging
from gpu_validation.adapters.model_updates import (
    Update,
    agreement,
    decode_updates,
    encode_update,
    narrowed,
    rounded,
    trainable_parameters,
    widened,
)
from operators import (
    EF21,
    QSGD,
    TCDQ,
    CorruptMessage,
    ErrorFeedback,
    Identity,
    Key,
    Message,
    RandomK,
    ScaledSign,
    TopK,
)

from ..ranks import in_ranks

METHODS = {
    "private": QSGD(levels=16),
    "shared": RandomK(fraction=0.3),
    "residual": ErrorFeedback(TopK(fraction=0.2)),
    "residual and draws": ErrorFeedback(QSGD(levels=2)),
}
RANKS, ROUNDS, TAU, KEY = 2, 3, 4, Key(7)


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))


def local_step(model, optimizer, client, step):
    draw = torch.Generator().manual_seed(1000 * client + step)
    x, labels = torch.randn(8, 6, generator=draw), torch.randint(3, (8,), generator=draw)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), labels).backward()
    optimizer.step()


def named(model):
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


def trained(arrays, client, number, steps=TAU):
    """A client's own model after its local steps of a round."""
    model = network()
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        local_step(model, optimizer, client, TAU * number + step)
    return named(model)


def federated(method, *, decoded_by=None, steps=TAU, key=KEY):
    """The vector of the last model, and the bits of all messages, by round and client."""
    arrays, states, bits = named(network()), [None] * RANKS, {}
    for number in range(ROUNDS):
        updates = []
        for client in reversed(range(RANKS)):  # in any order
            after = trained(arrays, client, number, steps)
            sent = Key(key.seed, step=number, rank=client)
            names = trainable_parameters(network())
            states[client], frame = encode_update(method, states[client], arrays, after, key=sent, parameters=names)
            bits[number, client] = Message.from_bytes(frame[51:-4]).bits  # between description and checksum
            updates.append(Update(client, 899, frame))
        arrays = decode_updates(decoded_by or method, arrays, updates, key=Key(KEY.seed, step=number))
    return np.concatenate([array.reshape(-1) for array in arrays.values()]), bits


@pytest.fixture(scope="module")
def averaged():
    def work(place):
        outcomes = {}
        for name, method in METHODS.items():
            model = network()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            bits = {}
            averaging = PeriodicAveraging(model, optimizer, schedule=TAU, operator=method, key=KEY)
            for step in range(ROUNDS * TAU):
                local_step(model, optimizer, place.rank, step)
                account = averaging.step()
                if account is not None:
                    bits |= {(account.index, rank): length for rank, length in enumerate(account.bits)}
            vector = torch.nn.utils.parameters_to_vector(model.parameters()).detach().numpy()
            outcomes[name] = vector, bits
        return outcomes

    return in_ranks(work, processes=RANKS)


@pytest.mark.parametrize("name", METHODS)
def test_rounds_of_a_federation_give_the_model_and_the_messages_of_periodic_averaging(name, averaged):
    vector, bits = federated(METHODS[name])

    assert vector.tobytes() == averaged[0][name][0].tobytes()
    assert bits == averaged[0][name][1]


def test_another_operator_a_step_more_or_another_key_would_be_seen(averaged):
    expected = averaged[0]["private"][0].tobytes()

    assert federated(QSGD(levels=15))[0].tobytes() != expected
    assert federated(METHODS["private"], steps=TAU + 1)[0].tobytes() != expected
    assert federated(METHODS["private"], key=Key(8))[0].tobytes() != expected


def test_clients_weigh_as_many_examples_as_they_have():
    model = {"w": np.array([1.0, -2.0], np.float32), "counter": np.array(3), "b": np.array(0.5)}
    weights, changes = [3, 1, 2], [[0.5, 0, 1], [0, 4, 0], [1, 1, -0.25]]
    updates = []
    for client, (weight, change) in enumerate(zip(weights, changes, strict=True)):
        w = (model["w"] + change[:2]).astype(np.float32)
        after = {"b": model["b"] + change[2], "w": w, "counter": np.array(9)}
        _, frame = encode_update(TopK(fraction=1.0), None, model, after, key=Key(0, rank=client), parameters=["w", "b"])
        updates.append(Update(client, weight, frame))
    moved = decode_updates(TopK(fraction=1.0), model, updates[::-1], key=Key(0))

    means = [math.fsum(w * c[i] for w, c in zip(weights, changes, strict=True)) / 6 for i in range(3)]
    assert np.allclose(moved["w"], [1 + means[0], -2 + means[1]], rtol=1e-7)
    assert np.isclose(moved["b"], 0.5 + means[2], rtol=1e-15)
    assert moved["counter"] == 9
    assert [moved[name].dtype for name in model] == [model[name].dtype for name in model]
    assert [moved[name].shape for name in model] == [model[name].shape for name in model]


def test_the_order_of_arrival_changes_no_bit():
    model = named(network())
    draw = np.random.default_rng(0)
    updates = []
    for client in range(5):
        after = {name: (array * draw.normal(size=array.shape)).astype(np.float32) for name, array in model.items()}
        _, frame = encode_update(
            QSGD(levels=16), None, model, after, key=Key(0, rank=client), parameters=list(model)[:3]
        )
        updates.append(Update(client, 1 + client, frame))
    first, *others = [
        decode_updates(QSGD(levels=16), model, [updates[i] for i in draw.permutation(5)], key=Key(0)) for _ in range(9)
    ]
    assert all(np.array_equal(first[name], other[name]) for other in others for name in model)


def test_what_does_not_fit_is_refused_in_a_sentence():
    model, top = {"w": np.ones(3, np.float32)}, TopK(fraction=0.5)

    def encode(received, after, parameters=("w",)):
        return encode_update(top, None, received, after, key=Key(0), parameters=parameters)[1]

    def decode(*updates):
        return decode_updates(top, model, updates, key=Key(0, step=2))

    frame, longer = encode(model, {"w": np.zeros(3)}), encode({"w": np.ones(4)}, {"w": np.zeros(4)})
    damaged = frame[:-5] + bytes([frame[-5] ^ 1]) + frame[-4:]
    for wrong, sentence in (
        (damaged, "client 4 in round 3: the frame's CRC-32 does not match its content; request it again"),
        (frame[:9], "client 4 in round 3: a frame has at least 20 bytes; got 9"),
    ):
        with pytest.raises(CorruptMessage, match=sentence):
            decode(Update(0, 1, frame), Update(4, 1, wrong))
    with pytest.raises(ValueError, match="client 4 has trained arrays of other names, shapes or dtypes than the"):
        decode(Update(0, 1, frame), Update(4, 1, longer))
    with pytest.raises(ValueError, match="clients 0 and 4 compress different arrays, among them 'w': give both"):
        decode(Update(0, 1, frame), Update(4, 1, encode(model, model, ())))
    with pytest.raises(ValueError, match="2 clients have partition-id = 4: give every SuperNode its own number"):
        decode(Update(4, 1, frame), Update(0, 1, frame), Update(4, 1, frame))
    for weight in (0, -1, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"weight must be positive; client 4 has .*: reply with the number"):
            decode(Update(0, 5, frame), Update(4, weight, frame))
    with pytest.raises(ValueError, match=r"'v' has shape \(2,\), not None: reply with the model's whole state"):
        encode(model, model | {"v": np.ones(2)})
    with pytest.raises(ValueError, match="'w' has int64, not float32: reply with the model's own state"):
        encode(model, {"w": np.ones(3, np.int64)})
    with pytest.raises(ValueError, match="'tag' of dtype <U1 has changed: leave it out"):
        encode(model | {"tag": np.array("a")}, model | {"tag": np.array("b")})
    with pytest.raises(ValueError, match="got a model without one"):
        encode({"n": np.array("text")}, {"n": np.array("text")}, ())
    for name, held in (("n", "of dtype int64"), ("v", "missing")):
        with pytest.raises(ValueError, match=rf"{name!r} is {held}: give trainable_parameters\(model\)"):
            encode(model | {"n": np.array(1)}, model | {"n": np.array(1)}, ["w", name])
    with pytest.raises(ValueError, match="finite in binary32; got nan at index 1"):
        encode(model, {"w": np.array([1, np.nan, 1], np.float32)})


def test_a_method_whose_receiver_remembers_is_refused():
    with pytest.raises(ValueError, match=r"^EF21\(.* loses replies: use an operator or ErrorFeedback$"):
        agreement(EF21(), Key(0))
    assert agreement(ErrorFeedback(TopK(0.5)), Key(1)) != agreement(ErrorFeedback(TopK(0.5)), Key(2))


class Counted(torch.nn.Module):
    """Buffers whose names and shapes resemble those of parameters."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.frozen = torch.nn.Parameter(torch.ones(2, 2), requires_grad=False)
        self.register_buffer("weight", torch.full((2, 3), 0.01))  # an average of squares: never negative
        self.register_buffer("mask", torch.tensor([True, False]))
        self.register_buffer("limit", torch.tensor(torch.finfo(torch.float64).min, dtype=torch.float64))
        self.register_buffer("seen", torch.tensor(2**62 + 1))
        self.register_buffer("empty", torch.empty(0, 3))


OPERATORS = {
    "qsgd": QSGD(levels=1),
    "sign": ErrorFeedback(ScaledSign()),
    "top": TopK(fraction=0.1),
    "dithered": TCDQ(omega=1.0, states=4),
}


@pytest.mark.parametrize("named", [True, False], ids=["parameters named", "default"])
@pytest.mark.parametrize("name", OPERATORS)
def test_no_lossy_operator_touches_a_statistic(name, named):
    model, draw = Counted(), np.random.default_rng(0)
    names = trainable_parameters(model) if named else ()
    received = {key: value.detach().numpy().copy() for key, value in model.state_dict().items()}
    updates, sent = [], []
    for client, weight in enumerate((1.0, 3.0)):
        after = dict(received)
        for key in received:
            if received[key].dtype == np.float32 and key != "frozen":
                after[key] = (received[key] * draw.uniform(0, 2, received[key].shape)).astype(np.float32)
        after["norm.num_batches_tracked"] = np.array(10 + 4 * client)
        _, frame = encode_update(OPERATORS[name], None, received, after, key=Key(0, rank=client), parameters=names)
        updates.append(Update(client, weight, frame))
        sent.append(after)
    moved = decode_updates(OPERATORS[name], received, updates, key=Key(0))

    for key in received.keys() - set(names):
        exact = (sent[0][key] + 3.0 * sent[1][key]) / 4 if received[key].dtype == np.float32 else received[key]
        exact = np.array(13) if key == "norm.num_batches_tracked" else exact
        assert np.allclose(moved[key], exact, rtol=1e-6), key
        assert (moved[key].dtype, moved[key].shape) == (received[key].dtype, received[key].shape), key
    assert moved["seen"] == 2**62 + 1
    assert moved["limit"] == np.finfo(np.float64).min
    assert set(trainable_parameters(model)) == {"layer.weight", "layer.bias", "norm.weight", "norm.bias"}
    if named:
        assert not np.allclose(moved["layer.weight"], (sent[0]["layer.weight"] + 3 * sent[1]["layer.weight"]) / 4)


INTEGERS = hypothesis.strategies.sampled_from(["b", "B", "h", "H", "i", "I", "q", "Q", "?"])


@hypothesis.given(hypothesis.strategies.data(), INTEGERS)
def test_integers_become_the_nearest_mean_whatever_their_size(data, code):
    dtype, strategies = np.dtype(code), hypothesis.strategies
    info = np.iinfo(dtype) if code != "?" else None
    lowest, highest = (info.min, info.max) if info else (0, 1)
    base = data.draw(strategies.integers(lowest, highest))
    values = [
        min(highest, base + data.draw(strategies.integers(0, 1000))) if data.draw(strategies.booleans()) else base
        for _ in range(3)
    ]
    weights = [data.draw(strategies.integers(1, 9)) for _ in values]
    model, updates = {"n": np.full((), base, dtype)}, []
    for client, (value, weight) in enumerate(zip(values, weights, strict=True)):
        _, frame = encode_update(TopK(0.5), None, model, {"n": np.full((), value, dtype)}, key=Key(0, rank=client))
        updates.append(Update(client, weight, frame))
    mean = Fraction(sum(w * v for w, v in zip(weights, values, strict=True)), sum(weights))
    moved = decode_updates(TopK(0.5), model, updates, key=Key(0))["n"]

    assert moved.dtype == dtype
    assert abs(int(moved) - mean) <= Fraction(1, 2) + Fraction(1, 10**9)
    assert min(values) <= int(moved) <= max(values)


def test_values_that_are_equal_stay_as_they_are():
    extremes = np.array([np.inf, -np.inf, np.finfo(np.float64).max, np.finfo(np.float64).min, 5e-324, -0.0])
    model = {"mask": extremes, "phase": np.array([1e308 + 1e308j, -0.1j]), "text": np.array("a"), "c": np.array(np.inf)}
    updates = []
    for client in range(3):
        _, frame = encode_update(TopK(0.5), None, model, model, key=Key(0, rank=client))
        updates.append(Update(client, client + 0.1, frame))
    moved = decode_updates(TopK(0.5), model, updates, key=Key(0))
    assert all(moved[name].tobytes() == model[name].tobytes() for name in model)


@pytest.mark.parametrize("method", [Identity(), ErrorFeedback(QSGD(levels=255))], ids=["identity", "qsgd"])
def test_movements_below_half_a_unit_of_float16_add_up(method):
    began = {"w": np.ones(4, np.float16), "v": np.full((), 8, np.float16)}
    dtypes = {name: array.dtype for name, array in began.items()}
    model, states, steps = began, [None, None], 1000
    for number in range(steps):
        sent, updates = rounded(model, dtypes), []
        assert sent["w"].dtype == np.float16
        for client in range(2):
            after = {name: array.astype(np.float32) + np.float32(1e-4) for name, array in sent.items()}
            key = Key(0, step=number, rank=client)
            states[client], frame = encode_update(method, states[client], sent, after, key=key, parameters=sent)
            updates.append(Update(client, 1.0, frame))
        model = decode_updates(method, model, updates, key=Key(0, step=number))
    assert np.allclose(model["w"], 1.1, atol=2e-3)
    assert np.allclose(model["v"], 8.1, atol=1e-2)


WORDS = np.arange(2**16, dtype=np.uint16)


def test_every_bfloat16_is_read_as_torch_reads_it_and_comes_back():
    values = widened(WORDS.view("V2"))
    expected = torch.from_numpy(WORDS.view(np.int16)).view(torch.bfloat16).float().numpy()
    number = ~np.isnan(expected)
    assert np.array_equal(values.view(np.uint32)[number], expected.view(np.uint32)[number])
    assert np.isnan(values[~number]).all()
    back = narrowed(values)
    assert back.dtype == np.dtype("V2")
    assert np.array_equal(back.view(np.uint16)[number], WORDS[number])
    assert np.isnan(widened(back)[~number]).all()


@hypothesis.given(hypothesis.strategies.lists(hypothesis.strategies.floats(width=32), min_size=1, max_size=9))
def test_values_are_rounded_to_bfloat16_as_torch_rounds_them(values):
    array = np.array(values, np.float32)
    expected = torch.from_numpy(array).bfloat16().float().numpy()
    assert np.array_equal(widened(narrowed(array)), expected, equal_nan=True)
    scalar = array[:1].reshape(())
    assert narrowed(scalar).shape == widened(narrowed(scalar)).shape == ()


def test_movements_below_half_a_unit_of_bfloat16_add_up():
    sent, model = np.ones(4, np.float32), {"w": np.ones(4, np.float32)}
    for number in range(1000):
        after = {"w": sent + np.float32(1e-3)}  # half a unit is 2^-8
        _, frame = encode_update(Identity(), None, {"w": sent}, after, key=Key(0, step=number), parameters=["w"])
        model = decode_updates(Identity(), model, [Update(0, 1.0, frame)], key=Key(0, step=number))
        sent = widened(narrowed(model["w"]))
    assert np.allclose(model["w"], 2.0, atol=1e-3)
    assert np.allclose(sent, 2.0)


def test_one_client_of_many_that_moves_by_a_unit_is_seen_after_enough_rounds():
    model, dtypes = {"w": np.ones(1, np.float16)}, {"w": np.dtype(np.float16)}
    for number in range(64):
        sent, updates = rounded(model, dtypes), []
        for client in range(32):
            after = {"w": np.nextafter(sent["w"], np.float16(2)) if client == 0 else sent["w"]}
            _, frame = encode_update(Identity(), None, sent, after, key=Key(0, rank=client), parameters=["w"])
            updates.append(Update(client, 1.0, frame))
        model = decode_updates(Identity(), model, updates, key=Key(0, step=number))
    assert np.allclose(model["w"], 1 + 2 * 2.0**-10)
