"""Any operator as a communication hook of DistributedDataParallel. ::

    model = DistributedDataParallel(network)
    hook = register(model, QSGD(levels=16))
    ...                                       # train as before
    hook.payload_bytes                        # what this rank has sent

Every rank compresses its own gradient, gathers the messages of all, decodes them and takes their mean in rank
order in float64: all ranks get the same gradient, bit for bit.  A message is under way while the backward pass
computes the next bucket, and is decoded in the background.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..bits.concatenate import join_messages, split_messages
from ..feedback.feedback import Feedback
from ..feedback.memoryless import Memoryless
from ..key import Key
from ..message import Message
from ..operator import Operator, canonical
from .gather import Gather, Refusal, predicted_payload_bytes
from .parameter_states import StatesByParameter, fitted, is_coordinatewise

Scope = Literal["bucket", "layer"]


def register(
    model: DistributedDataParallel,
    operator: Operator | Feedback,
    *,
    feedback: Callable[[Operator], Feedback] | None = None,
    scope: Scope = "bucket",
    key: Key = Key(0),  # noqa: B008  frozen
    group: dist.ProcessGroup | None = None,
) -> CompressedGradients:
    """Let the model exchange compressed gradients from its next backward pass on; returns the hook.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    operator : Operator or Feedback
        Compresses; a Feedback keeps its states from step to step.
    feedback : callable or None, optional
        A method to put around an operator, as in ``register(model, ScaledSign(), feedback=ErrorFeedback)``.
    scope : Scope, optional
        "bucket" compresses each of the model's buckets as one vector, "layer" each parameter by itself.
    key : Key, optional
        Of the operator's randomness; step and rank are filled in, and the parameter is folded in.
    group : ProcessGroup or None, optional
        Of the ranks that exchange gradients; the model's own if None.

    Raises
    ------
    ValueError
        For an unknown scope, feedback around a Feedback, parameters that are no floats, a method whose states need
        scope="layer", or ranks that differ.

    Notes
    -----
    All ranks must call it, with the same arguments; what it sends to see to that is not counted.   TypeError for an
    operator that is none; RuntimeError if the model has a hook.
    """
    if not isinstance(operator, Operator | Feedback):
        raise TypeError(f"operator must be an instance of Operator or Feedback; got {operator!r}")
    if isinstance(operator, Operator):
        operator = (feedback or Memoryless)(operator)
    elif feedback is not None:
        raise ValueError(f"{operator} is a feedback method already: leave feedback = None")
    hook = CompressedGradients(model, operator, scope, key, group or model.process_group)
    model.register_comm_hook(hook, lambda state, bucket: state._reduce(bucket))
    return hook


@dataclass(frozen=True)
class _Part:
    """A gradient in a bucket: its parameter's name and the view to read from and write to."""

    name: str
    gradient: torch.Tensor


@dataclass
class _Pending:
    """A bucket whose message is on its way."""

    gather: Gather
    parts: list[_Part]
    buffer: torch.Tensor
    step: int
    result: torch.futures.Future[torch.Tensor]


