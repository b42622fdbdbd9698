"""Compressors with memory: pure functions of a state at each end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import torch

from bounds.fields import Fields

from ..fingerprint import Fingerprint, fingerprint, require_like, require_own_state
from ..inputs import canonical_tensor
from ..key import Key
from ..message import Message
from ..operator import Operator, Size

State = Mapping[str, torch.Tensor]


class Feedback(Fields, ABC):
    """A sender and a receiver of a sequence of vectors; subclasses are frozen, final dataclasses.

    A state is a mapping of names to tensors: ``torch.save`` stores it and ``torch.load(weights_only=True)`` restores
    it.  ``state_dict`` adds a fingerprint, which ``load_state_dict`` checks.  No method changes its input state.  The
    sender starts with ``init(d)``, the receiver with ``init_receiver(d)``, which is empty if the receiver needs no
    state.

    Attributes
    ----------
    name : str
        The catalogue name ("ef").
    operator : Operator
        Operator that compresses each message.
    sources : tuple of str
        Keys in ``bounds/references.bib`` of the works that the docstring names; empty by default.
    """

    name: ClassVar[str]
    sources: ClassVar[tuple[str, ...]] = ()
    operator: Operator

    @abstractmethod
    def init(self, d: int) -> State:
        """Return the sender's state before its first message of dimension d.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """

    def init_receiver(self, d: int) -> State:
        """Return the receiver's state before its first message; empty by default.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return {}

    @abstractmethod
    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Compress the next vector; return (sender's new state, message).

        Parameters
        ----------
        state : State
            State of this end.
        x : float tensor, shape (d,)
        key : Key
            Key of the message, different at every step.

        Notes
        -----
        Raises the errors of ``Operator.encode``, and ValueError if x and the state differ in dimension.
        """

    @abstractmethod
    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Decode a message; return (receiver's new state, float32 tensor of shape (d,)).

        Raises the errors of ``Operator.decode``.

        Parameters
        ----------
        state : State
            State of this end.
        message : Message
            A message of ``encode``.
        d : int
            Number of coordinates.
        key : Key or None, optional
            Stream of random numbers.
        """

    def state_dict(self, state: State, *, d: int, key: Key | None = None) -> dict[str, Any]:
        """Return a state of either end with the fingerprint of its method, as tensors and plain values.

        Parameters
        ----------
        state : State
            State of this end.
        d : int
            Number of coordinates.
        key : Key or None, optional
            Key of the run, if loading must check it.
        """
        values = {name: value.clone() for name, value in state.items()}
        return {"fingerprint": self._fingerprint(d, key), "values": values}

    def load_state_dict(
        self, saved: Mapping[str, Any], *, d: int, key: Key | None = None, receives: bool = False
    ) -> State:
        """Return the state of a ``state_dict`` of the same method.

        Parameters
        ----------
        saved : mapping
            Result of ``state_dict``.
        d : int
            Number of coordinates.
        key : Key or None, optional
            The key given to ``state_dict``.
        receives : bool, optional
            Whether the state is the receiver's.

        Raises
        ------
        ValueError
            For a state of another method, dimension or key, with entries of other shapes or dtypes, or one that is not
            finite.
        """
        saved = require_own_state(saved, self._fingerprint(d, key), of=f"{self.name} feedback")
        values = saved["values"]
        require_like(values, self.init_receiver(d) if receives else self.init(d), f"{self.name} feedback")
        return {name: value.clone() for name, value in values.items()}

    def _fingerprint(self, d: int, key: Key | None) -> Fingerprint:
        key = key and replace(key, step=0, rank=0)
        return fingerprint({"operator": self, "d": d, "key": key})

    def bits(self, d: int) -> Size:
        """Return the length of one message at dimension d.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return self.operator.bits(d)

    def carried_bits(self, d: int) -> int:
        """Return the bits per message that only serve a simulation and do not count.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return self.operator.carried_bits(d)

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return instances that are valid for every d >= 1."""


def vector(x: torch.Tensor, state: State, name: str) -> torch.Tensor:
    """Return x as a canonical tensor; check its length against the state's tensor ``name``.

    Raises
    ------
    ValueError
        If the state's tensor ``name`` has another length.
    """
    flat = canonical_tensor(x)
    if flat.numel() != state[name].numel():
        raise ValueError(f"the state is for d = {state[name].numel()}; got x with d = {flat.numel()}: call init again")
    return flat


def beside(state: State, x: torch.Tensor) -> State:
    """Move the vectors of a state to the device of x; scalars stay on the CPU.

    A state starts on the CPU and moves to the device of the vectors with its first message.
    """
    return {name: part.to(x.device) if part.ndim else part for name, part in state.items()}
