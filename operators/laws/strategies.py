"""A Hypothesis strategy for tests of one's own: vectors with everything that breaks compressors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .kit.domain import EVERYTHING, Domain

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

SIZES = (1, 2, 7, 8, 9, 64, 1000, 4097)
LAWS = ("normal", "cauchy", "log-uniform", "ties", "layers")
SHORT = 12


def vectors(domain: Domain = EVERYTHING) -> SearchStrategy[np.ndarray]:
    """Return gradient-shaped vectors of a domain, float32, shape (d,): short ones, which shrink, and long ones.

    Zeros of either sign, ties, heavy tails, layers of different scales, tiny and huge magnitudes are among them.

    Parameters
    ----------
    domain : Domain, optional
        The vectors that count.

    Raises
    ------
    ModuleNotFoundError
        Without Hypothesis (``pip install ratedist[laws]``).
    """
    from hypothesis import strategies as st

    fitted = st.one_of(_short(), _long()).map(domain.fit)
    return fitted.filter(lambda x: x is not None)


def _short() -> SearchStrategy[np.ndarray]:
    from hypothesis import strategies as st

    entry = st.one_of(
        st.floats(-4, 4, width=32),
        st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]),
        st.floats(-(2.0**100), 2.0**100, width=32),
        st.floats(-(2.0**-120), 2.0**-120, width=32),
    )
    return st.lists(entry, min_size=1, max_size=SHORT).map(lambda v: np.array(v, np.float32))


def _long() -> SearchStrategy[np.ndarray]:
    from hypothesis import strategies as st

    @st.composite
    def long(draw: DrawFn) -> np.ndarray:
        d, law = draw(st.sampled_from(SIZES)), draw(st.sampled_from(LAWS))
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        kept = rng.random(d) < draw(st.sampled_from([1.0, 0.3, 0.02]))
        x = np.where(kept, _entries(law, d, rng), draw(st.sampled_from([0.0, -0.0])))
        return (x * draw(st.sampled_from([1.0, 2.0**-80, 2.0**60]))).astype(np.float32)

    return long()


def _entries(law: str, d: int, rng: np.random.Generator) -> np.ndarray:
    match law:
        case "normal":
            return rng.standard_normal(d)
        case "cauchy":
            return np.clip(rng.standard_cauchy(d), -1e8, 1e8)
        case "log-uniform":
            return rng.choice([-1.0, 1.0], d) * 10.0 ** rng.uniform(-30, 5, d)
        case "ties":
            return rng.integers(-2, 3, d).astype(float)
    return rng.standard_normal(d) * np.repeat(10.0 ** rng.uniform(-6, 2, -(-d // 100)), 100)[:d]
