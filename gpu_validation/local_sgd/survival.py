"""Rounds that continue without dead ranks and admit new ones at a synchronisation."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Sequence
from typing import Any

import torch

from operators.ddp.failures import is_lost

from ..distributed.collectives import ProcessTransport
from ..distributed.quorum import Quorum
from ..distributed.tensors import assign, load
from ..records.round import Round
from .clock import Clock
from .config import Settings
from .engine import Rounds
from .worker import Worker

ATTEMPTS = 10  # at one synchronisation


class SurvivingRounds(Rounds):
    """Rounds of one rank of a quorum; without a quorum, rounds of a fixed group.

    A synchronisation ends with a vote of 16 bytes from every rank to every other.  If it has failed before, a rank
    without the vote returns to its state before it, and the group is formed again.  Ranks that have done fewer rounds
    than rank 0 take rank 0's common model.  The others repeat the averaging with the models that they have.

    Raises
    ------
    ValueError
        As ``Rounds`` does.
    """

    transport: ProcessTransport

    def __init__(
        self,
        workers: Sequence[Worker],
        transport: ProcessTransport,
        settings: Settings,
        clock: Clock,
        quorum: Quorum | None,
    ) -> None:
        super().__init__(workers, transport, settings, clock)
        self.quorum = quorum
        if quorum is not None:
            self._go_on_from(self._state_of_rank_0())

    def end_round(self) -> list[Round]:
        """Average now, with the ranks that are present, and start the next round; return one record."""
        if self.quorum is None:
            return super().end_round()
        done, steps = self.periods.rounds, self.periods.local_steps
        unknown = [Round(done, steps, (0,) * self.transport.size, 0.0, math.nan)]  # if the others have made it
        for attempt in range(ATTEMPTS):
            before, accounts, broken = self._kept(), None, False
            try:
                accounts = super().end_round()
                self._let_in(self.quorum)
            except RuntimeError as error:
                if not _is_lost(error) or attempt + 1 == ATTEMPTS:
                    raise
                broken = True
            if broken:  # outside the except block: the error would keep connections open that the other ranks wait for
                if accounts is None:
                    self._put_back(before)
                self._regroup(self.quorum)
            if self.periods.rounds > done:
                return accounts or unknown
            if not self.periods.local_steps:  # too late: the other ranks repeat this round and expect its steps
                self.periods.catch_up(steps)
        raise AssertionError("the last attempt returns or raises")

    # -- state before a synchronisation ----------------------------------------------------------------------
    def _kept(self) -> dict[str, Any]:
        """Return a copy of all that a synchronisation changes."""
        worker = self.workers[0]
        buffers = [buffer.clone() for buffer in worker.buffers]
        return {"model": worker.vector(), "buffers": buffers, "rounds": copy.deepcopy(self.state_dict())}

    def _put_back(self, kept: dict[str, Any]) -> None:
        worker = self.workers[0]
        load(kept["model"], worker.parameters)
        for buffer, value in zip(worker.buffers, kept["buffers"], strict=True):
            assign(buffer, value)
        self.load_state_dict(kept["rounds"])

    # -- membership ------------------------------------------------------------------------------------------
    def _let_in(self, quorum: Quorum) -> None:
        """Vote after a synchronisation; form a new group if ranks have asked to join and all ranks know of it."""
        votes = self.transport.all_gather_floats([[float(quorum.asked()), float(quorum.served)]])
        asked, served = map(max, zip(*votes, strict=True))
        quorum.served = int(asked)
        if asked > served:
            self._regroup(quorum)

    def _regroup(self, quorum: Quorum) -> None:
        for attempt in range(ATTEMPTS):
            rounds = quorum.meet(self.periods.rounds)
            self.transport.rejoin()
            try:
                self._welcome(rounds)
            except RuntimeError as error:
                if not is_lost(error) or attempt + 1 == ATTEMPTS:
                    raise
            else:
                return

    def _welcome(self, rounds: int) -> None:
        """Join the collectives of a starting rank; take rank 0's model if rank 0 has done more rounds."""
        self.transport.broadcast([[torch.zeros(1, dtype=torch.int64)]])
        self._require_equal_ranks()
        worker = self.workers[0]
        model = [*worker.model.parameters(), *worker.model.buffers()]
        copies = [tensor.detach().clone() for tensor in model]
        trained = {id(parameter) for parameter in worker.parameters}
        load(worker.anchor, [twin for twin, tensor in zip(copies, model, strict=True) if id(tensor) in trained])
        self.transport.broadcast([copies])
        state = self._state_of_rank_0()
        if rounds < state["counters"][1]:
            with torch.no_grad():
                for tensor, value in zip(model, copies, strict=True):
                    tensor.copy_(value)
            self._begin_together()
            self._go_on_from(state)
        else:
            self._connect()

    def _state_of_rank_0(self) -> dict[str, Any]:
        """Return rank 0's counters, outer state and unrounded model at the begin of its round."""
        sent = io.BytesIO()
        if self.transport.rank == 0:
            worker, periods = self.workers[0], self.periods
            steps = periods.total_steps - periods.local_steps
            anchor = None if worker.full_precision else worker.anchor
            counters = [periods.tau, periods.rounds, 0, steps]
            torch.save({"counters": counters, "outer": self.outer.state_dict(), "anchor": anchor}, sent)
        (length, *_) = self.transport.all_gather_int([sent.tell()])
        box = torch.zeros(length, dtype=torch.uint8)
        if self.transport.rank == 0:
            box = torch.frombuffer(bytearray(sent.getvalue()), dtype=torch.uint8)
        self.transport.broadcast([[box]])
        state: dict[str, Any] = torch.load(io.BytesIO(box.numpy().tobytes()), weights_only=True)
        return state

    def _go_on_from(self, state: dict[str, Any]) -> None:
        worker = self.workers[0]
        self.outer.load_state_dict(state["outer"])
        self.periods.load_state_dict(self.periods.state_dict() | {"counters": state["counters"]})
        if state["anchor"] is not None:
            worker.anchor, worker.start = state["anchor"].to(worker.anchor), worker.vector().to(worker.anchor)


def _is_lost(error: RuntimeError) -> bool:
    """Return whether an error, or its cause, means that a rank is lost."""
    return is_lost(error) or (isinstance(error.__cause__, RuntimeError) and is_lost(error.__cause__))
