"""TCDQ's codec: one payload and one vector on every back end, shown on segments of 64 coordinates."""

import importlib
import struct

import numpy as np
import pytest
import torch

from operators import TCDQ, CorruptMessage, Key
from operators.compressors import tcdq as operator_module
from operators.kernels.backend import use
from operators.tcdq import codec, fit
from operators.tcdq import dispatch as tcdq
from operators.tcdq import model as plans
from operators.tcdq.model import LONG, Plan, build
from operators.tcdq.trellis import seeds

from ..kernels.equality import INTERPRETED, OTHERS, assert_equal, run
from . import oracle

STRICT = ["cpu", *(other for other in OTHERS if other != "reference")]  # these refuse whatever no encoder sends

SEEDS = seeds(Key(20261, step=3, rank=1))
SHORT_SEGMENT = 64
D = 2 * SHORT_SEGMENT + 43  # the last segment is longer, and its last row is not full


@pytest.fixture(autouse=True)
def models_of_few_coordinates(monkeypatch):
    """Mixtures are sent, and contexts told apart, at every d."""
    monkeypatch.setattr(plans, "MODEL_FROM", 0)
    monkeypatch.setattr(fit, "LEAST_IN_GROUP", 32)


def plan_of(omega, states, d=D):
    cut = Plan(d, omega, states, SHORT_SEGMENT)
    assert cut.form is LONG
    return cut


def vector(name, d=D):
    rng, i = np.random.default_rng(d), np.arange(d)
    x = {
        "gauss": rng.standard_normal(d),
        "waves": rng.standard_normal(d) * np.exp(4 * (i % 60 > 30)),
        "one-hot": np.where(i == d // 2, -3.0, 0),
        "spikes": np.where(i % 120 == 5, 40 * rng.standard_normal(d), rng.standard_normal(d)) * 2.0**-100,
        "empty segment": np.where(i < SHORT_SEGMENT, 0, rng.standard_normal(d)),
        "zero": np.zeros(d),
    }[name]
    return torch.from_numpy(x.astype(np.float32))


def model_of(payload, plan):
    return codec.read_model(payload.numpy().tobytes(), plan)[0]


def escapes_of(payload, x, plan):
    """Bits of the excess of every symbol outside its table."""
    norm = float(payload[:4].numpy().view(">f4")[0])
    k, _ = oracle.quantise(x.numpy(), norm, plan, SEEDS)
    model = model_of(payload, plan)
    top = int(build(model, LONG).widest.min())
    coded = k + (1 << model.low >> 1) >> model.low
    return [int(e).bit_length() - 1 for e in np.maximum(coded - top, 1 - top - coded) if e > 0]


def assert_same(other, x, plan):
    """The CPU's payload and vector, once they are those of another device and of the oracle."""
    payload = run("cpu", tcdq.encode, x, plan, SEEDS)
    assert_equal(payload, run(other, tcdq.encode, x, plan, SEEDS))
    arguments = (payload, 8 * payload.numel(), plan, SEEDS)
    decoded = run("cpu", tcdq.decode, *arguments)
    assert_equal(decoded, run(other, tcdq.decode, *arguments))
    assert payload.numpy().tobytes() == oracle.encode(x.numpy(), plan, SEEDS)
    assert decoded.numpy().tobytes() == oracle.decode(payload.numpy().tobytes(), plan, SEEDS).tobytes()
    return payload


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("states", "omega"), [(1, 1.0), (4, 0.02), (8, 1.0), (64, 0.02), (256, 0.1)])
def test_payload_and_vector_do_not_depend_on_the_back_end(other, states, omega):
    assert_same(other, vector("gauss"), plan_of(omega, states))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("d", [64, 127, 145])
def test_ends_of_segments_do_not_depend_on_the_back_end(other, d):
    assert_same(other, vector("gauss", d), plan_of(0.1, 8, d))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", ["zero", "empty segment"])
def test_segments_of_zeros_do_not_depend_on_the_back_end(other, name):
    assert_same(other, vector(name), plan_of(0.3, 8))


@pytest.mark.parametrize("other", OTHERS)
def test_contexts_do_not_depend_on_the_back_end(other, monkeypatch):
    monkeypatch.setattr(fit, "BYTE", 0)  # so that few coordinates are worth several mixtures
    plan = plan_of(0.01, 8)
    assert model_of(assert_same(other, vector("waves"), plan), plan).groups > 1


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("omega", [1e-4, 1e-6])
def test_low_parts_do_not_depend_on_the_back_end(other, omega):
    plan = plan_of(omega, 8)
    assert model_of(assert_same(other, vector("gauss"), plan), plan).low > 0


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("name", "omega"), [("spikes", 1e-3), ("one-hot", 1e-6)])
def test_escapes_do_not_depend_on_the_back_end(other, name, omega):
    plan, x = plan_of(omega, 4), vector(name)
    assert escapes_of(assert_same(other, x, plan), x, plan)


@pytest.mark.parametrize("other", OTHERS)
def test_sampled_histograms_do_not_depend_on_the_back_end(other, monkeypatch):
    monkeypatch.setattr(fit, "SAMPLE", 4)
    plan = plan_of(0.1, 1)
    assert fit.stride(plan) == 3
    assert_same(other, vector("waves"), plan)


def module_of(backend):
    return codec if backend == "cpu" else importlib.import_module("operators.tcdq.cuda")


