"""The rates of TCDQ that cost least, for every way of its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from .choosing import Asked, Way, choice_of, sent
from .ranking import Choice

OMEGAS = tuple(2.0**k for k in range(-10, 5))
SWEEPS = 3


def best_rates(asked: Asked) -> list[Choice]:
    """Return TCDQ at the rates that cost least: gathered, and in two shots with a rate for each stage, on every level.

    Rates on a grid of factors of two in omega; those of two shots in turns, from equal ones.

    Parameters
    ----------
    asked : Asked
        The plan.
    """
    from operators import TCDQ

    choices = []
    for kind in asked.exchanges:
        if kind == "gather":
            choices.append(_least(asked, lambda omega: choice_of(TCDQ(omega), replace(asked, exchange="gather")))[0])
        elif kind == "node_gather":
            choices.append(_least(asked, lambda omega: sent("node_gather", TCDQ(omega), TCDQ(omega), asked))[0])
        else:
            choices.append(_of_both_stages(partial(_shots, asked, kind), asked))
    return choices


def _shots(asked: Asked, kind: Way, first: float, second: float) -> Choice:
    from operators import TCDQ

    return sent(kind, TCDQ(first), TCDQ(second), asked)


def _of_both_stages(shots: Callable[[float, float], Choice], asked: Asked) -> Choice:
    best, first = _least(asked, lambda omega: shots(omega, omega))
    second = first
    for _ in range(SWEEPS):
        before = first, second
        near = _near(first), _near(second)
        best, second = _least(asked, lambda omega, first=first: shots(first, omega), near[1])  # type: ignore[misc]
        best, first = _least(asked, lambda omega, second=second: shots(omega, second), near[0])  # type: ignore[misc]
        if (first, second) == before:
            break
    return best


def _least(
    asked: Asked, candidate: Callable[[float], Choice], omegas: tuple[float, ...] = OMEGAS
) -> tuple[Choice, float]:
    tried = [(candidate(omega), omega) for omega in omegas]
    feasible = [pair for pair in tried if pair[0].feasible]
    return min(feasible, key=lambda pair: asked.cost(pair[0])) if feasible else tried[0]


def _near(omega: float) -> tuple[float, ...]:
    """Return the rates of the grid within a factor of 16."""
    return tuple(other for other in OMEGAS if omega / 16 <= other <= 16 * omega)
