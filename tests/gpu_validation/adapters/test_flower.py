"""Flower itself, in an environment of its own: the bits and bytes of a loop that calls the operator by hand."""

import json
import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from gpu_validation.adapters import flower
from gpu_validation.adapters.flower import CompressedFedAvg, CompressedUpdates
from gpu_validation.workloads.digits import digits
from operators import ErrorFeedback, Key, TopK

from . import federation

SCRIPT = Path(__file__).parents[3] / "docs/scripts/train_with_flower.py"
METHOD = ErrorFeedback(TopK(fraction=0.05))
CLIENTS, ROUNDS, TAU = 2, 3, 8
FRAME = 16 + 35 + 28 + 4  # the update's head, its description, the message's frame and the update's checksum

pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return federation.installed(tmp_path_factory.mktemp("flower") / "env")


@pytest.mark.parametrize("end", [CompressedUpdates, CompressedFedAvg])
def test_without_flower_both_ends_name_the_command(end):
    with pytest.raises(ImportError, match=r'needs flwr, which is not installed: pip install "flwr>=1.41"'):
        end(TopK(fraction=0.5))


def test_the_mod_needs_the_names_of_the_parameters(monkeypatch):
    monkeypatch.setattr(flower, "FedAvg", dict)  # as if Flower were there

    with pytest.raises(ValueError, match=r"got none: give parameters=trainable_parameters\(model\)$"):
        CompressedUpdates(TopK(fraction=0.5))


def by_hand(method=METHOD, steps=TAU):
    """The script's federation as a plain loop: its last model, and the bytes of every round."""
    common, (images, labels) = torch.nn.Linear(64, 10), digits()
    common.load_state_dict({name: torch.zeros_like(p) for name, p in common.state_dict().items()})
    d = sum(p.numel() for p in common.parameters())
    states, uplink = [method.init(d)] * CLIENTS, {}
    for number in range(ROUNDS):
        began = torch.nn.utils.parameters_to_vector(common.parameters()).detach()
        total, uplink[number + 1] = torch.zeros(d, dtype=torch.float64), 0
        weights = [len(labels[client::CLIENTS]) for client in range(CLIENTS)]
        for client in range(CLIENTS):
            model = torch.nn.Linear(64, 10)
            model.load_state_dict(common.state_dict())
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            for _ in range(steps):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(images[client::2]), labels[client::2]).backward()
                optimizer.step()
            change = torch.nn.utils.parameters_to_vector(model.parameters()).detach() - began
            key = Key(0, step=number, rank=client)
            states[client], message = method.encode(states[client], change, key=key)
            _, decoded = method.decode({}, message, d=d, key=key)
            total += decoded.double() * (weights[client] / max(weights))
            uplink[number + 1] += math.ceil(message.bits / 8) + FRAME
        movement = (total / (sum(weights) / max(weights))).float()
        torch.nn.utils.vector_to_parameters(began + movement, common.parameters())
    return common.state_dict(), uplink


def same(state, other):
    return list(state) == list(other) and all(torch.equal(state[name], other[name]) for name in state)


@pytest.mark.thorough
def test_a_federation_gives_the_bits_and_bytes_of_a_plain_loop(programs, tmp_path):
    heard = federation.federate(SCRIPT, programs, tmp_path)
    saved = tmp_path / "federation.pt"
    assert saved.exists(), heard
    state, uplink, downlink = torch.load(saved, weights_only=False)

    expected, bytes_up = by_hand()
    assert same(state, expected)
    assert uplink == bytes_up
    assert downlink == dict.fromkeys(range(1, ROUNDS + 1), CLIENTS * 4 * 650)
    for wrong in (by_hand(ErrorFeedback(TopK(fraction=0.06))), by_hand(steps=TAU + 1)):
        assert not same(state, wrong[0])


def top_two(changes, weights, rounds=3):
    """Three clients' rounds in scalars: the model, and what each still owes."""
    model, owed = [0.0] * 4, [[0.0] * 4 for _ in changes]
    for _ in range(rounds):
        total = [0.0] * 4
        for client, change in enumerate(changes):
            x = [c + r for c, r in zip(change, owed[client], strict=True)]
            kept = sorted(range(4), key=lambda i: (-abs(x[i]), i))[:2]
            total = [t + weights[client] * x[i] * (i in kept) for i, t in enumerate(total)]
            owed[client] = [0.0 if i in kept else x[i] for i in range(4)]
        model = [m + t / sum(weights) for m, t in zip(model, total, strict=True)]
    return model, owed


@pytest.mark.thorough
def test_both_ends_with_flowers_own_messages(programs, tmp_path):
    script = Path(__file__).with_name("flower_in_process.py")
    result = subprocess.run(
        [str(programs / "python"), str(script)],
        env=federation.environment(programs, tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=federation.LONGEST_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    answer = json.loads(result.stdout.splitlines()[-1])

    changes, weights = [[1, 2, 3, 4], [4, 3, 2, 1], [1, 0, 0, 1]], [1, 2, 1]
    model, owed = top_two(changes, weights)
    assert answer["model"] == model
    assert answer["residuals"] == owed
    assert answer["left"] == top_two([changes[0], changes[2]], [1, 1])[0]  # the client that fails is left out
    assert answer["losses"] == {str(number): {"loss": 1.5} for number in (1, 2, 3)}
    frame = math.ceil(METHOD.operator.bits(4).worst_case / 8)
    assert all(0 < bytes_up <= 3 * (frame + FRAME + 9) for bytes_up in answer["uplink"].values())
    assert all(3 * answer["uplink of two"][n] // 2 in range(up - 3, up + 4) for n, up in answer["uplink"].items())
    assert answer["downlink"] == dict.fromkeys("123", 2 * 3 * 4 * 4)  # to train and to evaluate
    model, sent = answer["bfloat16"]
    assert np.allclose(model, 1 + 64 / 3 * 2.0**-7, rtol=1e-5)  # float32 on the server
    assert sent == 3 * 4 * 2
    for name, sentence in SENTENCES.items():
        assert sentence in answer[name], name


SENTENCES = {
    "operator": "client 1 encodes by QSGD(levels=4",
    "key": "with Key(seed=0, step=0, rank=0, layer=0, path=()): give both the same",
    "plain": "has sent no compressed update: give its ClientApp's train mods=[CompressedUpdates(",
    "plain server": "Unsupported serialization type for numpy conversion: 'ratedist'",
    "damaged": "CorruptMessage: the update of client 2 in round 1: the frame's CRC-32 does not match",
    "twice": "2 clients have partition-id = 1: give every SuperNode its own number",
    "no number": 'got no partition-id: start its SuperNode with --node-config "partition-id=0"',
    "no weight": "client 2 has 0.0: reply with the number of its examples",
}
