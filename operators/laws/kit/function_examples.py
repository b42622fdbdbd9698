"""The vectors on which the exact laws try a function: the most telling first, until the time is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from .clock import work_s
from .examples import Example, drawn, ramps, structured

RAMPS = 3
LEAST, MOST = 2, 20  # vectors: however long they take, and however much time there is


def function_examples(sizes: Iterable[int], long: Iterable[int], rng: np.random.Generator) -> Iterator[Example]:
    """Return ramps, vectors drawn from the largest of ``sizes`` on, structured ones, and one at each of ``long``."""
    descending = sorted(sizes, reverse=True)
    for d in descending[:1]:
        yield from drawn(d, 1, rng)
        yield from ramps(d, RAMPS, rng)
    for d in descending:
        yield from drawn(d, 2, rng)
    most = max(descending, default=0)
    for d in (size for size in long if size > most):
        yield from drawn(d, 1, rng)
    yield from chain.from_iterable(structured(d) for d in descending[:1])


def in_time(examples: Iterator[Example], seconds: float, most: int = MOST) -> Iterator[Example]:
    """Return the examples until the seconds are over: at least LEAST of them, at most ``most`` and never above MOST."""
    end, most = work_s() + seconds, min(most, MOST)
    for number, example in enumerate(examples):
        if number >= most or (number >= LEAST and work_s() > end):
            return
        yield example
