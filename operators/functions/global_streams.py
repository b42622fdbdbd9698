"""The random numbers that everybody shares: Python's generator, numpy's legacy one and torch's for the CPU."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

State = tuple[object, dict[str, object], torch.Tensor]


def snapshot() -> State:
    """Return the states of the three."""
    return random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()  # noqa: NPY002


def same(a: State, b: State) -> bool:
    """Return whether two snapshots are equal.

    Parameters
    ----------
    a, b : State
        What ``snapshot`` returned.
    """
    return a[0] == b[0] and repr(_plain(a[1])) == repr(_plain(b[1])) and torch.equal(a[2], b[2])


def seed_all(seed: int) -> None:
    """Seed the three; generators of other devices stay as they are.

    Parameters
    ----------
    seed : int
        0 <= seed < 2^32.
    """
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.default_generator.manual_seed(seed)


def restore(state: State) -> None:
    """Bring the three back to a snapshot.

    Parameters
    ----------
    state : State
        What ``snapshot`` returned.
    """
    random.setstate(state[0])  # type: ignore[arg-type]
    np.random.set_state(state[1])  # noqa: NPY002
    torch.set_rng_state(state[2])


@contextmanager
def seeded(seed: int, label: str) -> Iterator[None]:
    """Seed the three, and what ``np.random.default_rng()`` makes, from a seed and a label; restore them afterwards.

    A plain function draws from them, so that without it a check could not be repeated draw by draw.

    Parameters
    ----------
    seed : int
        Of the check, >= 0.
    label : str
        What the numbers are for, such as the name of a law.
    """
    saved, default_rng = snapshot(), np.random.default_rng
    sequence = np.random.SeedSequence([seed, zlib.crc32(label.encode())])

    def seeded_rng(seed: Any = None) -> np.random.Generator:
        return default_rng(sequence.spawn(1)[0] if seed is None else seed)

    seed_all(int(sequence.generate_state(1)[0]))
    np.random.default_rng = seeded_rng
    try:
        yield
    finally:
        np.random.default_rng = default_rng
        restore(saved)


def _plain(state: dict[str, object]) -> object:
    inner = state["state"]
    return {**inner, "key": inner["key"].tobytes()} if isinstance(inner, dict) and "key" in inner else state
