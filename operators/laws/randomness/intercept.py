"""Intercept everything that can be: torch, numpy, Python's random and the words of ``operators.random``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ...key import Key
from ...random import bits32, words_from
from .numpy_draws import Generator, numpy_draws
from .python_draws import python_draws
from .source import Source
from .torch_draws import TorchDraws


@dataclass
class Facts:
    """What is known once the block is left.

    Parameters
    ----------
    resolution : float, optional
        The coarsest spacing of the uniform numbers drawn.
    """

    resolution: float = 0.0


@contextmanager
def intercepted(source: Source, generators: list[Generator]) -> Iterator[Facts]:
    """Make all draws from the source's words inside this context; ``generators`` are those of numpy to take
    along.
    """

    def of_key(key: Key, n: int, start: int) -> np.ndarray:
        words = source(("key", key), n, start)
        if words is not None:
            return words
        with words_from(None):
            return bits32(key, n, start=start)

    facts = Facts()
    torch_draws = TorchDraws(source)
    with numpy_draws(source, generators), python_draws(source), words_from(of_key), torch_draws:
        yield facts
    facts.resolution = torch_draws.resolution
