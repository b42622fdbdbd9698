"""PASGD: local steps, and every tau of them an averaging of the (compressed) round deltas.

    averaging = PeriodicAveraging(model.parameters(), tau=8, operator=QSGD(levels=16), exchange=Exchange(), key=key)
    for batch in data:
        loss(model, batch).backward()
        optimizer.step()
        averaging.step()

Synchronisations happen after steps tau, 2 tau, ...: every round, the first included, has tau local steps.
All ranks hold the same model after each of them, bit for bit, because every rank decodes the same messages and
folds them in rank order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch

from operators import Key, Operator
from operators.operator import canonical

from .exchange import Exchange, predicted_payload_bytes


@dataclass(frozen=True)
class Round:
    """What one averaging did, as seen by this rank.

    bits : lengths of all ranks' messages; predicted_bytes : what they should cost all ranks together.
    error2, norm2 : squared error of this rank's own decoded delta and squared norm of that delta.
    """

    index: int
    bits: tuple[int, ...]
    predicted_bytes: int
    error2: float
    norm2: float


class PeriodicAveraging:
    """Periodic averaging of a set of parameters over the default process group.

    parameters : float tensors, updated in place; they must start equal on all ranks.
    tau : local steps a round, >= 1.
    operator : compresses the round delta x_i - anchor of each worker.
    key : one stream a rank (its step is replaced by the round's index).
    Raises ValueError for tau < 1 or an empty parameter list.
    """

    def __init__(
        self, parameters: Iterable[torch.Tensor], *, tau: int, operator: Operator, exchange: Exchange, key: Key
    ) -> None:
        if tau < 1:
            raise ValueError(f"tau must satisfy tau >= 1; got tau = {tau}")
        self.parameters = list(parameters)
        if not self.parameters:
            raise ValueError("there is nothing to average: the parameter list is empty")
        self.tau, self.operator, self.exchange, self.key = tau, operator, exchange, key
        self.anchor = self.flat()
        self.local_steps = 0
        self.rounds = 0

    def flat(self) -> torch.Tensor:
        """The parameters as one new vector, shape (d,)."""
        return torch.cat([p.detach().reshape(-1) for p in self.parameters]).clone()

    def step(self) -> Round | None:
        """Count one local step; average after every tau-th.  Returns the round's account, or None."""
        self.local_steps += 1
        return self.average() if self.local_steps == self.tau else None

    def average(self) -> Round:
        """End the round now: exchange the compressed deltas, move the anchor, start all ranks from it."""
        key = Key(self.key.seed, step=self.rounds, rank=self.exchange.rank, layer=self.key.layer, path=self.key.path)
        delta = canonical(self.flat() - self.anchor)
        messages = self.exchange.all_gather(self.operator.encode(delta, key=key))

        total = np.zeros(delta.size)
        for rank, message in enumerate(messages):
            sender = Key(key.seed, step=key.step, rank=rank, layer=key.layer, path=key.path)
            decoded = self.operator.decode(message, d=delta.size, key=sender).numpy()
            total += decoded
            if rank == self.exchange.rank:
                error = decoded.astype(np.float64) - delta
        mean = torch.from_numpy(total / len(messages)).to(self.anchor)
        self.anchor = self.anchor + mean
        self.load(self.anchor)

        bits = tuple(message.bits for message in messages)
        account = Round(
            index=self.rounds,
            bits=bits,
            predicted_bytes=predicted_payload_bytes(list(bits), self.exchange.size),
            error2=float(error @ error),
            norm2=float(np.square(delta, dtype=np.float64).sum()),
        )
        self.rounds += 1
        self.local_steps = 0
        return account

    def load(self, vector: torch.Tensor) -> None:
        """Set the parameters from one vector, shape (d,)."""
        start = 0
        with torch.no_grad():
            for p in self.parameters:
                p.copy_(vector[start : start + p.numel()].view_as(p))
                start += p.numel()
