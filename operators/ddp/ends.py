"""The two ends of an exchange in the hook: what a rank sends of a bucket, and what it makes of the messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
import torch

from ..bits.bitstream import join_messages, split_messages
from ..exchange.channel import GATHERED, TO_OWNER, stage_key
from ..exchange.choice import all_known, lengths
from ..exchange.ordered_mean import ordered_mean
from ..exchange.two_shot import ends_of, from_owners, merge, to_owners
from ..feedback.feedback import Feedback, State
from ..fingerprint import require_like
from ..key import Key
from ..message import Message
from ..summed.end import Exchange, SumEnd
from ..summed.summed import Summed, together
from .bucket import Layout, joined

T = TypeVar("T")

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
    """
    if getattr(method, "shape", True) is None:
        return with_shape(method, shape)
    if getattr(method.operator, "shape", True) is None:
        return replace(cast(Any, method), operator=with_shape(method.operator, shape))
    return method


def with_shape(method: T, shape: torch.Size) -> T:
    """Return a matrix method that has no shape with that of a parameter; others as they are.

    A parameter of several dimensions is a matrix with as many rows as its first; one of fewer is a column.
    """
    rows = shape[0] if len(shape) else 1
    if not shape.numel() or getattr(method, "shape", rows) is not None:
        return method
    return replace(cast(Any, method), shape=(rows, shape.numel() // rows))


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
        self._exact: dict[tuple[str, ...], tuple[Feedback, int | None]] = {}

        def initial(name: str) -> State:
            method = self.method([name])
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

    @property
    def layerwise(self) -> bool:
        """Whether each parameter is compressed by itself."""
        return self._layout.layerwise

    def exact_bits(self, names: Sequence[str], d: int) -> int | None:
        """Return the length of the message of one unit where it is known beforehand.

        Parameters
        ----------
        names : sequence of str
            Its parameters.
        d : int
            Number of coordinates.
        """
        method, unit = self.method(names), tuple(names)
        former, exact = self._exact.get(unit, (None, None))
        if former is not method:  # an allocation gives a parameter another method
            exact = method.bits(d).exact
            self._exact[unit] = method, exact
        return exact

    def method(self, names: Sequence[str]) -> Feedback:
        """Return the method of one unit.

        Parameters
        ----------
        names : sequence of str
            Its parameters.
        """
        return self._layout.of_parameter(names[0]) if self.layerwise else self._layout.method

    def key(self, names: Sequence[str], step: int) -> Key:
        """Return the stream of the message of one unit.

        Parameters
        ----------
        names : sequence of str
            Its parameters.
        step : int
            Number of the exchange.
        """
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

    @property
    def units(self) -> list[tuple[list[str], int]]:
        """Names that are compressed as one vector, with the number of their entries together."""
        if self.end.layerwise:
            return [([name], self.end.sizes[name]) for name in self.names]
        return [(self.names, self.d)] if self.names else []

    def encode(self, x: torch.Tensor, step: Any) -> Message:
        """Return the message of a step.

        Parameters
        ----------
        x : tensor, shape (d,)
            The entries, parameter after parameter.
        step : int
            Number of the exchange.
        """
        messages, units, end = list[Message](), self.units, self.end
        for (names, _), part in zip(units, x.split([d for _, d in units]), strict=True):
            state, message = end.method(names).encode(end.states.read(names), part, key=end.key(names, step))
            end.states.write(names, state)
            messages.append(message)
        if not messages:
            return Message(torch.empty(0, dtype=torch.uint8), 0)
        if not end.layerwise:
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
        parts, end = list[torch.Tensor](), self.end
        messages = self._cut(message) if end.layerwise or not self.names else [message]
        for (names, d), part in zip(self.units, messages, strict=True):
            key = end.key(names, step)
            state, decoded = end.method(names).decode(end.states.read(names), part, d=d, key=key)
            end.states.write(names, state)
            parts.append(decoded)
        return joined(parts)

    @property
    def carried_bits(self) -> int:
        """How many bits of a message do not count."""
        return sum(self.end.method(names).carried_bits(d) for names, d in self.units)

    @property
    def exact_bits(self) -> int | None:
        """The length of a message, in bits, where all ranks know it beforehand."""
        exact = all_known(self._exact())
        return None if exact is None else sum(exact)

    def _cut(self, message: Message) -> list[Message]:
        """Return the messages of the parameters, which the host cuts out of the bits of one, and sends back at once."""
        cuts = split_messages(message.payload.cpu().numpy(), message.bits, self._exact())
        if not cuts:
            return []
        payload = torch.from_numpy(np.concatenate([part for part, _ in cuts])).to(message.payload.device)
        parts = payload.split([part.size for part, _ in cuts])
        return [Message(part, bits) for part, (_, bits) in zip(parts, cuts, strict=True)]

    def _exact(self) -> list[int | None]:
        return [self.end.exact_bits(names, d) for names, d in self.units]


# A rank's ends of an exchange of gradients, parameter by parameter: gathered, in two shots, or summed on the way.


class ParameterEnds:
    """This rank's ends of an exchange, by what they are for; the ends of a kind are in rank order.

    Parameters
    ----------
    ends : mapping of str to list of ParameterEnd
        The kinds of ends.
    """

    def __init__(self, ends: Mapping[str, list[ParameterEnd]]) -> None:
        self._ends = ends

    def exact_bits(self, names: Sequence[str], kind: str) -> list[int] | None:
        """Return the lengths of a bucket's messages in rank order, None where nobody knows them beforehand.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        kind : str
            Of the ends that send or receive them.
        """
        return all_known(end.exact_bits for end in self._of(kind, names))

    def carried_bits(self, names: Sequence[str], kind: str) -> int:
        """Return how many bits of a bucket's messages do not count.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        kind : str
            Of the ends that send them.
        """
        return sum(end.carried_bits for end in self._of(kind, names))

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


class GatherEnds(ParameterEnds):
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

        super().__init__({"sender": [end(rank, False)], "receivers": [end(sender, True) for sender in range(m)]})
        self._sizes = sizes

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
        return self._of("sender", names)[0].encode(joined(parts), step)

    def exact_bits(self, names: Sequence[str], kind: str = "sender") -> list[int] | None:
        """Return the lengths of all ranks' messages of a bucket, which are the same."""
        exact = super().exact_bits(names, kind)
        return None if exact is None else exact * len(self._ends["receivers"])

    def carried_bits(self, names: Sequence[str], kind: str = "sender") -> int:
        """Return how many bits of this rank's message of a bucket do not count."""
        return super().carried_bits(names, kind)

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
        arrived = zip(self._of("receivers", names), messages, strict=True)
        mean = ordered_mean(receiver.decode(message, step) for receiver, message in arrived)
        return list(mean.split([self._sizes[name] for name in names]))

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered: tensors only."""
        state = super().to_dict()
        return state | {"sender": state["sender"][0]}

    def load_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``to_dict`` was taken."""
        super().load_dict({**state, "sender": [state["sender"]]})


class TwoShotEnds(ParameterEnds):
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

    Notes
    -----
    A shard is cut out of every parameter, so that an entry has the same owner whatever bucket it travels in.
    """

    def __init__(self, first: Layout, second: Layout, sizes: Mapping[str, int], *, rank: int, m: int) -> None:
        cut = {name: lengths(size, m) for name, size in sizes.items()}

        def end(stage: int, sender: int, owner: int, receives: bool) -> ParameterEnd:
            shard = {name: pieces[owner] for name, pieces in cut.items()}
            layout = first if stage == TO_OWNER else second
            return ParameterEnd(layout, shard, stage=stage, rank=sender, shard=owner, receives=receives)

        super().__init__(ends_of(end, rank=rank, m=m))
        self._cut, self._m = cut, m

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
        """Return the lengths of a bucket's messages by owner, of one shot: kind is "senders" or "means"."""
        return super().exact_bits(names, kind)

    def carried_bits(self, names: Sequence[str], kind: str = "senders") -> int:
        """Return how many bits of this rank's messages do not count: kind is "senders" or "owner"."""
        return super().carried_bits(names, kind)

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


class SumEnds:
    """This rank's end of sums on the way, with the memory of every parameter.

    Parameters
    ----------
    method : Summed
        What is summed; a matrix method without a shape takes every parameter's own.
    shapes : mapping of str to Size
        Of every parameter.
    layerwise : bool
        Whether each parameter is summed by itself; else a bucket is one vector.
    numbers : mapping of str to int
        Places of the parameters in the model.
    key : Key
        Stream of random numbers.
    rank : int
        This one.
    m : int
        Number of ranks.
    """

    def __init__(
        self,
        method: Summed,
        shapes: Mapping[str, torch.Size],
        *,
        layerwise: bool,
        numbers: Mapping[str, int],
        key: Key,
        rank: int,
        m: int,
    ) -> None:
        self._layerwise, self._m, self._rank = layerwise, m, rank
        self._ends = {
            name: SumEnd(with_shape(method, shape), key.fold_in(numbers[name]), rank=rank, m=m, d=shape.numel())
            for name, shape in shapes.items()
        }

    def begin(self, names: Sequence[str], parts: Sequence[torch.Tensor], step: int) -> Exchange:
        """Return the exchange of a bucket.

        Parameters
        ----------
        names : sequence of str
            Of the bucket's parameters.
        parts : sequence of tensor
            Their gradients, flat, float32 and finite.
        step : int
            Number of the exchange.
        """
        vectors = parts if self._layerwise or not names else [joined(parts)]
        units = zip(self._of(names), vectors, strict=True)
        rounds = [end.rounds(x.cpu().numpy(), step, member=True) for end, x in units]
        return Exchange(together(rounds), m=self._m, rank=self._rank)

    def merge(self, exchange: Exchange, messages: Sequence[Message]) -> Message:
        """Return the message with the sums of this rank's shard, for all.

        Parameters
        ----------
        exchange : Exchange
            Of a bucket.
        messages : sequence of Message
            That have come for this rank, in rank order.
        """
        return exchange.merge(dict(enumerate(messages)), range(self._m))

    def means(self, exchange: Exchange, names: Sequence[str]) -> list[torch.Tensor]:
        """Return the mean gradient of each parameter, flat, of an exchange that is over; keep the new states.

        Parameters
        ----------
        exchange : Exchange
            Of a bucket.
        names : sequence of str
            Of the bucket's parameters.
        """
        for end, (state, _) in zip(self._of(names), exchange.result, strict=True):
            end.state = state
        x = joined([torch.from_numpy(mean) for _, mean in exchange.result])
        return list(x.split([self._ends[name].d for name in names])) if names else []

    def kept(self) -> dict[str, State]:
        """Return what is remembered, for ``put_back``; nothing is copied."""
        return {name: end.state for name, end in self._ends.items()}

    def put_back(self, kept: Mapping[str, State]) -> None:
        """Remember what ``kept`` gave.

        Parameters
        ----------
        kept : mapping of str to dict
            What it gave.
        """
        for name, state in kept.items():
            self._ends[name].state = dict(state)

    def to_dict(self) -> dict[str, Any]:
        """Return what is remembered: tensors only."""
        states = self.kept().items()
        return {"states": {name: {entry: value.clone() for entry, value in s.items()} for name, s in states}}

    def load_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``to_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What it gave.
        """
        require_like(state["states"], self.kept(), "the parameters")
        self.put_back(state["states"])

    def _of(self, names: Sequence[str]) -> list[SumEnd]:
        return [self._ends[name] for name in (names if self._layerwise else names[:1])]
