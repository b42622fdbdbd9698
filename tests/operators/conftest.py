"""Input vectors and small helpers that the operator tests share."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from operators import Key, Message

from .plain_philox import bits32_numpy

DIMENSIONS = (1, 2, 7, 8, 9, 64, 1000, 4097)


def named_vectors(d: int) -> Iterator[tuple[str, np.ndarray]]:
    """Structured and random float32 vectors of length d, none of them negligible except zero itself."""
    rng = np.random.default_rng(d)
    one_hot = np.zeros(d)
    one_hot[d // 2] = -3
    sparse = rng.standard_normal(d) * (rng.random(d) < 0.05)
    yield "zero", np.zeros(d, np.float32)
    yield "negative zero", np.full(d, -0.0, np.float32)
    yield "ones", np.ones(d, np.float32)
    yield "one-hot", one_hot.astype(np.float32)
    yield "gauss", rng.standard_normal(d).astype(np.float32)
    yield "cauchy", rng.standard_cauchy(d).astype(np.float32)
    yield "sparse", sparse.astype(np.float32)
    yield "geometric", (0.5 ** np.arange(d)).astype(np.float32)
    yield "two scales", np.where(np.arange(d) % 2, 1e-6, -1).astype(np.float32)
    yield "huge", (rng.standard_normal(d) * 2.0**90).astype(np.float32)
    yield "small", (rng.standard_normal(d) * 2.0**-110).astype(np.float32)


@pytest.fixture(params=DIMENSIONS, ids=lambda d: f"d={d}")
def d(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def vectors(d: int) -> list[np.ndarray]:
    return [x for _, x in named_vectors(d)]


@pytest.fixture
def key() -> Key:
    return Key(seed=20260, step=3, rank=1)


@pytest.fixture
def words_of() -> Callable[[Key, int], np.ndarray]:
    """The word of each coordinate for operators that draw in tiles: word j of block b serves 1024 j + b."""

    def words(key: Key, d: int) -> np.ndarray:
        i = np.arange(d)
        in_tile = i // 4096 * 4096 + 4 * (i % 1024) + i % 4096 // 1024
        return bits32_numpy(key, d)[np.where(i < d // 4096 * 4096, in_tile, i)]

    return words


@pytest.fixture
def bitstring() -> Callable[[Message], str]:
    """The payload as a text of zeros and ones, padding removed."""

    def text(message: Message) -> str:
        return "".join(f"{byte:08b}" for byte in message.payload.tolist())[: message.bits]

    return text


@pytest.fixture
def float_field() -> Callable[[float], str]:
    """A binary32 number as 32 zeros and ones."""
    return lambda value: "".join(f"{byte:08b}" for byte in struct.pack(">f", value))


def _support(mask: list[bool]) -> str:
    d, k = len(mask), sum(mask)
    if k in (0, d):
        return ""
    if d <= 64:
        rank = sum(math.comb(i, j + 1) for j, i in enumerate(i for i in range(d) if mask[i]))
        width = (math.comb(d, k) - 1).bit_length()
        return f"{rank:0{width}b}" if width else ""
    low, width, shift = 0, 2**64 - 1, 0
    for i in range(d):
        n = d - i
        if k in (0, n):
            break
        before = width // n * k
        low, width, k = (low, before, k - 1) if mask[i] else (low + before, width - before, k)
        while width < 2**56:
            low, width, shift = low << 8, width << 8, shift + 8
    for t in range(1, 64):
        value = -(-low >> (64 - t))
        if (value + 1) << (64 - t) <= low + width:
            return f"{value:0{shift + t}b}"
    raise AssertionError


@pytest.fixture
def support_field() -> Callable[[list[bool]], str]:
    """The support code with integers of any length: enumerative rank, or the range coder without carries."""
    return _support


@pytest.fixture
def message_of() -> Callable[[str], Message]:
    """A message from a text of zeros and ones."""

    def build(text: str) -> Message:
        raw = int((text + "0" * (-len(text) % 8)) or "0", 2).to_bytes((len(text) + 7) // 8, "big")
        return Message(torch.tensor(list(raw), dtype=torch.uint8), len(text))

    return build