def payload_of(backend, packed, plan, choice):
    """The payload of given symbols under norm 1."""
    if backend == "cpu":
        return torch.from_numpy(codec._payload(struct.pack(">f", 1.0), packed, plan, choice))
    device = "cpu" if INTERPRETED else "cuda"
    choice = fit.Choice(choice.model, torch.from_numpy(choice.groups).to(device), choice.bits)
    cuda = importlib.import_module("operators.tcdq.cuda")
    return cuda._payload(1.0, torch.from_numpy(packed).to(device), plan, choice).cpu()


def symbols_of(k, plan):
    """Packed symbols of the code without a trellis."""
    return (k << 6 | (oracle.dither(plan, SEEDS) & 0xFFFFFF) >> 18).astype(np.int32)


@pytest.mark.parametrize("backend", STRICT)
@pytest.mark.parametrize("omega", [0.1, 1e-5])
def test_escapes_of_every_length_equal_the_reference(backend, omega):
    """A vector has such symbols only if it is long: here they are given, with ordinary ones after them."""
    plan, length = plan_of(omega, 1, 64), np.arange(25)
    excess = np.r_[(1 << length) + (5 << length >> 3), np.arange(39) % 4]
    packed = symbols_of(np.where(np.arange(64) % 3 == 0, -1, 1) * excess, plan)
    choice = fit.choose(packed, plan, 0)
    payload = payload_of(backend, packed, plan, choice)
    tables = build(choice.model, LONG)
    ops = [oracle.operations(int(v) >> 6, int(v) & 63, plan.low, 0, tables) for v in packed]
    states, words = oracle.write(ops, plan)
    expected = b"".join([v.to_bytes(4, "big") for v in states] + [v.to_bytes(2, "big") for v in words])
    assert payload.numpy().tobytes()[5:] == expected
    decoded = oracle.decode(payload.numpy().tobytes(), plan, SEEDS)
    assert_equal(torch.from_numpy(decoded), run(backend, tcdq.decode, payload, 8 * payload.numel(), plan, SEEDS))


@pytest.mark.parametrize("backend", STRICT)
def test_words_that_need_more_room_than_estimated_find_it(backend, monkeypatch):
    plan = plan_of(1e-5, 1, 64)
    packed = symbols_of(np.arange(64), plan)
    choice = fit.choose(packed, plan, 0)
    expected = payload_of("cpu", packed, plan, choice)
    monkeypatch.setattr(module_of(backend), "ROOM", -53)  # of 209 words, 17 are free before the guard
    assert_equal(expected, payload_of(backend, packed, plan, choice))


def damaged(payload, at, value):
    out = payload.clone()
    out[at] = value
    return out


@pytest.mark.parametrize("backend", STRICT)
def test_damaged_segments_are_refused(backend):
    plan = plan_of(0.1, 8, 128)
    payload = run("cpu", tcdq.encode, vector("gauss", 128), plan, SEEDS)
    assert payload[4] == 0  # the Gaussian: the first segment's number of words follows
    first = 5 + 4 + 64
    wrong = [
        payload[:-2], payload[:-1], payload[:60], payload[:7], torch.cat([payload, payload[:2]]),
        damaged(payload, 8, int(payload[8]) + 1), damaged(payload, 8, int(payload[8]) - 1), damaged(payload, 5, 255),
        damaged(payload, slice(9, 12), 0), damaged(payload, first, int(payload[first]) ^ 4),
    ]  # fmt: skip
    for message in wrong:
        with pytest.raises(CorruptMessage):
            run(backend, tcdq.decode, message, 8 * message.numel(), plan, SEEDS)


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("d", "k"), [(1, 1), (7, 3), (1500, 40), (1500, 1499)])
def test_subsets_do_not_depend_on_the_back_end(other, d, k):
    x = vector("gauss", d)
    part = run("cpu", tcdq.gather, x, k, Key(5))
    assert_equal(part, run(other, tcdq.gather, x, k, Key(5)))
    assert_equal(run("cpu", tcdq.scatter, part, d, Key(5), 1.7), run(other, tcdq.scatter, part, d, Key(5), 1.7))


@pytest.mark.parametrize("operator", [TCDQ(omega=4.0), TCDQ(form="contractive")], ids=repr)
@pytest.mark.parametrize("other", OTHERS)
def test_operator_on_the_long_format_does_not_depend_on_the_back_end(other, operator, monkeypatch):
    monkeypatch.setattr(operator_module, "plan_of", lambda d, omega, states: plan_of(omega, states, d))
    x, key, device = vector("gauss"), Key(7), "cuda" if other == "cuda" and not INTERPRETED else "cpu"
    here = operator.encode(x, key=key)
    with use(other):
        there = operator.encode(x.to(device), key=key)
        back = operator.decode(there, d=D, key=key)
    assert there.payload.device.type == back.device.type == device
    assert_equal(here.payload, there.payload.cpu())
    assert_equal(operator.decode(here, d=D, key=key), back.cpu())


@pytest.mark.parametrize("other", OTHERS)
def test_vector_too_short_for_a_model_does_not_depend_on_the_back_end(other, monkeypatch):
    monkeypatch.setattr(plans, "MODEL_FROM", 1024)
    assert_same(other, vector("spikes", 64), plan_of(1e-3, 8, 64))
