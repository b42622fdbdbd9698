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

import logging
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..exchange.channel import with_memory
from ..exchange.choice import Choice, Exchange, choose
from ..feedback.feedback import Feedback
from ..feedback.memoryless import Memoryless
from ..key import Key
from ..message import Message
from ..operator import Operator, canonical
from .ends import GatherEnds, Layout, TwoShotEnds, joined
from .gather import Gather, Refusal, predicted_payload_bytes
from .lost_rank import explaining
from .parameter_states import fitted, is_coordinatewise
from .scatter import Scatter, predicted_scatter_bytes

log = logging.getLogger("operators")

Scope = Literal["bucket", "layer"]


def register(
    model: DistributedDataParallel,
    operator: Operator | Feedback,
    *,
    feedback: Callable[[Operator], Feedback] | None = None,
    scope: Scope = "bucket",
    key: Key = Key(0),  # noqa: B008  frozen
    group: dist.ProcessGroup | None = None,
    exchange: Exchange = "gather",
    second: Operator | Feedback | None = None,
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
    exchange : {"gather", "two_shot", "auto"}, optional
        "gather": every rank sends its message to all.  "two_shot": every rank sends each shard to its owner, which
        sends the compressed mean of its shard to all; what a rank sends does not grow with the number of ranks.
        "auto" takes what sends fewer bytes, by the sizes that the operators declare for the model's parameters; the
        hook's ``exchange`` says which.
    second : Operator or Feedback or None, optional
        Compresses the means of two shots; by default as the gradients are, with error feedback too.

    Raises
    ------
    ValueError
        For an unknown scope or exchange, a second operator without two shots, feedback around a Feedback,
        parameters that are no floats, a method whose states need scope="layer", or ranks that differ.

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
    if second is not None and exchange == "gather":
        raise ValueError(
            'second compresses the means of two shots: pass exchange="two_shot" or "auto", or leave it out'
        )
    later = operator if second is None else with_memory(second)
    hook = CompressedGradients(model, operator, scope, key, group or model.process_group, exchange, later)
    model.register_comm_hook(hook, lambda state, bucket: state._reduce(bucket))
    return hook


@dataclass(frozen=True)
class _Part:
    """A gradient in a bucket: its parameter's name and the view to read from and write to."""

    name: str
    gradient: torch.Tensor


@dataclass
class _Pending:
    """A bucket whose messages are on their way: ``phases`` are still to come, each after a wait."""

    messages: Gather | Scatter
    parts: list[_Part]
    buffer: torch.Tensor
    step: int
    result: torch.futures.Future[torch.Tensor]
    phases: list[Callable[[_Pending], None]]

    @property
    def names(self) -> list[str]:
        return [part.name for part in self.parts]


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
    exchange : Exchange
        How messages travel.
    second : Feedback
        Compresses the means of two shots.

    Attributes
    ----------
    exchange : str
        "gather" or "two_shot".
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

    def __init__(
        self,
        model: DistributedDataParallel,
        method: Feedback,
        scope: str,
        key: Key,
        group: Any,
        exchange: Exchange,
        second: Feedback,
    ) -> None:
        if scope not in ("bucket", "layer"):
            raise ValueError(f'scope must be "bucket" or "layer"; got {scope!r}')
        self.method, self.second, self.scope, self.key, self.group = method, second, scope, key, group
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
        self.exchange = self._choose(exchange, sizes)
        self._ends = self._made_ends(sizes)
        self._pending: list[_Pending] = []
        self._results: list[torch.futures.Future[torch.Tensor]] = []  # of the buckets of this pass
        self._error: Exception | None = None
        self._require_equal_settings()

    def _choose(self, exchange: Exchange, sizes: Mapping[str, int]) -> str:
        """Return the exchange, the same on every rank, by what the operators declare for the whole model."""
        units = [sum(sizes.values())] if self.scope == "bucket" else [size for size in sizes.values() if size]
        choices = [choose(exchange, self.method, self.second, d=d, m=self.size) for d in units]
        gather, two_shot = (sum(c.gather_bytes for c in choices), sum(c.two_shot_bytes for c in choices))
        if exchange != "auto":
            return exchange
        choice = Choice("two_shot" if two_shot < gather else "gather", gather, two_shot)
        log.info("%s", choice)
        return choice.exchange

    def _made_ends(self, sizes: Mapping[str, int]) -> GatherEnds | TwoShotEnds:
        """Return this rank's ends; in two shots a shard has no shape that a matrix method could take."""
        layerwise, place = self.scope == "layer", {"rank": self.rank, "m": self.size}
        methods = {self.method} if self.exchange == "gather" else {self.method, self.second}
        for method in methods:
            if not layerwise and not is_coordinatewise(method, sum(sizes.values())):
                raise ValueError(f'{method.name} keeps a state that no bucket can share: pass scope="layer"')
        if self.exchange == "gather":
            matrices = {name: fitted(self.method, p.shape) for name, p in self._parameters.items()}
            return GatherEnds(
                Layout(self.method, matrices.__getitem__, layerwise, self._numbers, self.key), sizes, **place
            )
        first, second = (
            Layout(method, dict.fromkeys(sizes, method).__getitem__, layerwise, self._numbers, self.key)
            for method in (self.method, self.second)
        )
        return TwoShotEnds(first, second, sizes, **place)

    def _require_equal_settings(self) -> None:
        """Ranks that encode and decode differently would train on nonsense."""
        shapes = [(name, tuple(p.shape)) for name, p in self._parameters.items()]
        settings = repr(
            (self.method, self.second, self.exchange, self.scope, replace(self.key, step=0, rank=0), shapes)
        )
        number = zlib.crc32(re.sub(r"0x[0-9a-f]+", "", settings).encode())  # addresses differ
        digits = torch.tensor(list(number.to_bytes(4, "big")), dtype=torch.uint8)
        gather = Gather(Message(digits, 32), group=self.group, device=self._device)
        gather.send()
        first, *others = gather.wait()
        for rank, message in enumerate(others, start=1):
            if not torch.equal(message.payload, first.payload):
                raise ValueError(
                    f"ranks 0 and {rank} differ in the operator, the feedback, the scope, the exchange, the key or "
                    "the shapes of the model: give all ranks the same ones"
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
            self._pending, self._results, self._error = [], [], None  # left over from a pass that failed
        named = [
            _Part(self._names[id(p)], g)
            for p, g in zip(bucket.parameters(), bucket.gradients(), strict=True)
            if g.numel()
        ]
        parts = sorted(named, key=lambda part: self._numbers[part.name])
        outgoing = self._encode(parts)
        result: Any = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        phases: list[Callable[[_Pending], None]]
        phases = [self._send] if self.exchange == "gather" else [self._send_shards, self._merge, self._send_mean]
        with explaining(f"the gradients of step {self.steps}"):
            self._pending.append(_Pending(self._collective(outgoing, parts), parts, buffer, self.steps, result, phases))
            self._results.append(result)
            self._advance(self._pending if bucket.is_last() else self._pending[:-1])
            if bucket.is_last():
                self._finish()
        self.steps += bool(bucket.is_last())
        return result

    def _finish(self) -> None:
        """Go on to the end; what fails in the background is raised here, for the model would garble its words."""
        while self._pending:
            self._advance(self._pending)
        for result in self._results:
            result.wait()

    def _collective(self, outgoing: Message | Sequence[Message] | int, parts: Sequence[_Part]) -> Gather | Scatter:
        exact = self._ends.exact_bits([part.name for part in parts])
        if self.exchange == "gather":
            assert isinstance(outgoing, Message | int)
            return Gather(outgoing, group=self.group, device=self._device, exact=exact)
        assert not isinstance(outgoing, Message)
        return Scatter(outgoing, note=self.steps, group=self.group, device=self._device, exact=exact)

    def _advance(self, buckets: Sequence[_Pending]) -> None:
        """Go one phase on with each bucket, the oldest first: the same collectives in the same order on all ranks."""
        for pending in buckets:
            pending.phases.pop(0)(pending)
        self._pending = [pending for pending in self._pending if pending.phases]

    def _send(self, pending: _Pending) -> None:
        """Send the bodies of a gather."""
        try:
            pending.messages.send()
        except Refusal as refusal:
            raise ValueError(self._words(refusal, pending)) from self._error
        self._receive(pending)

    def _send_shards(self, pending: _Pending) -> None:
        """Send the bodies of the first shot."""
        try:
            pending.messages.send()
        except Refusal as refusal:
            raise ValueError(self._words(refusal, pending)) from self._error

    def _merge(self, pending: _Pending) -> None:
        """Compress the mean of this rank's shard and start the second shot."""
        shards, ends = pending.messages, self._ends
        assert isinstance(shards, Scatter)
        assert isinstance(ends, TwoShotEnds)
        mean: Message | int = 0
        arrived = shards.wait()
        try:
            mean = ends.merge(arrived, pending.names, pending.step)
        except Exception as error:  # the other ranks must hear of it, whatever it is
            self._error = error
        self.codec_bits += shards.lengths[self.rank]
        self.payload_bytes += shards.payload_bytes
        self.predicted_bytes += predicted_scatter_bytes(shards.sent_bytes, self.size)
        exact = ends.exact_bits(pending.names, "means")
        pending.messages = Gather(mean, group=self.group, device=self._device, exact=exact)

    def _send_mean(self, pending: _Pending) -> None:
        """Send the bodies of the second shot."""
        try:
            pending.messages.send()
        except Refusal as refusal:
            why = f": {self._error}" if refusal.rank == self.rank else "; its error says why"
            raise ValueError(
                f"rank {refusal.rank} could not form the mean of its shard at step {pending.step}{why}"
            ) from self._error
        self._receive(pending)

    def _receive(self, pending: _Pending) -> None:
        """Count what a gather has sent; its messages are decoded in the background."""
        gather = pending.messages
        assert isinstance(gather, Gather)
        self.codec_bits += gather.lengths[self.rank]
        self.payload_bytes += gather.payload_bytes
        self.predicted_bytes += predicted_payload_bytes(gather.lengths, self.size)
        mean = gather.then(lambda messages: self._decode(messages, pending))
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
    def _encode(self, parts: Sequence[_Part]) -> Message | list[Message] | int:
        """Return this rank's messages of a bucket; or the number of the first entry that is not finite."""
        flat = [part.gradient.reshape(-1).to(device="cpu", dtype=torch.float32) for part in parts]
        names, x = [part.name for part in parts], joined(flat)
        try:
            finite = torch.from_numpy(canonical(x)).split([part.numel() for part in flat]) if parts else []
            return self._ends.encode(names, finite, self.steps)
        except Exception as error:  # the other ranks must hear of it, whatever it is
            self._error = error
            is_finite = torch.isfinite(x)
            return x.numel() if is_finite.all() else int(is_finite.int().argmin())

    def _decode(self, messages: Sequence[Message], pending: _Pending) -> torch.Tensor:
        """Return the mean of all ranks' gradients, in the bucket's own memory."""
        means = self._ends.mean(messages, pending.names, pending.step)
        for part, values in zip(pending.parts, means, strict=True):
            part.gradient.copy_(values.view(part.gradient.shape))
        return pending.buffer

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return states and counters of this rank: tensors and plain values only.  Call it between steps."""
        return {
            "place": [self.rank, self.size],
            "counters": [self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes],
            **self._ends.to_dict(),
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
        self._ends.load_dict(state)
        self.steps, self.codec_bits, self.payload_bytes, self.predicted_bytes = state["counters"]


def _hand_over(done: torch.futures.Future[torch.Tensor], result: torch.futures.Future[Any]) -> None:
    """Give a future's value, or its error, to another one."""
    try:
        result.set_result(done.value())
    except Exception as error:
        result.set_exception(error)
