"""Batches: every row is the message, and the vector, that it is alone, bit for bit."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import CorruptMessage, Key, Keys, Message, Messages, all_operators, parse, specification
from operators.kernels.backend import use
from operators.random import bits32, bits32_of_rows, philox_key, philox_keys, stream, stream_of_rows, words_from
from tests.operators.batches import batch_of
from tests.pooled import pooled

EXAMPLES = tuple(specification(example) for cls in all_operators().values() for example in cls.examples())
MORE = (
    *("qsgd:7,code=fixed", "qsgd:7,norm=max,code=fixed", "qsgd:7,bucket=5,code=fixed", "qsgd:1,bucket=3"),
    *("qsgd:4,code=dense", "qsgd:4,code=flag,norm=max", "qsgd:300,bucket=100", "terngrad:scale=16.0"),
    *("topk:0.2", "randomk:0.2", "scaled_randomk:0.2"),
)
BATCHED = (
    *("identity", "signsgd", "scaled_sign", "terngrad", "terngrad:2.5", "qsgd:16", "qsgd:4,code=fixed"),
    *(
        "qsgd:4,norm=max,bucket=7,code=flag",
        "qsgd:7,norm=max,bucket=7,code=fixed",
        "block_integer:4,block=7,rounding=stochastic",
    ),
    *("topk:0.2", "randomk:0.2", "scaled_randomk:0.2", "natural", "natural_dithering:norm=max", "klevel:3"),
    *("cast:fp16", "cast:e4m3,rounding=stochastic"),
)
LENGTHS = 1, 3, 5, 8, 29, 64


def matrix(m, d, seed):
    """Rows of several sizes; some are zero, negligible, or have one entry or equal entries."""
    rng = np.random.default_rng([seed, m, d])
    x = rng.standard_normal((m, d)).clip(-16, 16) * 2.0 ** rng.integers(-20, 1, (m, 1))
    special = np.zeros(d), np.full(d, 1e-42), (np.arange(d) == d - 1) * 0.5, -np.ones(d), np.full(d, -0.0)
    for row in np.flatnonzero(rng.random(m) < 0.4):
        x[row] = special[rng.integers(len(special))]
    return torch.from_numpy(x.astype(np.float32))


@pooled("text", EXAMPLES + MORE)
def test_rows_of_a_batch_are_the_messages_of_the_vectors(text):
    for d in LENGTHS:
        batch_of(parse(text), matrix(4, d, 0), Keys(Key(3, step=2).fold_in(d), range(4)))


@pooled("text", EXAMPLES + MORE)
@given(m=st.integers(1, 9), d=st.integers(1, 300), seed=st.integers(0, 2**32))
@settings(max_examples=max(2, settings().max_examples // 50), deadline=None)
def test_drawn_batches_are_the_messages_of_the_vectors(text, m, d, seed):
    batch_of(parse(text), matrix(m, d, seed), [Key(seed, rank=r).fold_in(7 * r) for r in range(m)])


@pooled("text", BATCHED)
def test_long_rows_draw_the_words_of_their_tiles(text):
    for d in (4095, 4096, 4097, 9000, 20_000):
        batch_of(parse(text), matrix(3, d, 1), Keys(Key(5), (7, 0, 2**63)))


@pooled("text", BATCHED)
def test_a_damaged_message_of_a_batch_is_refused_as_it_is_alone(text):
    operator, d, rng = parse(text), 29, np.random.default_rng(0)
    keys = Keys(Key(3), range(4))
    batch = operator.encode_rows(matrix(4, d, 2), keys=keys)
    for _ in range(60):
        payload = batch.payload.clone()
        payload[int(rng.integers(payload.numel()))] ^= int(1 << rng.integers(8))
        damaged = Messages(payload, batch.bits)
        assert outcome(lambda b=damaged: operator.decode_rows(b, d=d, keys=keys)) == outcome(
            lambda b=damaged: torch.stack([operator.decode(b[i], d=d, key=keys[i]) for i in range(4)])
        )


@pooled("text", BATCHED)
def test_a_message_of_another_length_is_refused(text):
    operator, d = parse(text), 29
    keys = Keys(Key(3), range(3))
    first, _, last = operator.encode_rows(matrix(3, d, 2), keys=keys)
    for bits in (0, 3, first.bits + 8):
        wrong = Message(torch.zeros((bits + 7) // 8, dtype=torch.uint8), bits)
        with pytest.raises(CorruptMessage, match="row 1"):
            operator.decode_rows([first, wrong, last], d=d, keys=keys)


def outcome(decoded):
    """What is decoded, as bytes, or that it is refused."""
    try:
        return decoded().numpy().tobytes()
    except CorruptMessage:
        return "refused"


@pooled("text", BATCHED)
def test_supplied_words_and_other_back_ends_serve_batches_too(text):
    with words_from(lambda key, n, start: (np.arange(start, start + n) * 2654435761 + key.rank).astype(np.uint32)):
        batch_of(parse(text), matrix(3, 21, 4), Keys(Key(5), range(3)))
    with use("reference"):
        batch_of(parse(text), matrix(3, 21, 4), Keys(Key(5), range(3)))


@pytest.mark.parametrize("n", [1, 5, 4096, 4099, 8192])
def test_words_of_rows_are_those_of_the_streams(n):
    keys = [Key(2**64 - 1, step=3, rank=None).fold_in(2**63), Key(1, rank=2**64 - 1, layer=4).fold_in(9)]
    assert [philox_key(key) for key in keys] == list(zip(*(k.tolist() for k in philox_keys(keys)), strict=True))
    mixed = [*keys, Key(5)]
    assert [philox_key(key) for key in mixed] == list(zip(*(k.tolist() for k in philox_keys(mixed)), strict=True))
    assert (bits32_of_rows(keys, n) == np.stack([bits32(key, n) for key in keys])).all()
    ranks = Keys(keys[0], range(3))
    assert [philox_key(key) for key in ranks] == list(zip(*(k.tolist() for k in philox_keys(ranks)), strict=True))
    drawn = stream_of_rows(keys, n).words.reshape(2, n)
    with words_from(of_the_key):  # so that a stream shows its words
        assert all(torch.equal(row, stream(key, n).words) for row, key in zip(drawn, keys, strict=True))


def of_the_key(key, n, start):
    with words_from(None):
        return bits32(key, n, start=start)


def test_what_is_no_batch_is_refused():
    operator = parse("scaled_sign")
    with pytest.raises(ValueError, match="one vector per row"):
        operator.encode_rows(torch.ones(3), keys=[Key(0)])
    with pytest.raises(ValueError, match="one key per row"):
        operator.encode_rows(torch.ones(3, 2), keys=[Key(0)])
    with pytest.raises(ValueError, match="finite"):
        operator.encode_rows(torch.tensor([[1.0, float("nan")]]), keys=[Key(0)])
    with pytest.raises(ValueError, match="at least 1"):
        operator.decode_rows([], d=3)
    with pytest.raises(ValueError, match="key"):
        parse("randomk:0.5").decode_rows([Message(torch.zeros(8, dtype=torch.uint8), 64)], d=4)
    with pytest.raises(ValueError, match="binary32"):
        parse("qsgd:4").encode_rows(torch.full((1, 9), 3e38), keys=[Key(0)])


def test_a_batch_is_a_sequence_of_its_messages():
    batch = parse("topk:0.3").encode_rows(matrix(5, 40, 3), keys=Keys(Key(0), range(5)))
    again = Messages.of(list(batch))
    assert torch.equal(again.payload, batch.payload)
    assert (again.bits == batch.bits).all()
    assert batch[-1].bits == batch.bits[-1]
    assert [message.bits for message in batch[1:3]] == batch.bits[1:3].tolist()
    with pytest.raises(ValueError, match="cannot fill"):
        Messages(batch.payload[1:], batch.bits)
