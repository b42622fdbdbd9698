"""Seed of a run, from which all its random numbers follow; drawn unless given, and stored with the measurements."""

from __future__ import annotations

import secrets

from operators import Key
from operators.random import bits32

RECORDED = 0  # with this seed every stream has the seed of its study, as in the committed records
SEEDS = 1 << 32


def draw() -> int:
    """Return a new seed from the system's entropy, never the recorded one."""
    return 1 + secrets.randbelow(SEEDS - 1)


def require(seed: int) -> int:
    """Return the seed if it is valid.

    Raises
    ------
    ValueError
        Unless 0 <= seed < 2^32.
    """
    if not 0 <= seed < SEEDS:
        raise ValueError(f"seed must satisfy 0 <= seed < 2^32; got {seed}")
    return seed


def derived(seed: int, own: int) -> int:
    """Return the seed of one stream of a run; with the recorded seed it is ``own``.

    Raises
    ------
    ValueError
        Unless 0 <= seed < 2^32.
    """
    return own if require(seed) == RECORDED else int(bits32(Key(seed).fold_in(own), 1)[0])


def replay(command: str, seed: int) -> str:
    """Return the command that draws the same numbers again, on the same commit and libraries."""
    return f"ratedist run {command} --seed {seed}"
