"""A vector in pieces gives the message that it has as a whole, and that message gives it back in pieces."""

import tracemalloc

import numpy as np
import pytest
import torch

from operators import TCDQ, CorruptMessage, Key
from operators.tcdq import codec, dispatch
from operators.tcdq.model import Plan, plan_of
from operators.tcdq.subset import gather, gather_pieces, scatter, scatter_pieces
from operators.tcdq.trellis import SEGMENT, seeds

SEEDS = seeds(Key(3))


def vectors(d):
    rng, i = np.random.default_rng(d), np.arange(d)
    yield "gauss", rng.standard_normal(d)
    yield "waves", rng.standard_normal(d) * np.exp(2.3 * np.sin(i / 100))
    yield "one-hot", (i == d // 2) * 3.0
    yield "zero", np.zeros(d)
    yield "negligible", np.full(d, 2.0**-127)


def cut(x, lengths=(1, 7, 100, 64, 128, 5000)):
    """Pieces of the lengths in turn, an empty one before them."""
    yield x[:0]
    start, turn = 0, 0
    while start < x.size:
        stop = start + lengths[turn % len(lengths)]
        yield x[start:stop]
        start, turn = stop, turn + 1


@pytest.mark.parametrize("omega", [0.3, 1e-3, 1e-6])
@pytest.mark.parametrize(
    "plan", [lambda o: Plan(3237, o, 8, 256), lambda o: Plan(512, o, 1, 256), lambda o: plan_of(1000, o, 8)],
    ids=["segments", "two segments", "short format"],
)  # fmt: skip
def test_messages_and_vectors_in_pieces_equal_whole_ones(plan, omega):
    plan = plan(omega)
    for name, x in vectors(plan.d):
        x = x.astype(np.float32)
        payload = codec.encode(x, plan, SEEDS)
        assert codec.encode_in_pieces(lambda x=x: cut(x), plan, SEEDS).tobytes() == payload.tobytes(), name
        decoded = np.concatenate(list(codec.decode_in_pieces(payload, 8 * payload.size, plan, SEEDS)))
        assert decoded.tobytes() == codec.decode(payload, 8 * payload.size, plan, SEEDS).tobytes()


def test_sampled_histograms_see_the_same_rows(monkeypatch):
    monkeypatch.setattr("operators.tcdq.fit.SAMPLE", 32)  # every seventh row: row 112 begins a segment
    plan = Plan(3237, 0.01, 8, 256)
    for _, x in vectors(plan.d):
        x = x.astype(np.float32)
        payload = codec.encode_in_pieces(lambda x=x: cut(x), plan, SEEDS)
        assert payload.tobytes() == codec.encode(x, plan, SEEDS).tobytes()


def test_mixtures_beyond_a_declared_limit_give_way_in_pieces_too(monkeypatch):
    monkeypatch.setattr(codec, "limit", lambda plan, squares: 0.0)
    plan, x = Plan(3237, 0.01, 8, 256), dict(vectors(3237))["waves"].astype(np.float32)
    payload = codec.encode_in_pieces(lambda: cut(x), plan, SEEDS)
    assert payload.tobytes() == codec.encode(x, plan, SEEDS).tobytes()
    assert payload[4] == 0  # the Gaussian


def test_symbols_that_are_not_kept_give_the_same_message(monkeypatch):
    x, plan = torch.from_numpy(dict(vectors(2 * SEGMENT))["waves"]).float(), plan_of(2 * SEGMENT, 0.1, 8)
    kept = dispatch.encode(x, plan, SEEDS)
    monkeypatch.setattr(dispatch, "KEPT", SEGMENT)
    monkeypatch.setattr(codec, "encode", None)  # not called
    assert torch.equal(dispatch.encode(x, plan, SEEDS), kept)


@pytest.mark.parametrize("missing", [1, -1])
def test_pieces_of_another_length_are_refused(missing):
    with pytest.raises(ValueError, match="d = 3237"):
        codec.encode_in_pieces(lambda: cut(np.ones(3237 - missing, np.float32)), Plan(3237, 0.1, 8, 256), SEEDS)


@pytest.mark.parametrize("operator", [TCDQ(), TCDQ(omega=9.0), TCDQ(form="contractive"), TCDQ(omega=500.0)], ids=repr)
@pytest.mark.parametrize("d", [1, 5000, 3 * SEGMENT + 11])
def test_operator_in_pieces_equals_the_operator(operator, d):
    key, x = Key(5), torch.randn(d, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    message = operator.encode_pieces(lambda: x.split(10_000), d=d, key=key)
    assert torch.equal(message.payload, operator.encode(x, key=key).payload)
    decoded = list(operator.decode_pieces(message, d=d, key=key))
    assert torch.equal(torch.cat(decoded), operator.decode(message, d=d, key=key))
    assert max(piece.numel() for piece in decoded) < 2 * SEGMENT


@pytest.mark.parametrize("k", [1, 40, 299_999, 300_000])
def test_subsets_in_pieces_equal_whole_ones(k):
    x, key = np.random.default_rng(k).standard_normal(300_000).astype(np.float32), Key(8)
    part = np.concatenate(list(gather_pieces(cut(x, (9, 80_000)), x.size, k, key)))
    assert np.array_equal(part, gather(x, k, key))
    parts = scatter_pieces(cut(part, (3, 50_000)), x.size, k, key, 1.5)
    assert np.array_equal(np.concatenate(list(parts)), scatter(part, x.size, key, 1.5))


def test_pieces_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="finite"):
        TCDQ().encode_pieces(lambda: [torch.ones(3), torch.tensor([1.0, torch.nan])], d=5, key=Key(0))


def test_damage_is_found_when_it_is_reached():
    operator, d = TCDQ(omega=0.1), 3 * SEGMENT
    message = operator.encode(torch.randn(d, generator=torch.Generator().manual_seed(1)), key=Key(0))
    message.payload[-1] ^= 1
    parts = operator.decode_pieces(message, d=d, key=Key(0))
    assert next(parts).numel() == SEGMENT
    with pytest.raises(CorruptMessage):
        list(parts)


def test_memory_for_pieces_does_not_grow_with_the_vector():
    """Every array of the encoder is numpy's, which tells tracemalloc; a segment's symbols take 4 bytes a coordinate."""
    peaks = []
    for d in (4 * SEGMENT, 16 * SEGMENT):
        operator, piece = TCDQ(omega=0.3), torch.ones(SEGMENT)
        tracemalloc.start()
        message = operator.encode_pieces(lambda d=d, piece=piece: [piece] * (d // SEGMENT), d=d, key=Key(0))
        peaks.append(tracemalloc.get_traced_memory()[1] - 3 * message.nbytes)
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + SEGMENT
