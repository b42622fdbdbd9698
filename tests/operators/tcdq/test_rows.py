"""Messages of a batch are those of its rows, and the batch refuses what a row alone is refused for."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from operators import TCDQ, CorruptMessage, Key, Keys, Message, Messages, set_threads
from operators.tcdq import codec
from tests.operators.batches import batch_of, one_by_one

BORDERS = (1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 127, 1022, 1023, 1024)  # of codes, of groups of lanes, of models
OMEGAS = (1.0, 1.5, 1.6, 9.0, 500.0, 0.25, 0.004, 1e-5)
STATES = (1, 4, 8, 64, 128, 256)


def matrix(m, d, seed):
    """Rows of many scales, some of zeros, of negligible numbers or of one entry."""
    rng = np.random.default_rng([seed, m, d])
    x = rng.standard_t(2, (m, d)) * 2.0 ** rng.integers(-60, 60, (m, 1))
    special = np.zeros(d), np.full(d, 1e-40), (np.arange(d) == d - 1) * -3.0, np.full(d, -0.0)
    for row in np.flatnonzero(rng.random(m) < 0.4):
        x[row] = special[rng.integers(len(special))]
    return torch.from_numpy(x.astype(np.float32))


def outcome(work):
    """The bytes of a tensor, or what refuses it."""
    try:
        return work().numpy().tobytes()
    except (CorruptMessage, ValueError) as refusal:
        return f"{type(refusal).__name__}: {refusal}"


FORMS = ("unbiased", "contractive")
OPERATORS = st.builds(TCDQ, omega=st.sampled_from(OMEGAS), states=st.sampled_from(STATES), form=st.sampled_from(FORMS))
LENGTHS = st.one_of(st.sampled_from(BORDERS), st.integers(1, 300))


@given(operator=OPERATORS, m=st.integers(1, 35), d=LENGTHS, seed=st.integers(0, 2**32))
@settings(max_examples=max(20, settings().max_examples // 4), deadline=None)
def test_rows_are_encoded_and_refused_as_they_are_alone(operator, m, d, seed):
    keys, rng = [Key(seed, rank=r).fold_in(r % 3) for r in range(m)], np.random.default_rng(seed)
    batch = batch_of(operator, matrix(m, d, seed), keys)
    payload = batch.payload.clone()
    payload[int(rng.integers(payload.numel()))] ^= int(1 << rng.integers(8))
    damaged = Messages(payload, batch.bits)
    assert outcome(lambda: operator.decode_rows(damaged, d=d, keys=keys)) == outcome(
        lambda: one_by_one(operator, damaged, d, keys)
    )


@pytest.mark.parametrize("d", [4, 70])
def test_rows_are_encoded_in_one_batch(d, monkeypatch):
    operator, keys = TCDQ(), Keys(Key(3), range(20))
    monkeypatch.setattr(codec, "encode", None)  # not called
    monkeypatch.setattr(codec, "decode", None)
    batch = operator.encode_rows(torch.ones(20, d), keys=keys)
    assert torch.isfinite(operator.decode_rows(batch, d=d, keys=keys)).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("omega", [0.1, 100.0])
@pytest.mark.parametrize("value", [1e38, 3e38])
def test_a_row_beyond_binary32_is_refused_as_it_is_alone(value, omega, form):
    operator, x, keys = TCDQ(omega=omega, form=form), torch.ones(5, 20), Keys(Key(0), range(5))
    x[3] = value
    alone = outcome(lambda: operator.encode(x[3], key=keys[3]).payload)
    assert alone.startswith("ValueError")
    assert outcome(lambda: operator.encode_rows(x, keys=keys).payload) == alone


def test_messages_of_other_lengths_are_refused_as_they_are_alone():
    operator, keys, rng = TCDQ(), Keys(Key(3), range(3)), np.random.default_rng(1)
    first, _, last = operator.encode_rows(matrix(3, 29, 2), keys=keys)
    for n in range(24):
        for payload in (np.zeros(n, np.uint8), rng.integers(0, 256, n, dtype=np.uint8)):
            for padding in range(2 if n else 1):
                message = Message(torch.from_numpy(payload & (255 << padding & 255)), 8 * n - padding)
                batch = [first, message, last]
                expected = outcome(lambda b=batch: one_by_one(operator, b, 29, keys))
                assert outcome(lambda b=batch: operator.decode_rows(b, d=29, keys=keys)) == expected


def test_threads_share_the_rows_of_a_batch():
    operator, x, keys = TCDQ(), matrix(600, 1000, 5), Keys(Key(1), range(600))
    set_threads(1)
    alone = operator.encode_rows(x, keys=keys)
    decoded = operator.decode_rows(alone, d=1000, keys=keys)
    try:
        set_threads(3)
        batch = operator.encode_rows(x, keys=keys)
        assert torch.equal(batch.payload, alone.payload)
        assert torch.equal(operator.decode_rows(batch, d=1000, keys=keys), decoded)
    finally:
        set_threads(None)
