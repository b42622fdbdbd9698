"""Philox4x32-10 in plain Python and in numpy: the oracles of the compiled stream."""

import numpy as np

from operators import Key
from operators.kernels.philox.reference import M0, M1, ROUNDS, W0, W1
from operators.random import philox_key

_MASK = 0xFFFFFFFF


def philox4x32(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Four 32-bit words from a 128-bit counter and a 64-bit key."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        p0, p1 = M0 * c0, M1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + W0) & _MASK, (k1 + W1) & _MASK
    return c0, c1, c2, c3


def bits32_numpy(key: Key, n: int, *, start: int = 0) -> np.ndarray:
    """Words start .. start + n - 1 of the stream of a key, shape (n,), uint32."""
    first = start >> 2
    block = np.arange(first, (start + n + 3) >> 2, dtype=np.uint64)
    mask, half = np.uint64(_MASK), np.uint64(32)
    c = [block & mask, block >> half, np.zeros_like(block), np.zeros_like(block)]
    k0, k1 = philox_key(key)
    for _ in range(ROUNDS):
        p0, p1 = np.uint64(M0) * c[0], np.uint64(M1) * c[2]
        c = [(p1 >> half) ^ c[1] ^ np.uint64(k0), p1 & mask, (p0 >> half) ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0, k1 = (k0 + W0) & _MASK, (k1 + W1) & _MASK
    words = np.stack(c, axis=1).astype(np.uint32).reshape(-1)
    return words[start - 4 * first : start - 4 * first + n]
