"""The rounds of several vectors side by side, so that one exchange carries a round of all."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from ..feedback.feedback import State
from .summed import Rounds, Sums
from .terms import Terms


def together(rounds: Sequence[Rounds]) -> Generator[tuple[Terms, ...], Sums, list[tuple[State, np.ndarray]]]:
    """Return rounds that carry those of several vectors; one that needs fewer is silent in the last ones.

    Parameters
    ----------
    rounds : sequence of Rounds
        Of each vector.

    Returns
    -------
    generator
        Yields the terms of all, is sent their sums, and returns (state, mean) of each vector, in order.
    """
    results: dict[int, tuple[State, np.ndarray]] = {}
    waiting: dict[int, tuple[Terms, ...]] = {}
    answers: dict[int, Sums | None] = dict.fromkeys(range(len(rounds)))
    while True:
        for i, answer in answers.items():
            try:
                waiting[i] = next(rounds[i]) if answer is None else rounds[i].send(answer)
            except StopIteration as stop:
                results[i] = stop.value
                waiting.pop(i, None)
        if not waiting:
            return [results[i] for i in range(len(rounds))]
        sums = yield tuple(terms for part in waiting.values() for terms in part)
        values = iter(sums.values)
        answers = {i: Sums(tuple(next(values) for _ in part), sums.members) for i, part in waiting.items()}
