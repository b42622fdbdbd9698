"""QUIC-FL's unbiased sender in plain Python and exact fractions."""

from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

from operators.quantisers.shared_rounding import shared_grid


@dataclass(frozen=True)
class Move:
    """Between the mean levels ``low`` and ``high`` only h is undecided, between its code and the next.

    ``codes`` are those of all h at ``low``; the squares are the mean squares of the level at both ends.
    """

    low: Fraction | float
    high: Fraction | float
    square_low: Fraction | float
    square_high: Fraction | float
    h: int
    codes: tuple[int, ...]


@cache
def moves(bits: int) -> tuple[Move, ...]:
    """All moves from the lowest codes to the highest: the h whose next middle is lowest moves first."""
    levels = [[Fraction(float(r)) for r in row] for row in shared_grid(bits).levels]
    count, width = len(levels), len(levels[0])
    codes, found = [0] * count, []
    mean, square = sum(row[0] for row in levels) / count, sum(row[0] ** 2 for row in levels) / count
    for _ in range(count * (width - 1)):
        h = min(
            (h for h in range(count) if codes[h] < width - 1),
            key=lambda h: levels[h][codes[h]] + levels[h][codes[h] + 1],
        )
        old, new = levels[h][codes[h]], levels[h][codes[h] + 1]
        high, square_high = mean + (new - old) / count, square + (new**2 - old**2) / count
        found.append(Move(mean, high, square, square_high, h, tuple(codes)))
        mean, square = high, square_high
        codes[h] += 1
    return tuple(found)


@cache
def _rounded(bits: int) -> tuple[Move, ...]:
    names = "low", "high", "square_low", "square_high"
    return tuple(replace(move, **{name: float(getattr(move, name)) for name in names}) for move in moves(bits))


def move_of(bits: int, v: float) -> Move:
    """The move whose interval holds v, in binary64; the first or the last one for numbers beyond."""
    found = _rounded(bits)
    return found[min(bisect_left(found, v, key=lambda move: move.high), len(found) - 1)]
