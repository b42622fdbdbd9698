"""One rank's end of a sum over the owners of shards: packed terms to them, packed sums back, round after round."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from ..exchange.channel import naming
from ..exchange.choice import lengths, shards
from ..inputs import canonical
from ..key import Key
from ..message import CorruptMessage, Message
from .summed import Rounds, Summed, Sums, Terms


class Exchange:
    """The messages of a generator of rounds: ``outgoing`` for the owners until it is ``over`` and ``result`` is there.

    Parameters
    ----------
    rounds : generator
        Yields terms, is sent sums, returns the result.
    m : int
        Number of ranks.
    rank : int
        Whose shard is summed here.
    """

    def __init__(self, rounds: Generator[tuple[Terms, ...], Sums, Any], *, m: int, rank: int) -> None:
        self._rounds, self._m, self._rank = rounds, m, rank
        self.result: Any = None
        self.over = False
        self.terms: tuple[Terms, ...] = ()
        self.advance(None)

    @property
    def outgoing(self) -> list[Message]:
        """This rank's terms of the round, one message for each owner."""
        cuts = [shards(terms.values.size, self._m) for terms in self.terms]
        return [
            _message([(t, t.values[cut[owner]]) for t, cut in zip(self.terms, cuts, strict=True)])
            for owner in range(self._m)
        ]

    def merge(self, messages: Mapping[int, Message], members: Iterable[int]) -> Message:
        """Return the sums of this rank's shard, for all.

        Parameters
        ----------
        messages : mapping of int to Message
            The terms that have come, by sender.
        members : iterable of int
            The ranks that are added up, in rank order.

        Raises
        ------
        CorruptMessage
            That names the rank, for a message of another length.
        """
        rows = []
        for rank in members:
            with naming("shard", rank):
                rows.append(self._read(messages[rank], self._rank))
        return _message([(t, t.total([row[i] for row in rows])) for i, t in enumerate(self.terms)])

    def receive(self, messages: Sequence[Message], members: int) -> None:
        """Go on with the sums of all shards; the next round is then in ``outgoing``, or the result is there.

        Parameters
        ----------
        messages : sequence of Message
            Of the owners, in rank order.
        members : int
            How many ranks have been added up.

        Raises
        ------
        CorruptMessage
            For a message of another length.
        """
        parts = [self._read(message, owner) for owner, message in enumerate(messages)]
        values = tuple(np.concatenate([part[i] for part in parts]) for i in range(len(self.terms)))
        self.advance(Sums(values, members))

    def advance(self, sums: Sums | None) -> None:
        """Begin, or go on with the sums of the round.

        Parameters
        ----------
        sums : Sums or None
            None to begin.
        """
        try:
            self.terms = next(self._rounds) if sums is None else self._rounds.send(sums)
        except StopIteration as stop:
            self.result, self.over = stop.value, True

    def _read(self, message: Message, owner: int) -> list[np.ndarray]:
        counts = [lengths(t.values.size, self._m)[owner] for t in self.terms]
        ends = list(accumulate(t.nbytes(n) for t, n in zip(self.terms, counts, strict=True)))
        payload = message.payload.cpu().numpy()
        if payload.size != ends[-1]:
            raise CorruptMessage(f"the terms of a shard take {ends[-1]} bytes; got {payload.size}")
        pieces = np.split(payload, ends[:-1])
        return [t.unpack(piece, n) for t, piece, n in zip(self.terms, pieces, counts, strict=True)]


def _message(parts: Sequence[tuple[Terms, np.ndarray]]) -> Message:
    """Return packed numbers one after the other, each from a whole byte on."""
    payload = np.concatenate([terms.pack(values) for terms, values in parts])
    terms, last = parts[-1]
    return Message(torch.from_numpy(payload), 8 * (payload.size - terms.nbytes(last.size)) + last.size * terms.width)


class SumEnd:
    """One rank's end for vectors of one length, with its memory.

    Parameters
    ----------
    method : Summed
        What is summed.
    key : Key
        Of the run; step and rank are filled in.
    rank : int
        Whose end.
    m : int
        Number of ranks.
    d : int
        Number of coordinates.

    Attributes
    ----------
    state : State
        What the rank remembers.
    """

    def __init__(self, method: Summed, key: Key, *, rank: int, m: int, d: int) -> None:
        self.method, self.state, self.d = method, method.init(d), d
        self._key, self._rank, self._m = key, rank, m
        self._exchange: Exchange | None = None

    def encode(self, x: torch.Tensor | np.ndarray, step: int) -> list[Message]:
        """Begin an exchange as one of its members: the first messages, one for every owner.

        Parameters
        ----------
        x : tensor or ndarray, shape (d,)
            This rank's vector.
        step : int
            Number of the exchange.

        Raises
        ------
        ValueError
            For a vector that is not finite.
        """
        return self.begin(x, step).outgoing

    def begin(self, x: torch.Tensor | np.ndarray, step: int) -> Exchange:
        """Return the exchange that ``encode`` begins.

        Parameters
        ----------
        x : tensor or ndarray, shape (d,)
            This rank's vector.
        step : int
            Number of the exchange.
        """
        return self._start(self.rounds(canonical(x), step, member=True))

    def follow(self, step: int) -> Exchange:
        """Begin an exchange in which this rank reads the sums only.

        Parameters
        ----------
        step : int
            Number of the exchange.
        """
        return self._start(self.rounds(np.zeros(self.d, np.float32), step, member=False))

    def rounds(self, x: np.ndarray, step: int, *, member: bool) -> Rounds:
        """Return the rounds of an exchange.

        Parameters
        ----------
        x : ndarray, shape (d,)
            This rank's vector, float32 and finite.
        step : int
            Number of the exchange.
        member : bool
            Whether its terms are added.
        """
        key = replace(self._key, step=step, rank=self._rank)
        return self.method.rounds(self.state, x, key=key, m=self._m, member=member)

    def _start(self, rounds: Rounds) -> Exchange:
        self._exchange = Exchange(rounds, m=self._m, rank=self._rank)
        return self._exchange

    @property
    def exchange(self) -> Exchange:
        """The exchange that has begun."""
        assert self._exchange is not None  # encode or follow comes first
        return self._exchange

    def mean(self) -> np.ndarray:
        """Return the mean of the exchange that is over, float32, shape (d,), and keep the new state."""
        self.state, mean = self.exchange.result
        self._exchange = None
        return mean
