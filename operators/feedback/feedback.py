"""The contract of a compressor with memory: pure functions of a state that each end keeps for itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Self

import torch

from bounds.fields import Fields

from ..inputs import canonical_tensor
from ..key import Key
from ..message import Message
from ..operator import Operator, Size

State = Mapping[str, torch.Tensor]


class Feedback(Fields, ABC):
    """A sender and a receiver of a sequence of vectors; subclasses are frozen, final dataclasses.

    A state is a mapping of names to tensors: ``torch.save`` stores it and ``torch.load(weights_only=True)``
    restores it.  No method changes the state it is given.  The sender's state starts as ``init(d)``, the
    receiver's as ``init_receiver(d)``; a method whose receiver keeps nothing starts it empty.

    Attributes
    ----------
    name : str
        The catalogue name ("ef").
    operator : Operator
        What compresses each message.
    """

    name: ClassVar[str]
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
        """Return the receiver's state before its first message; empty unless the method needs one.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return {}

    @abstractmethod
    def encode(self, state: State, x: torch.Tensor, *, key: Key) -> tuple[State, Message]:
        """Compress the next vector: (sender's new state, message).

        Parameters
        ----------
        state : State
            What the method remembers.
        x : float tensor, shape (d,)
        key : Key
            As for the operator; give every step another one.

        Notes
        -----
        Raises what ``Operator.encode`` raises, and ValueError if x and the state differ in dimension.
        """

    @abstractmethod
    def decode(self, state: State, message: Message, *, d: int, key: Key | None = None) -> tuple[State, torch.Tensor]:
        """Rebuild: (receiver's new state, float32 tensor of shape (d,)).  Raises what ``Operator.decode`` raises.

        Parameters
        ----------
        state : State
            What the method remembers.
        message : Message
            A message of ``encode``.
        d : int
            Number of coordinates.
        key : Key or None, optional
            Stream of random numbers.
        """

    def bits(self, d: int) -> Size:
        """Return length of one message at dimension d.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return self.operator.bits(d)

    def carried_bits(self, d: int) -> int:
        """Return how many bits of every message do not count, as for the operator.

        Parameters
        ----------
        d : int
            Number of coordinates.
        """
        return self.operator.carried_bits(d)

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return instances valid for every d >= 1."""


def vector(x: torch.Tensor, state: State, name: str) -> torch.Tensor:
    """Return x as ``canonical_tensor`` does.

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
    """Return the state with its vectors on the device of x, copied only if they lie elsewhere; numbers stay.

    A state begins on the CPU, and is from its first message on where the vectors are.
    """
    return {name: part.to(x.device) if part.ndim else part for name, part in state.items()}
