"""Every decoder on payloads that nobody sent: a finite vector or CorruptMessage, nothing else, and little memory."""

import random
import tracemalloc

import numpy as np
import pytest
import torch

from operators import CorruptMessage, Key, Message, all_operators
from operators.operator import Operator

from .buckets import Bucketed

DIMENSIONS = (1, 2, 9, 64, 65, 200)
KEY = Key(5)
CLASSES = [pytest.param(cls.examples(), id=name) for name, cls in all_operators().items()]
CLASSES.append(pytest.param(Bucketed.examples(), id="bucketed"))


def sent(operator: Operator, d: int) -> list[tuple[bytes, int]]:
    """Messages of a few vectors."""
    rng = np.random.default_rng(d)
    spike = np.zeros(d)
    spike[-1] = -1
    vectors = (rng.standard_normal(d), rng.standard_cauchy(d), np.ones(d), np.zeros(d), spike)
    messages = [operator.encode(x, key=KEY) for x in vectors]
    return [(m.payload.numpy().tobytes(), m.bits) for m in messages]


def message_of(payload: bytes, bits: int) -> Message:
    return Message(torch.from_numpy(np.frombuffer(payload, np.uint8).copy()), bits)


def damaged(rng: random.Random, valid: list[tuple[bytes, int]]) -> tuple[bytes, int]:
    """One fuzzed (payload, bits): random, truncated, extended, bit-flipped or spliced."""
    payload, bits = rng.choice(valid)
    kind = rng.randrange(5)
    if kind == 0:
        bits = rng.randrange(2 * bits + 40)
        payload = rng.randbytes((bits + 7) // 8)
    elif kind == 1:
        bits = rng.randrange(bits + 1)
    elif kind == 2:
        bits += rng.randrange(1, 80)
        payload += rng.randbytes(10)
    else:
        data = bytearray(payload)
        for _ in range(rng.randrange(1, 4)):
            if data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        if kind == 4:
            other, _ = rng.choice(valid)
            cut = rng.randrange(len(data) + 1)
            data[cut:] = other[cut:]
            bits = min(bits, 8 * len(data))
        payload = bytes(data)
    payload = payload[: (bits + 7) // 8]
    if bits % 8 and payload and rng.randrange(8):  # mostly with clean padding, which is checked first
        payload = payload[:-1] + bytes([payload[-1] & (0xFF << (8 - bits % 8)) & 0xFF])
    return payload, bits


def fuzz(examples: tuple[Operator, ...], n: int, seed: int) -> int:
    """Decode n payloads; how many were accepted.  Anything but a finite vector or CorruptMessage raises."""
    rng, accepted = random.Random(seed), 0
    cases = [(operator, d, sent(operator, d)) for operator in examples for d in DIMENSIONS]
    for i in range(n):
        operator, d, valid = cases[i % len(cases)]
        payload, bits = damaged(rng, valid)
        tensor = (
            torch.frombuffer(bytearray(payload), dtype=torch.uint8) if payload else torch.empty(0, dtype=torch.uint8)
        )
        try:
            x = operator.decode(Message(tensor, bits), d=d, key=KEY)
        except CorruptMessage:
            continue
        assert x.shape == (d,)
        assert x.dtype == torch.float32
        assert bool(x.isfinite().all())
        accepted += 1
    return accepted


@pytest.mark.every(3)
@pytest.mark.parametrize("examples", CLASSES)
def test_two_thousand_fuzzed_payloads(examples):
    assert fuzz(examples, 2000, seed=1) < 2000


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("examples", CLASSES)
def test_a_million_fuzzed_payloads(examples):
    assert fuzz(examples, 1_000_000, seed=2) < 1_000_000


@pytest.mark.every(3)
@pytest.mark.parametrize("examples", CLASSES)
def test_memory_stays_near_that_of_the_vector_and_the_payload(examples):
    """At most 64 bytes a coordinate and 80 a payload byte, and a megabyte for the tables of an entropy coder."""
    rng, d = random.Random(3), 4000
    for operator in examples:
        valid = sent(operator, d)
        for message in valid:
            operator.decode(
                Message(torch.frombuffer(bytearray(message[0]), dtype=torch.uint8), message[1]), d=d, key=KEY
            )
        for _ in range(60):
            payload, bits = damaged(rng, valid)
            message = message_of(payload, bits)
            tracemalloc.start()
            try:
                operator.decode(message, d=d, key=KEY)
            except CorruptMessage:
                pass
            finally:
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert peak < 64 * d + 80 * len(payload) + 1_000_000
