"""Aggregation: n messages of the workers in, one message for all of them out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

import numpy as np
import torch

from bounds.claims import Claim, NoClaim
from bounds.fields import Fields

from ..inputs import rows_of
from ..key import Key
from ..message import Message
from ..operator import Operator, require_memory

Topology = Literal["star", "tree"]


class Aggregate(Fields, ABC):
    """The workers' messages, their merging and the result; subclasses are frozen, final dataclasses.

    Each worker sends ``uplink.encode(x, key=its own key)``.  ``merge`` returns one message, which every worker decodes
    with ``downlink`` and the key ``server_key(keys)``.  Workers are ordered by their place in the sequence, and a merge
    depends on nothing else.

    Attributes
    ----------
    name : str
        The catalogue name ("majority_vote").
    topology : Topology
        "star" (a server sees all messages) or "tree" (pairs are merged, in the order of the workers).
    sources : tuple of str
        Keys in ``bounds/references.bib`` of the works that the docstring names; empty by default.

    Notes
    -----
    A method for exactly n workers has an attribute ``workers`` = n; the laws then test this number only.
    """

    name: ClassVar[str]
    sources: ClassVar[tuple[str, ...]] = ()
    topology: ClassVar[Topology]

    @property
    @abstractmethod
    def uplink(self) -> Operator:
        """Operator of the workers' messages."""

    @property
    @abstractmethod
    def downlink(self) -> Operator:
        """Operator of the merged message."""

    @abstractmethod
    def merge(self, messages: Sequence[Message], *, d: int, keys: Sequence[Key]) -> Message:
        """Merge n >= 1 messages, in the order of the workers, into one.

        Parameters
        ----------
        messages : sequence of Message
            One message per worker, in their order.
        d : int
            Number of coordinates.
        keys : sequence of Key
            The n encoders' keys.

        Raises
        ------
        ValueError
            For no message or another number of keys.
        CorruptMessage
            For a damaged message.
        """

    def claim_mean(self, d: int, n: int) -> Claim:
        """Return the claimed error of the decoded merge as an estimate of the mean of n vectors x_i.

        The constants multiply the mean energy ``(1/n) sum |x_i|^2`` and assume randomness that is independent between
        the workers.

        Parameters
        ----------
        d : int
            Number of coordinates.
        n : int
            Number of workers.
        """
        return NoClaim(f"{self.name} does not estimate the mean")

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return instances that are valid for every d >= 1 and n >= 1."""

    def decoded(self, messages: Sequence[Message], d: int, keys: Sequence[Key]) -> np.ndarray:
        """Return the decoded vectors of the workers: float32 array, shape (n, d).

        Parameters
        ----------
        messages : sequence of Message
            One message per worker, in their order.
        d : int
            Number of coordinates.
        keys : sequence of Key
            One stream per worker.
        """
        check(messages, keys)
        require_memory(d)
        return self.uplink.decode_rows(messages, d=d, keys=keys).cpu().numpy()

    def round(self, vectors: Sequence[torch.Tensor], *, keys: Sequence[Key]) -> torch.Tensor:
        """Encode at every worker, merge and decode: float32 tensor, shape (d,).

        Parameters
        ----------
        vectors : sequence of tensor
            One vector per worker, shape (n, d).
        keys : sequence of Key
            One stream per worker.
        """
        rows = torch.stack(rows_of(vectors))
        messages, d = self.uplink.encode_rows(rows, keys=keys), rows.shape[1]
        return self.downlink.decode(self.merge(messages, d=d, keys=keys), d=d, key=server_key(keys))


def server_key(keys: Sequence[Key]) -> Key:
    """Return the stream of the server: shared by all ranks, independent of every worker's."""
    return keys[0].shared().fold_in(0)


def check(messages: Sequence[Message], keys: Sequence[Key]) -> None:
    """Raise ValueError unless there are as many keys as messages, and at least one."""
    if not messages or len(messages) != len(keys):
        raise ValueError(f"give n >= 1 messages and as many keys; got {len(messages)} and {len(keys)}")
