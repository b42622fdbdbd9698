"""A reduce-scatter that compresses: the first of two shots alone, for parameters that are sharded anyway.

FSDP2 hands over the gradients of a module as one vector, cut into equal shards.  Every rank sends each shard,
compressed, to its owner, which sums what it decodes in rank order in float64.  What a rank sends is (1 - 1/m) b bits a
coordinate, and the error of the mean is that of gathering, w S/m.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.fsdp._fully_shard._fsdp_api import ReduceScatter

from ..ddp.bucket import first_not_finite
from ..ddp.collectives import Counters, Refusal, Scatter
from ..ddp.equal_settings import gathered
from ..ddp.failures import explaining
from ..exchange.channel import TO_OWNER, Channel
from ..exchange.choice import all_known
from ..exchange.two_shot import to_owners
from ..feedback.feedback import Feedback, State
from ..fingerprint import fingerprint, require_finite, require_like, require_own_state
from ..inputs import canonical_tensor
from ..key import Key
from ..message import Message
from ..operator import Operator

# The exchanges of one backward pass: a gradient that is refused in one of them undoes what all have remembered.


class BackwardPass:
    """Raises the error of a refused gradient when the pass has ended, so that the model can make another one.

    Parameters
    ----------
    groups : sequence of ProcessGroup, optional
        Groups of copies of the model, whose ranks exchange no gradients here and must raise the same error.
    device : device or str, optional
        Device of the tensors of these groups.
    """

    def __init__(self, groups: Sequence[dist.ProcessGroup] = (), device: torch.device | str = "cpu") -> None:
        self._groups, self._device = tuple(groups), torch.device(device)
        self._before: list[tuple[Channel, State]] = []
        self._refused: ValueError | None = None
        self._ends = False  # whether a callback of this pass is queued

    def enter(self, channels: Sequence[Channel]) -> None:
        """Store the states of a module's channels before its exchange."""
        if not self._ends:
            self._before, self._refused = [], None
            self._ends = _queued(self._end)
        self._before += [(channel, channel.state) for channel in channels]

    def refuse(self, refused: ValueError) -> None:
        """Raise the error at the end of the pass, or immediately outside of one."""
        self._refused = self._refused or refused
        if not self._ends:
            self._put_back()
            raise refused

    def _put_back(self) -> None:
        for channel, state in reversed(self._before):
            channel.state = state

    def _end(self) -> None:
        self._ends = False
        refused, self._refused = self._refused, None
        if self._groups:
            refused = self._of_any_copy(refused)
        if refused is not None:
            self._put_back()
        self._before = []
        if refused is not None:
            raise refused

    def _of_any_copy(self, refused: ValueError | None) -> ValueError | None:
        """Return this rank's error, or the first one of another copy of the model."""
        flag = torch.tensor([refused is not None], dtype=torch.int32, device=self._device)
        for group in self._groups:
            dist.all_reduce(flag, dist.ReduceOp.MAX, group=group)
        if not int(flag):
            return None
        replies = gathered({"refused": refused and str(refused)}, self._groups, self._device)
        return next(ValueError(reply["refused"]) for reply in replies if reply["refused"])


def _queued(end: Callable[[], None]) -> bool:
    """Queue a callback behind those of the model's own; return False outside of a backward pass."""
    queue = torch.autograd.Variable._execution_engine.queue_callback
    try:
        queue(lambda: queue(end))
    except RuntimeError:
        return False
    return True


SUMS = ("SUM", "AVG")


