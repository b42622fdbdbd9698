"""PASGD for a training script: local steps, and every tau of them an averaging of the compressed round deltas.

    averaging = PeriodicAveraging(model, optimizer, schedule=8, operator=QSGD(levels=16))
    for batch in data:
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()
        averaging.step(value)

Synchronisations come after steps tau, 2 tau, ...: every round, the first included, has tau local steps, and a new
tau begins with a new round.  All ranks hold the same model after each of them, bit for bit, because every rank
decodes the same messages and folds them in rank order.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist

from bounds.schedules import Fixed, Observation, Schedule
from operators import Feedback, Identity, Key, Operator
from operators.operator import canonical

from .exchange import Exchange
from .tensors import flat, floating_state, load

OptimizerState = Literal["keep", "average", "reset"]


@dataclass(frozen=True)
class Round:
    """What one averaging did, as seen by this rank.

    index : rounds before this one.  tau : its local steps.  bits : lengths of all ranks' messages of the delta.
    error2, norm2 : squared error of this rank's own decoded delta and squared norm of what it wanted to send.
    """

    index: int
    tau: int
    bits: tuple[int, ...]
    error2: float
    norm2: float


class PeriodicAveraging:
    """Periodic averaging of a model over the default process group, which must be initialised.

    model : its parameters start as rank 0's and are replaced by the average after every round; floating-point
    buffers (BatchNorm statistics) are averaged too, integer buffers stay local.
    optimizer : needed if the schedule adapts, for ``optimizer_state`` and for ``block_momentum``.
    schedule : local steps a round, or a rule of ``bounds.schedules``.  All ranks decide by the mean of their
    losses and by rank 0's clock.
    operator : compresses the delta x_i - anchor of a round; a Feedback keeps its state from round to round.
    optimizer_state : what an averaging does to it: keep each worker's own, average it, or reset it (local
    momentum restarts from zero, as AdaComm prescribes).
    block_momentum : beta of u <- beta u + G, x <- anchor - eta u, where G is the mean sum of gradients of a round.
    key : of the operator's randomness; step and rank are filled in.  steps : of the whole run, if known.
    Raises ValueError for a model without parameters, a tau < 1, or a missing optimizer.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        schedule: int | Schedule = 1,
        operator: Operator | Feedback | None = None,
        exchange: Exchange | None = None,
        key: Key = Key(0),  # noqa: B008  frozen
        optimizer_state: OptimizerState = "keep",
        block_momentum: float = 0.0,
        steps: int | None = None,
    ) -> None:
        self.schedule = Fixed(schedule) if isinstance(schedule, int) else schedule
        self.model, self.optimizer = model, optimizer
        self.parameters = list(model.parameters())
        self._check(optimizer_state, block_momentum)
        self.operator: Operator | Feedback = operator or Identity()
        self.exchange = exchange or Exchange()
        self.key, self.steps = key, steps
        self.optimizer_state, self.block_momentum = optimizer_state, block_momentum
        for tensor in (*self.parameters, *model.buffers()):
            dist.broadcast(tensor.detach(), src=0)
        self.anchor = flat(self.parameters)
        self.momentum = torch.zeros_like(self.anchor)
        self.sender, self.receivers = self._initial_feedback()
        self.rule = self.schedule.init()
        self.tau = self.schedule.tau if isinstance(self.schedule, Fixed) else 0  # 0: decided at the first step
        self.rounds = self.local_steps = self.total_steps = 0
        self._losses: list[float] = []
        self._began = time.monotonic()

    def _check(self, optimizer_state: str, block_momentum: float) -> None:
        if not self.parameters:
            raise ValueError("there is nothing to average: the model has no parameters")
        if optimizer_state not in ("keep", "average", "reset"):
            raise ValueError(f"optimizer_state must be keep, average or reset; got {optimizer_state!r}")
        if not 0 <= block_momentum < 1:
            raise ValueError(f"block_momentum must satisfy 0 <= beta < 1; got {block_momentum}")
        if self.optimizer is None and (
            not isinstance(self.schedule, Fixed) or optimizer_state != "keep" or block_momentum
        ):
            raise ValueError("an adaptive schedule, optimizer_state and block_momentum need the optimizer: pass it")

    # -- stepping ----------------------------------------------------------------------------------------
    def step(self, loss: torch.Tensor | float | None = None) -> Round | None:
        """Count one local step; average after every tau-th.  Returns the round's account, or None.

        loss : of this step, on this rank; needed by schedules that look at it.
        """
        if loss is not None and not isinstance(self.schedule, Fixed):
            self._losses.append(float(loss.detach() if isinstance(loss, torch.Tensor) else loss))
        if not self.tau:
            self._decide()
        self.total_steps += 1
        self.local_steps += 1
        return self.average() if self.local_steps >= self.tau else None

    def average(self) -> Round:
        """End the round now: exchange the compressed deltas, move the anchor, start all ranks from it."""
        delta = canonical(flat(self.parameters) - self.anchor)
        messages = self.exchange.all_gather(self._encode(delta))
        decoded = [self._decode(rank, message, delta.size) for rank, message in enumerate(messages)]
        total = np.zeros(delta.size)
        for part in decoded:
            total += part
        self._move(torch.from_numpy(total / len(decoded)).to(self.anchor))
        self._average_exactly([b for b in self.model.buffers() if b.is_floating_point()])
        self._treat_optimizer()

        error = decoded[self.exchange.rank].astype(np.float64) - delta
        account = Round(
            index=self.rounds,
            tau=self.local_steps,
            bits=tuple(message.bits for message in messages),
            error2=float(error @ error),
            norm2=float(np.square(delta, dtype=np.float64).sum()),
        )
        self.rounds += 1
        self.local_steps = 0
        if not isinstance(self.schedule, Fixed):
            self._decide()
            self._losses = []
        return account

    def _move(self, mean: torch.Tensor) -> None:
        if self.block_momentum:
            self.momentum = self.block_momentum * self.momentum - mean / self._eta()
            self.anchor = self.anchor - self._eta() * self.momentum
        else:
            self.anchor = self.anchor + mean
        load(self.anchor, self.parameters)

    def _decide(self) -> None:
        """All ranks give their loss and clock, and choose the same tau."""
        own = sum(self._losses) / len(self._losses) if self._losses else float("nan")
        rows = self.exchange.all_gather_numbers([own, time.monotonic() - self._began])
        left = None if self.steps is None else max(0, self.steps - self.total_steps)
        common: dict[str, Any] = {
            "time_s": rows[0][1],
            "step": self.total_steps,
            "eta": self._eta(),
            "steps_left": left,
        }
        losses = [loss for loss, _ in rows]
        seen = Observation(**common) if np.isnan(losses).any() else Observation.shared(losses, **common)
        self.rule, self.tau = self.schedule(self.rule, seen)

    def _eta(self) -> float:
        assert self.optimizer is not None  # checked at the start
        return float(self.optimizer.param_groups[0]["lr"])

    # -- messages ----------------------------------------------------------------------------------------
    def _key(self, rank: int) -> Key:
        return Key(self.key.seed, step=self.rounds, rank=rank, layer=self.key.layer, path=self.key.path)

    def _initial_feedback(self) -> tuple[Any, list[Any]]:
        if not isinstance(self.operator, Feedback):
            return None, []
        d = self.anchor.numel()
        return self.operator.init(d), [self.operator.init_receiver(d) for _ in range(self.exchange.size)]

    def _encode(self, delta: np.ndarray) -> Any:
        key = self._key(self.exchange.rank)
        if isinstance(self.operator, Operator):
            return self.operator.encode(delta, key=key)
        self.sender, message = self.operator.encode(self.sender, torch.from_numpy(delta), key=key)
        return message

    def _decode(self, rank: int, message: Any, d: int) -> np.ndarray:
        if isinstance(self.operator, Operator):
            return self.operator.decode(message, d=d, key=self._key(rank)).numpy()
        state, decoded = self.operator.decode(self.receivers[rank], message, d=d, key=self._key(rank))
        self.receivers[rank] = state
        return decoded.numpy()

    def _average_exactly(self, tensors: list[torch.Tensor]) -> None:
        """Replace tensors by their mean over ranks, sent as binary32 and folded in rank order."""
        if not tensors:
            return
        own = flat(tensors)
        identity = Identity()
        messages = self.exchange.all_gather(identity.encode(own, key=self.key))
        parts = [identity.decode(message, d=own.numel()).double() for message in messages]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        load((total / len(parts)).to(own), tensors)

    def _treat_optimizer(self) -> None:
        if self.optimizer is None or self.optimizer_state == "keep":
            return
        if self.optimizer_state == "reset":
            self.optimizer.state.clear()
        else:
            self._average_exactly(floating_state(self.optimizer))

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Everything that a resumed run needs beside model and optimizer; tensors and plain values only."""
        return {
            "anchor": self.anchor,
            "momentum": self.momentum,
            "sender": self.sender,
            "receivers": self.receivers,
            "rule": self.rule.to_dict(),
            "losses": list(self._losses),
            "elapsed_s": time.monotonic() - self._began,
            "counters": [self.tau, self.rounds, self.local_steps, self.total_steps],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken; model and optimizer are restored by their own methods.

        Raises ValueError if the state belongs to a model of another size.
        """
        if state["anchor"].numel() != self.anchor.numel():
            raise ValueError(
                f"the state is for d = {state['anchor'].numel()}; this model has d = {self.anchor.numel()}"
            )
        self.anchor, self.momentum = state["anchor"].to(self.anchor), state["momentum"].to(self.momentum)
        self.sender, self.receivers = state["sender"], list(state["receivers"])
        self.rule = self.schedule.restore(state["rule"])
        self._losses = list(state["losses"])
        self._began = time.monotonic() - state["elapsed_s"]
        self.tau, self.rounds, self.local_steps, self.total_steps = state["counters"]
