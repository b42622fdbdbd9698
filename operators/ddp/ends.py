"""The two ends of an exchange in the hook: what a rank sends of a bucket, and what it makes of the messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch

from ..bits.bitstream import join_messages, split_messages
from ..exchange.channel import FROM_OWNER, GATHERED, TO_OWNER, stage_key
from ..exchange.choice import lengths
from ..exchange.ordered_mean import ordered_mean
from ..exchange.two_shot import from_owners, merge, to_owners
from ..feedback.feedback import Feedback, State
from ..fingerprint import require_like
from ..key import Key
from ..message import Message
from .bucket import Layout, joined

# States of a feedback method kept parameter by parameter, so that they survive another grouping of the parameters.


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


# One end of the messages of one rank: what it sends of one shard of every parameter, and what it remembers.


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


# A rank's ends where every rank sends its message to all.


class GatherEnds:
    """This rank's ends where every rank sends its message to all.

    Parameters
    ----------
    layout : Layout
        How gradients are compressed.
    sizes : mapping of str to int
        Entries of every parameter.
    rank : int
        This one.
    m : int
        Number of ranks.
    """

    def __init__(self, layout: Layout, sizes: Mapping[str, int], *, rank: int, m: int) -> None:
        def end(sender: int, receives: bool) -> ParameterEnd:
            return ParameterEnd(layout, sizes, stage=GATHERED, rank=sender, shard=0, receives=receives)

        self._sender, self._receivers = end(rank, False), [end(sender, True) for sender in range(m)]

    def encode(self, names: Sequence[str], parts: Sequence[torch.Tensor], step: int) -> Message:
        """Return this rank's message of a bucket.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        parts : sequence of tensor
            Their gradients, flat, float32 and finite.
        step : int
            Number of the exchange.
        """
        return self._sender.of(names).encode(joined(parts), step)

    def exact_bits(self, names: Sequence[str]) -> list[int] | None:
        """Return the lengths of all ranks' messages of a bucket, None where nobody knows them beforehand.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        """
        bits = self._sender.of(names).exact_bits
        return None if bits is None else [bits] * len(self._receivers)

    def carried_bits(self, names: Sequence[str]) -> int:
        """Return how many bits of this rank's message of a bucket do not count.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        """
        return self._sender.of(names).carried_bits

    def mean(self, messages: Sequence[Message], names: Sequence[str], step: int) -> list[torch.Tensor]:
        """Return the mean gradient of each parameter, flat, summed in rank order in float64.

        Parameters
        ----------
        messages : sequence of Message
            One of every rank, in rank order.
        names : sequence of str
            Of the bucket's parameters.
        step : int
            Number of the exchange.
        """
        if not names:
            return []
        arrived = zip(self._receivers, messages, strict=True)
        mean = ordered_mean(receiver.of(names).decode(message, step) for receiver, message in arrived)
        return list(mean.split([self._sender.sizes.get(name, 0) for name in names]))

    def kept(self) -> list[dict[str, Any]]:
        """Return what is remembered, for ``put_back``; nothing is copied."""
        return [end.states.kept() for end in (self._sender, *self._receivers)]

    def put_back(self, kept: Sequence[dict[str, Any]]) -> None:
        """Remember what ``kept`` gave.

        Parameters
        ----------
        kept : sequence of dict
            What it gave.
        """
        for end, states in zip((self._sender, *self._receivers), kept, strict=True):
            end.states.put_back(states)

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered: tensors only."""
        return {"sender": self._sender.states.to_dict(), "receivers": [r.states.to_dict() for r in self._receivers]}

    def load_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``to_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What it gave.
        """
        self._sender.states.load_dict(state["sender"])
        for receiver, saved in zip(self._receivers, state["receivers"], strict=True):
            receiver.states.load_dict(saved)


# A rank's ends of an exchange of gradients in two shots.
#
# A shard is cut out of every parameter, so that an entry has the same owner whatever bucket it travels in.