class CompressedReduceScatter(Counters, ReduceScatter):
    """What ``FSDPModule.set_custom_reduce_scatter`` takes, for one module; see ``register`` for a whole model.

    Parameters
    ----------
    operator : Operator or Feedback
        Compresses the shards; a Feedback remembers at the sending rank what it owes every owner.
    key : Key, optional
        Of the operator's randomness, another one for each module; step and rank are filled in.
    module : str, optional
        Name of the module, for what is said of errors.

    """

    def __init__(self, operator: Operator | Feedback, *, key: Key = Key(0), module: str = "") -> None:  # noqa: B008
        if not isinstance(operator, Operator | Feedback):
            raise TypeError(f"operator must be an instance of Operator or Feedback; got {operator!r}")
        self.operator, self.key, self.module = operator, key, module
        super().__init__()
        self._senders: list[Channel] = []
        self._receivers: list[Channel] = []
        self._saved: list[State] = []
        self.backward_pass = BackwardPass()
        self._fingerprint = fingerprint({"operator": operator, "key": replace(key, step=0, rank=0)})

    def allocate(self, size: Sequence[int | torch.SymInt], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """Return a new buffer.

        Parameters
        ----------
        size : sequence of int
            Its shape.
        dtype : dtype
            Of its entries.
        device : device
            Where it lies.
        """
        return torch.empty(size, dtype=dtype, device=device)

    def __call__(
        self,
        output_tensor: torch.Tensor,
        input_tensor: torch.Tensor,
        group: dist.ProcessGroup,
        op: Any,
        async_op: bool = False,
    ) -> None:
        """Write the sum, or the mean, of this rank's shard of all ranks' vectors into ``output_tensor``.

        Parameters
        ----------
        output_tensor : tensor, shape (n,)
            The rank's own shard.
        input_tensor : tensor, shape (m n,)
            The rank's vector, shard after shard in rank order.
        group : ProcessGroup
            The ranks.
        op : ReduceOp
            SUM or AVG.
        async_op : bool, optional
            Not heeded: all is done when the call returns.

        Raises
        ------
        ValueError
            On every rank, if one's gradient is not finite, or its operator fails; for another operation.  In a backward
            pass it is raised at the end of the pass, the shard becomes NaN, and feedback returns to its states before
            the pass.
        RuntimeError
            If a rank has gone.
        """
        kind = next((name for name in SUMS if op == getattr(dist.ReduceOp, name)), None)
        if kind is None:
            raise ValueError(f"gradients are summed or averaged; got op = {op}: leave the divide factor as it is")
        self._connect(output_tensor.numel(), group)
        self.backward_pass.enter(self._channels)
        what = f"the gradients of {self.module or 'the model'}, step {self.steps}"
        try:
            with explaining(what):
                messages = self._exchanged(input_tensor, group, what)
        except ValueError as refused:
            self.steps += 1
            self.backward_pass.refuse(refused)
            output_tensor.fill_(float("nan"))
            return
        total = torch.zeros(output_tensor.numel(), dtype=torch.float64, device=output_tensor.device)
        for receiver, message in zip(self._receivers, messages, strict=True):
            total += receiver.decode(message, self.steps).to(total.device)
        output_tensor.copy_(total / len(messages) if kind == "AVG" else total)
        self.steps += 1

    def _connect(self, n: int, group: dist.ProcessGroup) -> None:
        """Make both ends of this rank's messages when the length is known."""
        if self._senders:
            return
        rank, m = dist.get_rank(group), dist.get_world_size(group)

        def end(sender: int, owner: int, receives: bool) -> Channel:
            return Channel(self.operator, self.key, stage=TO_OWNER, rank=sender, shard=owner, d=n, receives=receives)

        self._senders = [end(rank, owner, False) for owner in range(m)]
        self._receivers = [end(sender, rank, True) for sender in range(m)]
        if self._saved:
            require_like(self._saved, [channel.state for channel in self._channels], self._label)
        for channel, state in zip(self._channels, self._saved, strict=False):
            channel.state = state

    def _exchanged(self, x: torch.Tensor, group: dist.ProcessGroup, what: str) -> list[Message]:
        """Send the shards; returns what has come for this rank, by sender."""
        outgoing: list[Message] | int
        failure: Exception | None = None
        try:
            outgoing = to_owners(self._senders, canonical_tensor(x), self.steps)
        except Exception as error:  # report any failure to the other ranks
            outgoing, failure = first_not_finite(x.float()), error
        exact = all_known([self.operator.bits(self._senders[0].d).exact] * len(self._senders))
        device = x.device if dist.get_backend(group) == "nccl" else torch.device("cpu")
        scatter = Scatter(outgoing, note=self.steps, group=group, device=device, exact=exact)
        try:
            scatter.send()
        except Refusal as refusal:
            refusal.rank = dist.get_global_rank(group, refusal.rank)
            raise ValueError(_words(refusal, what, x.numel())) from failure
        messages = scatter.wait()
        self.count(scatter)
        return messages

    @property
    def _label(self) -> str:
        return f"module {self.module!r}"

    @property
    def _channels(self) -> list[Channel]:
        return [*self._senders, *self._receivers]

    def state_dict(self) -> dict[str, Any]:
        """Return what is remembered and counted: tensors and plain values only."""
        states = [channel.state for channel in self._channels] or self._saved
        return {
            "fingerprint": self._fingerprint,
            "states": [{k: v.clone() for k, v in state.items()} for state in states],
            "counters": self.counted,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken, on the same rank of as many.

        Parameters
        ----------
        state : mapping
            What it gave.

        Raises
        ------
        ValueError
            For a state of another operator or key, NaN, infinities and tensors of other shapes; what is not connected
            yet is compared at the first step.
        """
        state = require_own_state(state, self._fingerprint, of=self._label)
        require_finite(state["states"], self._label)
        if self._channels and state["states"]:
            require_like(state["states"], [channel.state for channel in self._channels], self._label)
        self._saved = [dict(saved) for saved in state["states"]]
        if self._channels and self._saved:
            for channel, saved in zip(self._channels, self._saved, strict=True):
                channel.state = saved
        self.counted = state["counters"]


def _words(refusal: Refusal, what: str, entries: int) -> str:
    """Return the same sentence on every rank."""
    if refusal.reason == entries:
        return f"rank {refusal.rank} could not compress {what}; its error says why"
    return (
        f"entry {refusal.reason} of {what}, on rank {refusal.rank} is not finite in binary32; look for an overflow in "
        "the loss, or clip"
    )
