"""Rotations with scalars: what ``operators.quantisers.rotation`` does, slowly and in plain Python."""

import math

import numpy as np

from operators import Key

from .plain_philox import bits32_numpy


def gaussian(key: Key, n: int) -> list[float]:
    """Box-Muller, number by number."""
    pairs = (n + 1) // 2
    u = [(int(w) + 0.5) / 2**32 for w in bits32_numpy(key, 2 * pairs)]
    polar = [(math.sqrt(-2 * math.log(u[i])), 2 * math.pi * u[pairs + i]) for i in range(pairs)]
    return ([r * math.cos(a) for r, a in polar] + [r * math.sin(a) for r, a in polar])[:n]


def haar_matrix(key: Key, d: int) -> np.ndarray:
    """H(g_0) H(g_1) .. as a product of matrices, g_k a Gaussian vector of length d - k."""
    g, matrix, start = gaussian(key, d * (d + 1) // 2), np.eye(d), 0
    for k in range(d):
        u = np.array(g[start : start + d - k])
        sign = 1.0 if u[0] >= 0 else -1.0
        u[0] += sign * math.sqrt(math.fsum(v * v for v in u))
        factor = np.eye(d)
        factor[k:, k:] = -sign * (np.eye(d - k) - 2 * np.outer(u, u) / (u @ u))
        matrix, start = matrix @ factor, start + d - k
    return matrix


def hadamard(x: list[float], words: list[int], rounds: int, forward: bool) -> list[float]:
    """The definition with scalars: signs and scale, then butterflies; back in reverse order."""
    x, d = [np.float32(v) for v in x], len(x)
    p = 2 ** (d.bit_length() - 1)
    s, per_part = np.float32(1 / math.sqrt(p)), -(-p // 32)
    starts = [start for _ in range(rounds) for start in ([0] if p == d else [0, d - p])]
    numbered = list(enumerate(starts))
    for at, start in numbered if forward else reversed(numbered):
        signed = [-s if int(words[at * per_part + i // 32]) >> (i % 32) & 1 else s for i in range(p)]
        part = [x[start + i] * (signed[i] if forward else np.float32(1)) for i in range(p)]
        h = 1
        while h < p:
            for i in range(p):
                if not i & h:
                    part[i], part[i + h] = part[i] + part[i + h], part[i] - part[i + h]
            h *= 2
        for i in range(p):
            x[start + i] = part[i] * (np.float32(1) if forward else signed[i])
    return [float(v) for v in x]


def rotated(x: list[float], key: Key, forward: bool = True, rounds: int = 4) -> list[float]:
    """x, or with ``forward=False`` its inverse image: Haar up to 64 coordinates, Hadamard rounds above."""
    d = len(x)
    if d <= 64:
        matrix = haar_matrix(key, d)
        return [math.fsum(row * x) for row in (matrix if forward else matrix.T)]
    per_round = -(-(2 ** (d.bit_length() - 1)) // 32) * (1 if d & (d - 1) == 0 else 2)
    return hadamard(x, bits32_numpy(key, rounds * per_round).tolist(), rounds, forward)