class CompressedGradients:
    """The hook of a model, made by ``register``: what it has sent, and the states of its feedback.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    method : Feedback
        The compressor or the method of error feedback.
    scope : str
        What part of the gradients is compressed at once.
    key : Key
        Stream of random numbers.
    group
        The processes that exchange.

    Attributes
    ----------
    steps
        Backward passes with communication.
    codec_bits : bits
        Lengths of this rank's messages.
    payload_bytes : bytes
        What this rank has handed to the transport, headers and receivers counted.
    predicted_bytes : bytes
        What all ranks together should have handed over, from the lengths of the messages alone.

    Notes
    -----
    A gradient that is not finite in binary32 raises ValueError on every rank, the same words.  States belong to
    parameters: buckets may be rebuilt, and a saved state fits a model whose buckets differ.  Within a bucket the
    parameters are compressed in the order of the model.  In steps in which no rank uses a parameter, the model
    discards what its hook returns for it, and what error feedback sent of its residual is lost.
    """

    def __init__(self, model: DistributedDataParallel, method: Feedback, scope: str, key: Key, group: Any) -> None:
        if scope not in ("bucket", "layer"):
            raise ValueError(f'scope must be "bucket" or "layer"; got {scope!r}')
        self.method, self.scope, self.key, self.group = method, scope, key, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.steps = self.codec_bits = self.payload_bytes = self.predicted_bytes = 0
        self._parameters = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        self._names = {id(p): name for name, p in self._parameters.items()}
        self._numbers = {name: number for number, name in enumerate(self._parameters)}
        for name, p in self._parameters.items():
            if not p.dtype.is_floating_point:
                raise ValueError(f"parameters must be floats; got {name} of {p.dtype}")
        nccl = dist.get_backend(group) == "nccl"
        self._device = next(iter(self._parameters.values())).device if nccl else torch.device("cpu")
        sizes = {name: p.numel() for name, p in self._parameters.items()}
        self._fitted = {name: fitted(method, p.shape) for name, p in self._parameters.items()}
        if scope == "bucket" and not is_coordinatewise(method, sum(sizes.values())):
            raise ValueError(f'{method.name} keeps a state that no bucket can share: pass scope="layer"')
        self._sender = StatesByParameter(lambda name: self._method([name]).init(sizes[name]), sizes)
        self._receivers = [
            StatesByParameter(lambda name: self._method([name]).init_receiver(sizes[name]), sizes)
            for _ in range(self.size)
        ]
        self._known: dict[tuple[str, int], int | None] = {}
        self._pending: list[_Pending] = []
        self._error: Exception | None = None
        self._require_equal_settings()

    def _require_equal_settings(self) -> None:
        """Ranks that encode and decode differently would train on nonsense."""
        shapes = [(name, tuple(p.shape)) for name, p in self._parameters.items()]
        settings = repr((self.method, self.scope, replace(self.key, step=0, rank=0), shapes))
        number = zlib.crc32(re.sub(r"0x[0-9a-f]+", "", settings).encode())  # addresses differ
        digits = torch.tensor(list(number.to_bytes(4, "big")), dtype=torch.uint8)
        gather = Gather(Message(digits, 32), group=self.group, device=self._device)
        gather.send()
        first, *others = gather.wait()
        for rank, message in enumerate(others, start=1):
            if not torch.equal(message.payload, first.payload):
                raise ValueError(
                    f"ranks 0 and {rank} differ in the operator, the feedback, the scope, the key or the "
                    "shapes of the model: give all ranks the same ones"
                )

    # -- one bucket --------------------------------------------------------------------------------------
    def _reduce(self, bucket: Any) -> torch.futures.Future[torch.Tensor]:
        """Return called by the model for every bucket, in the same order on all ranks.

        The lengths of one bucket are waited for when the next one is ready, and the last bucket's at once: so
        all ranks start their collectives in the same order, and all before the model starts its own.
        """
        buffer = bucket.buffer()
        if buffer.is_sparse:
            raise ValueError(f"the gradient of {self._names[id(bucket.parameters()[0])]} is sparse: make it dense")
        if bucket.index() == 0:
            self._pending, self._error = [], None  # left over from a pass that failed
        named = [
            _Part(self._names[id(p)], g)
            for p, g in zip(bucket.parameters(), bucket.gradients(), strict=True)
            if g.numel()
        ]
        parts = sorted(named, key=lambda part: self._numbers[part.name])
        gather = Gather(self._encode(parts), group=self.group, device=self._device)
        result: Any = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        self._pending.append(_Pending(gather, parts, buffer, self.steps, result))
        while len(self._pending) > (0 if bucket.is_last() else 1):
            self._send(self._pending.pop(0))
        self.steps += bool(bucket.is_last())
        return result

    def _send(self, pending: _Pending) -> None:
        try:
            pending.gather.send()
        except Refusal as refusal:
            raise ValueError(self._words(refusal, pending)) from self._error
        lengths = pending.gather.lengths
        self.codec_bits += lengths[self.rank]
        self.payload_bytes += pending.gather.payload_bytes
        self.predicted_bytes += predicted_payload_bytes(lengths, self.size)
        mean = pending.gather.then(lambda messages: self._decode(messages, pending))
        mean.add_done_callback(lambda done: _hand_over(done, pending.result))

    def _words(self, refusal: Refusal, pending: _Pending) -> str:
        start = 0
        for part in pending.parts:
            stop = start + part.gradient.numel()
            if start <= refusal.reason < stop:
                return (
                    f"the gradient of {part.name} on rank {refusal.rank} is not finite in binary32: entry "
                    f"{refusal.reason - start} at step {pending.step}; look for an overflow in the loss, or clip"
                )
            start = stop
        return f"rank {refusal.rank} could not compress its gradient at step {pending.step}; its error says why"

    # -- messages ----------------------------------------------------------------------------------------
    def _units(self, parts: Sequence[_Part]) -> Iterator[tuple[list[str], int, int]]:
        """Return what is compressed as one vector: (names, first entry, last entry + 1) in the parts laid
        end to end.
        """
        sizes = [part.gradient.numel() for part in parts]
        names = [part.name for part in parts]
        if self.scope == "bucket" and names:
            yield names, 0, sum(sizes)
            return
        start = 0
        for name, size in zip(names, sizes, strict=True):
            yield [name], start, start + size
            start += size

    def _method(self, names: Sequence[str]) -> Feedback:
        """Return the method for a unit; a matrix method knows the shape of a layer."""
        return self._fitted[names[0]] if self.scope == "layer" else self.method

    def _key(self, rank: int, step: int, names: Sequence[str]) -> Key:
        return replace(self.key, step=step, rank=rank).fold(self._numbers[names[0]])

    def _encode(self, parts: Sequence[_Part]) -> Message | int:
        """Return this rank's message of a bucket; or the number of the first entry that is not finite."""
        if not parts:
            return Message(torch.empty(0, dtype=torch.uint8), 0)
        x = torch.cat([part.gradient.reshape(-1) for part in parts]).to(device="cpu", dtype=torch.float32)
        try:
            messages = [self._encode_unit(x[a:b], names) for names, a, b in self._units(parts)]
        except Exception as error:  # the other ranks must hear of it, whatever it is
            self._error = error
            finite = torch.isfinite(x)
            return x.numel() if finite.all() else int(finite.int().argmin())
        if self.scope == "bucket":
            return messages[0]
        payload, bits = join_messages([(m.payload.numpy(), m.bits) for m in messages], self._exact(parts))
        return Message(torch.from_numpy(payload), bits)

    def _encode_unit(self, x: torch.Tensor, names: Sequence[str]) -> Message:
        key, finite = self._key(self.rank, self.steps, names), torch.from_numpy(canonical(x))
        state, message = self._method(names).encode(self._sender.read(names), finite, key=key)
        self._sender.write(names, state)
        return message

    def _exact(self, parts: Sequence[_Part]) -> list[int | None]:
        """Return the lengths of the units' messages where they are known beforehand."""
        for names, a, b in self._units(parts):
            if (names[0], b - a) not in self._known:
                self._known[names[0], b - a] = self._method(names).bits(b - a).exact
        return [self._known[names[0], b - a] for names, a, b in self._units(parts)]

    def _decode(self, messages: Sequence[Message], pending: _Pending) -> torch.Tensor:
        """Return the mean of all ranks' gradients, in the bucket's own memory."""
        total = np.zeros(sum(part.gradient.numel() for part in pending.parts))
        for rank, message in enumerate(messages):
            cuts = [(message.payload.numpy(), message.bits)]
            if self.scope == "layer" or not pending.parts:
                cuts = split_messages(*cuts[0], self._exact(pending.parts))
            for (names, a, b), (payload, bits) in zip(self._units(pending.parts), cuts, strict=True):
                message_of_unit = Message(torch.from_numpy(payload), bits)
                total[a:b] += self._decode_unit(message_of_unit, names, b - a, rank, pending.step).numpy()
        mean = torch.from_numpy(total / len(messages))
        for part, values in zip(pending.parts, mean.split([p.gradient.numel() for p in pending.parts]), strict=True):
            part.gradient.copy_(values.view(part.gradient.shape))
        return pending.buffer

    def _decode_unit(self, message: Message, names: Sequence[str], d: int, rank: int, step: int) -> torch.Tensor:
        key = self._key(rank, step, names)
        receiver = self._receivers[rank]
        state, decoded = self._method(names).decode(receiver.read(names), message, d=d, key=key)
        receiver.write(names, state)
        return decoded

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return states and counters of this rank: tensors and plain values only.  Call it between steps."""
        return {
            "place": [self.rank, self.size],
            "counters": [self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes],
            "sender": self._sender.to_dict(),
            "receivers": [receiver.to_dict() for receiver in self._receivers],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What the method remembers.

        Raises
        ------
        ValueError
            For the state of another rank or number of ranks, of another model or method.
        """
        if list(state["place"]) != [self.rank, self.size]:
            rank, size = state["place"]
            raise ValueError(
                f"the state is of rank {rank} of {size}; this is rank {self.rank} of {self.size}: "
                "states cannot be moved, start without one"
            )
        self._sender.load_dict(state["sender"])
        for receiver, saved in zip(self._receivers, state["receivers"], strict=True):
            receiver.load_dict(saved)
        self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes = state["counters"]


def _hand_over(done: torch.futures.Future[torch.Tensor], result: torch.futures.Future[Any]) -> None:
    """Give a future's value, or its error, to another one."""
    try:
        result.set_result(done.value())
    except Exception as error:
        result.set_exception(error)
