"""States of a feedback method kept parameter by parameter, so that they survive another grouping of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch

from ..feedback.feedback import Feedback, State
from ..fingerprint import require_like


class StatesByParameter:
    """One end's state, cut along parameters; a group of parameters reads and writes the state of its concatenation.

    Parameters
    ----------
    initial : callable
        The state of a parameter before its first message, by name.
    sizes : mapping of str to int
        Entries of each, by name.

    Notes
    -----
    A group of several parameters needs a method whose states are vectors with an entry a coordinate, or scalars
    (see ``is_coordinatewise``); a group of one may keep anything.
    """

    def __init__(self, initial: Callable[[str], State], sizes: Mapping[str, int]) -> None:
        self._initial, self._sizes = initial, sizes
        self._states: dict[str, State] = {}

    def read(self, names: Sequence[str]) -> State:
        """Return the state of the parameters, one after the other."""
        parts = [self._states[name] if name in self._states else self._initial(name) for name in names]
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        return {entry: torch.cat([p[entry] for p in parts]) if first[entry].ndim else first[entry] for entry in first}

    def write(self, names: Sequence[str], state: State) -> None:
        """Keep the state of the parameters, one after the other."""
        if len(names) == 1:
            self._states[names[0]] = state
            return
        sizes = [self._sizes[name] for name in names]
        pieces = {entry: value.split(sizes) if value.ndim else [value] * len(names) for entry, value in state.items()}
        for i, name in enumerate(names):
            self._states[name] = {entry: piece[i] for entry, piece in pieces.items()}

    def kept(self) -> dict[str, State]:
        """Return all states for ``put_back``; nothing is copied, for states are replaced and never written to."""
        return dict(self._states)

    def put_back(self, states: Mapping[str, State]) -> None:
        """Restore the states that ``kept`` gave."""
        self._states = dict(states)

    def to_dict(self) -> dict[str, dict[str, torch.Tensor]]:
        """Return all states, parameter -> entry -> tensor; copies."""
        return {name: {entry: value.clone() for entry, value in s.items()} for name, s in self._states.items()}

    def load_dict(self, states: Mapping[str, State]) -> None:
        """The inverse of ``to_dict``.

        Raises
        ------
        ValueError
            For a parameter that is unknown, or whose state has other entries, shapes or dtypes, or is not finite.
        """
        for name, state in states.items():
            if name not in self._sizes:
                raise ValueError(f"the saved state has a parameter {name!r}; this model has none of that name")
            require_like(state, self._initial(name), repr(name))
        self._states = {name: {entry: value.clone() for entry, value in s.items()} for name, s in states.items()}


def is_coordinatewise(feedback: Feedback, d: int) -> bool:
    """Return whether the states of both ends are vectors with an entry a coordinate, or scalars, at dimension d."""
    states = (feedback.init(d), feedback.init_receiver(d))
    return all(value.ndim == 0 or value.shape == (d,) for state in states for value in state.values())


def fitted(method: Feedback, shape: torch.Size) -> Feedback:
    """Return the method for one parameter: where it, or its operator, takes a matrix ``shape`` and has None, the
    parameter's.

    A parameter of several dimensions is a matrix with as many rows as its first; one of fewer is a column.
    """
    if not shape.numel():
        return method
    rows = shape[0] if len(shape) else 1
    matrix = rows, shape.numel() // rows
    if getattr(method, "shape", matrix) is None:
        return replace(cast(Any, method), shape=matrix)
    if getattr(method.operator, "shape", matrix) is None:
        return replace(cast(Any, method), operator=replace(cast(Any, method.operator), shape=matrix))
    return method
