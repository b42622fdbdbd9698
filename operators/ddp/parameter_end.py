"""One end of the messages of one rank: what it sends of one shard of every parameter, and what it remembers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..bits.bitstream import join_messages, split_messages
from ..exchange.channel import stage_key
from ..feedback.feedback import Feedback, State
from ..key import Key
from ..message import Message
from .layout import Layout, joined
from .parameter_states import StatesByParameter


class ParameterEnd:
    """One end of the messages of one rank about one shard of every parameter.

    Parameters
    ----------
    layout : Layout
        How gradients are compressed.
    sizes : mapping of str to int
        Entries of the shard of every parameter, by name; those that have none are left out.
    stage : int
        As in ``operators.exchange.channel``.
    rank : int
        Who sends.
    shard : int
        Whose shard it is.
    receives : bool
        Which end this is.
    """

    def __init__(
        self, layout: Layout, sizes: Mapping[str, int], *, stage: int, rank: int, shard: int, receives: bool
    ) -> None:
        self._layout, self._address = layout, (stage, shard, rank)
        self.sizes = {name: size for name, size in sizes.items() if size}
        self._exact: dict[str, tuple[Feedback, int | None]] = {}
        self._of_bucket: dict[tuple[str, ...], int | None] = {}

        def initial(name: str) -> State:
            method = self._method([name])
            return method.init_receiver(self.sizes[name]) if receives else method.init(self.sizes[name])

        self.states = StatesByParameter(initial, self.sizes)

    def of(self, names: Sequence[str]) -> BucketEnd:
        """Return this end for the parameters of a bucket.

        Parameters
        ----------
        names : sequence of str
            Theirs, in the order in which they are laid end to end.
        """
        return BucketEnd(self, [name for name in names if name in self.sizes])

    def units(self, names: Sequence[str]) -> Iterator[tuple[list[str], int]]:
        """Return what is compressed as one vector: names, and how many entries they have together.

        Parameters
        ----------
        names : sequence of str
            The parameters of a bucket.
        """
        if self._layout.layerwise:
            yield from (([name], self.sizes[name]) for name in names)
        elif names:
            yield list(names), sum(self.sizes[name] for name in names)

    def encode(self, names: Sequence[str], x: torch.Tensor, step: int) -> Message:
        """Return the message of one unit.

        Parameters
        ----------
        names : sequence of str
            Its parameters.
        x : tensor, shape (d,)
            Its entries.
        step : int
            Number of the exchange.
        """
        state, message = self._method(names).encode(self.states.read(names), x, key=self._key(names, step))
        self.states.write(names, state)
        return message

    def decode(self, names: Sequence[str], message: Message, d: int, step: int) -> torch.Tensor:
        """Return the entries of one unit.

        Parameters
        ----------
        names : sequence of str
            Its parameters.
        message : Message
            Of the sender's end.
        d : int
            Number of coordinates.
        step : int
            Number of the exchange.
        """
        key = self._key(names, step)
        state, decoded = self._method(names).decode(self.states.read(names), message, d=d, key=key)
        self.states.write(names, state)
        return decoded

    def exact_bits(self, name: str) -> int | None:
        """Return the length of a parameter's message where it is known beforehand.

        Parameters
        ----------
        name : str
            The parameter.
        """
        method, (former, exact) = self._method([name]), self._exact.get(name, (None, None))
        if former is not method:  # an allocation gives a parameter another method
            exact = method.bits(self.sizes[name]).exact
            self._exact[name] = method, exact
        return exact

    def exact_bits_of(self, names: Sequence[str]) -> int | None:
        """Return the length of a bucket's message where it is known beforehand.

        Parameters
        ----------
        names : sequence of str
            The bucket's parameters that have entries in the shard.
        """
        if self._layout.layerwise:
            lengths = [self.exact_bits(name) for name in names]
            return None if None in lengths else sum(length for length in lengths if length is not None)
        bucket = tuple(names)
        if bucket not in self._of_bucket:
            exact = [self._method(unit).bits(d).exact for unit, d in self.units(names)]
            self._of_bucket[bucket] = None if None in exact else sum(bits for bits in exact if bits is not None)
        return self._of_bucket[bucket]

    def carried_bits(self, names: Sequence[str], d: int) -> int:
        """Return how many bits of the message of one unit do not count.

        Parameters
        ----------
        names : sequence of str
            Its parameters.
        d : int
            Number of coordinates.
        """
        return self._method(names).carried_bits(d)

    def _method(self, names: Sequence[str]) -> Feedback:
        return self._layout.of_parameter(names[0]) if self._layout.layerwise else self._layout.method

    def _key(self, names: Sequence[str], step: int) -> Key:
        stage, shard, rank = self._address
        sent = stage_key(self._layout.key, stage, shard, step=step, rank=rank)
        return sent.fold_in(self._layout.numbers[names[0]])


@dataclass(frozen=True)
class BucketEnd:
    """An end for the parameters of one bucket.

    Parameters
    ----------
    end : ParameterEnd
        Of all parameters.
    names : list of str
        Those of the bucket that have entries in the shard.
    """

    end: ParameterEnd
    names: list[str]

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return sum(self.end.sizes[name] for name in self.names)

    def encode(self, x: torch.Tensor, step: Any) -> Message:
        """Return the message of a step.

        Parameters
        ----------
        x : tensor, shape (d,)
            The entries, parameter after parameter.
        step : int
            Number of the exchange.
        """
        units = list(self.end.units(self.names))
        parts = x.split([d for _, d in units])
        messages = [self.end.encode(names, part, step) for (names, _), part in zip(units, parts, strict=True)]
        if not messages:
            return Message(torch.empty(0, dtype=torch.uint8), 0)
        if not self.end._layout.layerwise:
            return messages[0]
        together = torch.cat([message.payload for message in messages])  # to the host at once, where bits are joined
        payloads = np.split(together.cpu().numpy(), np.cumsum([message.nbytes for message in messages])[:-1])
        fields = [(payload, message.bits) for payload, message in zip(payloads, messages, strict=True)]
        payload, bits = join_messages(fields, self._exact())
        return Message(torch.from_numpy(payload).to(together.device), bits)

    def decode(self, message: Message, step: Any) -> torch.Tensor:
        """Return what a message of a step says, float32, shape (d,).

        Parameters
        ----------
        message : Message
            From the sender's end.
        step : int
            Number of the exchange.

        Raises
        ------
        CorruptMessage
            For a damaged message.
        """
        messages = self._cut(message) if self.end._layout.layerwise or not self.names else [message]
        units = zip(self.end.units(self.names), messages, strict=True)
        return joined([self.end.decode(names, part, d, step) for (names, d), part in units])

    @property
    def carried_bits(self) -> int:
        """How many bits of a message do not count."""
        return sum(self.end.carried_bits(names, d) for names, d in self.end.units(self.names))

    @property
    def exact_bits(self) -> int | None:
        """The length of a message, in bits, where all ranks know it beforehand."""
        return self.end.exact_bits_of(self.names)

    def _cut(self, message: Message) -> list[Message]:
        """Return the messages of the parameters, which the host cuts out of the bits of one, and sends back at once."""
        cuts = split_messages(message.payload.cpu().numpy(), message.bits, self._exact())
        if not cuts:
            return []
        payload = torch.from_numpy(np.concatenate([part for part, _ in cuts])).to(message.payload.device)
        parts = payload.split([part.size for part, _ in cuts])
        return [Message(part, bits) for part, (_, bits) in zip(parts, cuts, strict=True)]

    def _exact(self) -> list[int | None]:
        return [self.end.exact_bits(name) for name in self.names]