class TwoShotEnds:
    """This rank's ends of an exchange in two shots.

    Parameters
    ----------
    first : Layout
        How shards are compressed for their owners.
    second : Layout
        How their means are compressed for all.
    sizes : mapping of str to int
        Entries of every parameter.
    rank : int
        This one.
    m : int
        Number of ranks.
    """

    def __init__(self, first: Layout, second: Layout, sizes: Mapping[str, int], *, rank: int, m: int) -> None:
        cut = {name: lengths(size, m) for name, size in sizes.items()}

        def end(stage: int, sender: int, owner: int, receives: bool) -> ParameterEnd:
            shard = {name: pieces[owner] for name, pieces in cut.items()}
            layout = first if stage == TO_OWNER else second
            return ParameterEnd(layout, shard, stage=stage, rank=sender, shard=owner, receives=receives)

        self._cut, self._m = cut, m
        self._ends = {
            "senders": [end(TO_OWNER, rank, owner, False) for owner in range(m)],
            "receivers": [end(TO_OWNER, sender, rank, True) for sender in range(m)],
            "owner": [end(FROM_OWNER, rank, rank, False)],
            "means": [end(FROM_OWNER, owner, owner, True) for owner in range(m)],
        }

    def encode(self, names: Sequence[str], parts: Sequence[torch.Tensor], step: int) -> list[Message]:
        """Return this rank's messages of a bucket, one for every owner.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        parts : sequence of tensor
            Their gradients, flat, float32 and finite.
        step : int
            Number of the exchange.
        """
        pieces = [part.split(self._cut[name]) for name, part in zip(names, parts, strict=True)]
        laid = [piece[owner] for owner in range(self._m) for piece in pieces]
        return to_owners(self._of("senders", names), parts[0] if len(parts) == 1 else joined(laid), step)

    def exact_bits(self, names: Sequence[str], kind: str = "senders") -> list[int] | None:
        """Return the lengths of a bucket's messages by owner, None where nobody knows them beforehand.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        kind : {"senders", "means"}, optional
            Which shot.
        """
        bits = [end.exact_bits for end in self._of(kind, names)]
        exact = [length for length in bits if length is not None]
        return exact if len(exact) == len(bits) else None

    def carried_bits(self, names: Sequence[str], kind: str = "senders") -> int:
        """Return how many bits of this rank's messages of a bucket do not count.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        kind : {"senders", "owner"}, optional
            Of its messages to the owners, or of that with the mean of its shard.
        """
        return sum(end.carried_bits for end in self._of(kind, names))

    def merge(self, messages: Sequence[Message], names: Sequence[str], step: int) -> Message:
        """Return the message with the mean of this rank's shard, for all.

        Parameters
        ----------
        messages : sequence of Message
            That have come for this rank, in rank order.
        names : sequence of str
            Of the bucket's parameters.
        step : int
            Number of the exchange.
        """
        (out,) = self._of("owner", names)
        return merge(self._of("receivers", names), out, dict(enumerate(messages)), range(self._m), step)

    def mean(self, messages: Sequence[Message], names: Sequence[str], step: int) -> list[torch.Tensor]:
        """Return the mean gradient of each parameter, flat, as the owners have encoded it.

        Parameters
        ----------
        messages : sequence of Message
            Of the owners, in rank order.
        names : sequence of str
            Of the bucket's parameters.
        step : int
            Number of the exchange.
        """
        x = from_owners(self._of("means", names), messages, step)
        if len(names) == 1:
            return [x]
        pieces = x.split([self._cut[name][owner] for owner in range(self._m) for name in names]) if names else ()
        return [torch.cat(list(pieces[i :: len(names)])) for i in range(len(names))]

    def kept(self) -> list[dict[str, Any]]:
        """Return what is remembered, for ``put_back``; nothing is copied."""
        return [end.states.kept() for ends in self._ends.values() for end in ends]

    def put_back(self, kept: Sequence[dict[str, Any]]) -> None:
        """Remember what ``kept`` gave.

        Parameters
        ----------
        kept : sequence of dict
            What it gave.
        """
        for end, states in zip((end for ends in self._ends.values() for end in ends), kept, strict=True):
            end.states.put_back(states)

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered: tensors only."""
        return {kind: [end.states.to_dict() for end in ends] for kind, ends in self._ends.items()}

    def load_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``to_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What it gave.
        """
        for kind, ends in self._ends.items():
            for end, saved in zip(ends, state[kind], strict=True):
                end.states.load_dict(saved)

    def _of(self, kind: str, names: Sequence[str]) -> list[BucketEnd]:
        return [end.of(names) for end in self._ends[kind]]
