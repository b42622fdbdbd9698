"""Who supplies the words: the agreement between what intercepts draws and what chooses the numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import numpy as np

ORDER = 0  # only the order of the words of a draw matters


class Uninterceptable(Exception):  # noqa: N818  caught inside the kit
    """A draw was made that cannot be chosen; the message names it."""


class Source(Protocol):
    """Supplies words to the draws of one call.

    Each method returns None where the generator is to be left alone.
    """

    def __call__(self, root: Hashable, n: int, start: int, kind: int | None = None) -> np.ndarray | None:
        """Return words start ... start + n - 1 of a stream, uint32, shape (n,).

        Parameters
        ----------
        root : Hashable
            Identifies the stream.
        kind : int or None, optional
            r if only the word's place among r equal cells matters, ORDER if only the order does, None if unknown.
        """

    def lend(self, root: Hashable, capacity: int) -> np.ndarray | None:
        """Return the first words of a stream, uint32, at most ``capacity``, where it is not known how many will be
        read.
        """

    def returned(self, root: Hashable, used: int) -> None:
        """How many of the lent words were read."""


class Cursor:
    """Where a generator stands in its stream, known by its state: a state seen before continues where it stood."""

    def __init__(self) -> None:
        self._at: dict[Hashable, tuple[Hashable, int]] = {}

    def at(self, state: Hashable) -> tuple[Hashable, int]:
        """Return (root, position) of a generator in this state; a new state is a root at position 0."""
        return self._at.get(state, (state, 0))

    def moved(self, state: Hashable, root: Hashable, position: int) -> None:
        """After a draw the generator is in ``state``, at ``position`` of the stream ``root``."""
        self._at[state] = (root, position)
