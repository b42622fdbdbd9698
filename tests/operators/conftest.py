"""Input vectors and small helpers that the operator tests share."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from operators import Key, Message

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
def bitstring() -> Callable[[Message], str]:
    """The payload as a text of zeros and ones, padding removed."""

    def text(message: Message) -> str:
        return "".join(f"{byte:08b}" for byte in message.payload.tolist())[: message.bits]

    return text


@pytest.fixture
def float_field() -> Callable[[float], str]:
    """A binary32 number as 32 zeros and ones."""
    return lambda value: "".join(f"{byte:08b}" for byte in struct.pack(">f", value))
