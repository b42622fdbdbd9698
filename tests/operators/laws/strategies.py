"""Hypothesis strategies: gradient-shaped vectors with everything that breaks compressors."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

SIZES = (1, 2, 7, 8, 9, 64, 1000, 4097)
SUBNORMAL = 2.0**-149


def entries() -> st.SearchStrategy[float]:
    """One coordinate: ordinary, tied, zero of either sign, tiny or huge, within the claims' range or below it."""
    return st.one_of(
        st.floats(-4, 4, width=32),
        st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]),
        st.floats(-(2.0**100), 2.0**100, width=32),
        st.floats(-(2.0**-120), 2.0**-120, width=32),
    )


def short_vectors(most: int = 12) -> st.SearchStrategy[np.ndarray]:
    """Vectors of a few freely drawn coordinates, which Hypothesis can shrink entry by entry."""
    return st.lists(entries(), min_size=1, max_size=most).map(lambda v: np.array(v, np.float32))


@st.composite
def long_vectors(draw: st.DrawFn) -> np.ndarray:
    """Vectors of a catalogue size: law of the entries, sparsity, ties and scale are drawn, the noise is seeded."""
    d = draw(st.sampled_from(SIZES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    match draw(st.sampled_from(["normal", "cauchy", "log-uniform", "ties", "layers"])):
        case "normal":
            x = rng.standard_normal(d)
        case "cauchy":
            x = np.clip(rng.standard_cauchy(d), -1e8, 1e8)
        case "log-uniform":
            x = rng.choice([-1.0, 1.0], d) * 10.0 ** rng.uniform(-30, 5, d)
        case "ties":
            x = rng.integers(-2, 3, d).astype(float)
        case _:
            x = rng.standard_normal(d) * np.repeat(10.0 ** rng.uniform(-6, 2, -(-d // 100)), 100)[:d]
    x = np.where(rng.random(d) < draw(st.sampled_from([1.0, 0.3, 0.02])), x, draw(st.sampled_from([0.0, -0.0])))
    scale = draw(st.sampled_from([1.0, 2.0**-80, 2.0**60]))
    return (x * scale).astype(np.float32)


def gradients() -> st.SearchStrategy[np.ndarray]:
    """Short and long gradient-shaped vectors, float32, shape (d,), finite, at most 2^100."""
    return st.one_of(short_vectors(), long_vectors())


def in_range(x: np.ndarray) -> bool:
    """Whether claims hold for x: 2^-126 <= max|x| <= 2^100."""
    return bool(2.0**-126 <= np.abs(x).max() <= 2.0**100)
