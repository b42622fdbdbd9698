"""What a federation exchanges: the bits of PeriodicAveraging, and of a scalar loop where weights differ."""

import math

import numpy as np
import pytest
import torch

from gpu_validation import PeriodicAveraging
from gpu_validation.adapters.model_updates import Update, agreement, decode_updates, encode_update
from operators import EF21, QSGD, CorruptMessage, ErrorFeedback, Key, Message, RandomK, TopK

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
            states[client], frame = encode_update(method, states[client], arrays, after, key=sent)
            bits[number, client] = Message.from_bytes(frame).bits
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
        _, frame = encode_update(TopK(fraction=1.0), None, model, after, key=Key(0, rank=client))
        updates.append(Update(client, weight, frame))
    moved = decode_updates(TopK(fraction=1.0), model, updates[::-1], key=Key(0))

    means = [math.fsum(w * c[i] for w, c in zip(weights, changes, strict=True)) / 6 for i in range(3)]
    assert np.allclose(moved["w"], [1 + means[0], -2 + means[1]], rtol=1e-7)
    assert np.isclose(moved["b"], 0.5 + means[2], rtol=1e-15)
    assert moved["counter"] == 3
    assert [moved[name].dtype for name in model] == [model[name].dtype for name in model]
    assert [moved[name].shape for name in model] == [model[name].shape for name in model]


def test_the_order_of_arrival_changes_no_bit():
    model = named(network())
    draw = np.random.default_rng(0)
    updates = []
    for client in range(5):
        after = {name: (array * draw.normal(size=array.shape)).astype(np.float32) for name, array in model.items()}
        _, frame = encode_update(QSGD(levels=16), None, model, after, key=Key(0, rank=client))
        updates.append(Update(client, 1 + client, frame))
    first, *others = [
        decode_updates(QSGD(levels=16), model, [updates[i] for i in draw.permutation(5)], key=Key(0)) for _ in range(9)
    ]
    assert all(np.array_equal(first[name], other[name]) for other in others for name in model)


def test_what_does_not_fit_is_refused_in_a_sentence():
    model = {"w": np.ones(3, np.float32)}
    _, frame = encode_update(TopK(fraction=0.5), None, model, {"w": np.zeros(3, np.float32)}, key=Key(0))
    _, longer = encode_update(TopK(0.5), None, {"w": np.ones(4)}, {"w": np.zeros(4)}, key=Key(0))
    damaged = frame[:-5] + bytes([frame[-5] ^ 1]) + frame[-4:]

    def decode(*updates):
        return decode_updates(TopK(fraction=0.5), model, updates, key=Key(0, step=2))

    for wrong, sentence in (
        (damaged, "client 4 in round 3: the frame's CRC-32 does not match its content; request it again"),
        (longer, "client 4 in round 3: the frame is for d = 4; expected d = 3"),
        (frame[:9], "client 4 in round 3: a frame has at least 24 bytes; got 9"),
    ):
        with pytest.raises(CorruptMessage, match=sentence):
            decode(Update(0, 1, frame), Update(4, 1, wrong))
    with pytest.raises(ValueError, match="2 clients say partition-id = 4: give every SuperNode a number of its own"):
        decode(Update(4, 1, frame), Update(0, 1, frame), Update(4, 1, frame))
    for weight in (0, -1, math.nan):
        with pytest.raises(ValueError, match=r"weight must be positive; client 4 has .*: reply with the number"):
            decode(Update(0, 5, frame), Update(4, weight, frame))
    with pytest.raises(ValueError, match=r"'v' has shape \(2,\), not None: reply with the model's whole state"):
        encode_update(TopK(0.5), None, model, model | {"v": np.ones(2)}, key=Key(0))
    with pytest.raises(ValueError, match="got a model without one"):
        encode_update(TopK(0.5), None, {"n": np.array(1)}, {"n": np.array(2)}, key=Key(0))
    with pytest.raises(ValueError, match="finite in binary32; got nan at index 1"):
        encode_update(TopK(0.5), None, model, {"w": np.array([1, np.nan, 1], np.float32)}, key=Key(0))


def test_a_method_whose_receiver_remembers_is_refused():
    with pytest.raises(ValueError, match=r"^EF21\(.* loses replies: use an operator or ErrorFeedback$"):
        agreement(EF21(), Key(0))
    assert agreement(ErrorFeedback(TopK(0.5)), Key(1)) != agreement(ErrorFeedback(TopK(0.5)), Key(2))
