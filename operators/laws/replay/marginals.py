"""The exact distribution of each coordinate of a separable operator, by sweeping its random word.

Every coordinate is a function of one 32-bit word.  A monotone step function is located to the last word by
bisection between the points of a grid that holds both ends, so its mean is exact.  Any other function is
integrated by the midpoint rule, whose error is at most (total variation)/(2 n) for n points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..kit.law import NotApplicable
from .recorded_words import WORD, Controlled, separate

GRID = 33
MIDPOINTS = 512
MAX_JUMPS = 8
CHECKS = 16


@dataclass(frozen=True)
class Marginals:
    """Per coordinate, shape (d,), float64: mean and mean squared error, each with its error bound; largest
    ``|value|``; and whether no random word was found on which it depends.
    """

    mean: np.ndarray
    mean_error: np.ndarray
    square: np.ndarray
    square_error: np.ndarray
    largest: np.ndarray
    constant: np.ndarray


def marginals(controlled: Controlled) -> Marginals:
    """Return the marginals of a separable operator at its vector.

    Raises
    ------
    NotApplicable
        If it is not separable.
    """
    x = controlled.x.astype(np.float64)
    if controlled.n_words == 0:
        value = controlled(np.empty(0, np.uint32))
        zero = np.zeros_like(x)
        return Marginals(value, zero, (value - x) ** 2, zero, np.abs(value), np.zeros(x.size, bool))
    word = separate(controlled)
    grid = np.linspace(0, WORD - 1, GRID).astype(np.uint64).astype(np.uint32)
    values = np.stack([_at(controlled, word, np.full(x.size, u, np.uint32)) for u in grid])
    steps = np.diff(values, axis=0)
    monotone = ((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)).all()
    if monotone and (np.count_nonzero(steps, axis=0) <= MAX_JUMPS).all():
        return _by_bisection(controlled, word, grid, values)
    return _by_midpoints(controlled, word)


def _at(controlled: Controlled, word: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return the output when coordinate i's word is own[i]; unused words are 0."""
    words = np.zeros(controlled.n_words, np.uint32)
    used = word >= 0
    words[word[used]] = own[used]
    return controlled(words)


def _by_bisection(controlled: Controlled, word: np.ndarray, grid: np.ndarray, values: np.ndarray) -> Marginals:
    """Return exact measures: value before and after every jump, with the jump located to one word."""
    d = values.shape[1]
    jumps = [np.flatnonzero(np.diff(values[:, i])).tolist() for i in range(d)]
    cuts: list[list[tuple[int, float]]] = [[] for _ in range(d)]  # (first word after the jump, value there)
    for turn in range(max(map(len, jumps), default=0)):
        active = np.array([turn < len(j) for j in jumps])
        cell = np.array([j[turn] if turn < len(j) else 0 for j in jumps])
        low, high = grid[cell].astype(np.int64), grid[np.minimum(cell + 1, GRID - 1)].astype(np.int64)
        before, after = values[cell, np.arange(d)], values[np.minimum(cell + 1, GRID - 1), np.arange(d)]
        while (active & (high - low > 1)).any():
            middle = (low + high) // 2
            outputs = _at(controlled, word, middle.astype(np.uint32))
            if (active & (outputs != before) & (outputs != after)).any():
                raise NotApplicable("a coordinate takes many values; its marginal is not a step function")
            low, high = np.where(outputs == before, middle, low), np.where(outputs == before, high, middle)
        for i in np.flatnonzero(active):
            cuts[i].append((int(high[i]), float(after[i])))
    first = values[0]
    _verify(controlled, word, first, cuts)
    return _moments(controlled.x.astype(np.float64), first, cuts, word < 0)


def _verify(controlled: Controlled, word: np.ndarray, first: np.ndarray, cuts: list[list[tuple[int, float]]]) -> None:
    """At random words the output is what the located steps say; else the operator is not separable after all."""
    for _ in range(CHECKS):
        words = controlled.random_words()
        predicted = np.array(first)
        for i, steps in enumerate(cuts):
            for position, value in steps:
                if words[word[i]] >= position:
                    predicted[i] = value
        if not np.array_equal(controlled(words), predicted):
            raise NotApplicable("the coordinates are not separate functions of one word each")


def _moments(x: np.ndarray, first: np.ndarray, cuts: list[list[tuple[int, float]]], constant: np.ndarray) -> Marginals:
    mean, square, largest = np.array(first), (first - x) ** 2, np.abs(first)
    for i, steps in enumerate(cuts):
        value = first[i]
        for position, following in steps:
            share = (WORD - position) / WORD
            mean[i] += share * (following - value)
            square[i] += share * ((following - x[i]) ** 2 - (value - x[i]) ** 2)
            largest[i] = max(largest[i], abs(following))
            value = following
    one_word = 1 / WORD
    return Marginals(mean, 4 * one_word * largest, square, 4 * one_word * largest**2, largest, constant)


def _by_midpoints(controlled: Controlled, word: np.ndarray) -> Marginals:
    x = controlled.x.astype(np.float64)
    points = ((np.arange(MIDPOINTS) + 0.5) * (WORD / MIDPOINTS)).astype(np.uint64).astype(np.uint32)
    values = np.stack([_at(controlled, word, np.full(x.size, u, np.uint32)) for u in points])
    squares = (values - x) ** 2
    if (np.count_nonzero(np.diff(values, axis=0), axis=0) < MIDPOINTS // 8).any() and word.min() >= 0:
        raise NotApplicable("a step function that is not monotone; left to enumeration and to the statistical laws")
    return Marginals(
        values.mean(axis=0), _variation(values), squares.mean(axis=0), _variation(squares), np.abs(values).max(axis=0),
        word < 0,
    )  # fmt: skip


def _variation(values: np.ndarray) -> np.ndarray:
    """Return twice the midpoint rule's error bound, with the total variation seen on the points."""
    return np.abs(np.diff(values, axis=0)).sum(axis=0) / len(values)
