"""Rounds that continue without dead ranks and admit new ones at a synchronisation."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch

from operators.ddp.failures import is_lost

from ...processes.collectives import ProcessTransport
from ...processes.quorum import Quorum
from ...processes.tensors import assign, load
from ...processes.transport import Transport
from ...records.round import Round
from ..outer import OuterOptimizer
from ..pacing.inputs import PeriodController
from ..worker import Worker

ATTEMPTS = 10  # at one synchronisation


class Rounds(Protocol):
    """What a quorum needs of the engine whose rounds it repeats."""

    workers: Sequence[Worker]
    transport: Transport
    periods: PeriodController
    outer: OuterOptimizer

    def synchronise(self) -> list[Round]:
        """Average now with the ranks that are present, and start the next round."""

    def require_equal_ranks(self) -> None:
        """Raise ValueError on all ranks unless they have equal models and settings."""

    def begin_together(self) -> None:
        """Begin the first round with these parameters."""

    def connect(self) -> None:
        """Make the exchange of movements for the current number of ranks."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state of all rounds."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``."""


class Survival:
    """Rounds of one rank of a quorum, which continue without dead ranks and admit new ones.

    A synchronisation ends with a vote of 16 bytes from every rank to every other.  If it has failed before, a rank
    without the vote returns to its state before it, and the group is formed again.  Ranks that have done fewer rounds
    than rank 0 take rank 0's common model.  The others repeat the averaging with the models that they have.
    """

    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    def join(self, engine: Rounds) -> None:
        """Start from the counters, the outer state and the unrounded model of rank 0."""
        _resume_from(engine, _state_of_rank_0(engine))

    def end_round(self, engine: Rounds) -> list[Round]:
        """Average now, with the ranks that are present, and start the next round; return one record."""
        done, steps = engine.periods.rounds, engine.periods.local_steps
        unknown = [Round(done, steps, (0,) * engine.transport.size, 0.0, math.nan)]  # if the others have made it
        for attempt in range(ATTEMPTS):
            before, accounts, broken = _snapshot(engine), None, False
            try:
                accounts = engine.synchronise()
                self._admit(engine)
            except RuntimeError as error:
                if not _is_lost(error) or attempt + 1 == ATTEMPTS:
                    raise
                broken = True
            if broken:  # outside the except block: the error would keep connections open that the other ranks wait for
                if accounts is None:
                    _restore(engine, before)
                self._regroup(engine)
            if engine.periods.rounds > done:
                return accounts or unknown
            if not engine.periods.local_steps:  # too late: the other ranks repeat this round and expect its steps
                engine.periods.catch_up(steps)
        raise AssertionError("the last attempt returns or raises")

    def _admit(self, engine: Rounds) -> None:
        """Vote after a synchronisation; form a new group if ranks have asked to join and all ranks know of it."""
        votes = engine.transport.all_gather_floats([[float(self._quorum.asked()), float(self._quorum.served)]])
        asked, served = map(max, zip(*votes, strict=True))
        self._quorum.served = int(asked)
        if asked > served:
            self._regroup(engine)

    def _regroup(self, engine: Rounds) -> None:
        for attempt in range(ATTEMPTS):
            rounds = self._quorum.form_group(engine.periods.rounds)
            assert isinstance(engine.transport, ProcessTransport)  # a quorum makes the process group
            engine.transport.rejoin()
            try:
                _resynchronise(engine, rounds)
            except RuntimeError as error:
                if not is_lost(error) or attempt + 1 == ATTEMPTS:
                    raise
            else:
                return


def _snapshot(engine: Rounds) -> dict[str, Any]:
    """Return a copy of all that a synchronisation changes."""
    worker = engine.workers[0]
    buffers = [buffer.clone() for buffer in worker.buffers]
    return {"model": worker.vector(), "buffers": buffers, "rounds": copy.deepcopy(engine.state_dict())}


def _restore(engine: Rounds, kept: dict[str, Any]) -> None:
    worker = engine.workers[0]
    load(kept["model"], worker.parameters)
    for buffer, value in zip(worker.buffers, kept["buffers"], strict=True):
        assign(buffer, value)
    engine.load_state_dict(kept["rounds"])


def _resynchronise(engine: Rounds, rounds: int) -> None:
    """Join the collectives of a starting rank; take rank 0's model if rank 0 has done more rounds."""
    engine.transport.broadcast([[torch.zeros(1, dtype=torch.int64)]])
    engine.require_equal_ranks()
    worker = engine.workers[0]
    model = [*worker.model.parameters(), *worker.model.buffers()]
    copies = [tensor.detach().clone() for tensor in model]
    trained = {id(parameter) for parameter in worker.parameters}
    load(worker.anchor, [twin for twin, tensor in zip(copies, model, strict=True) if id(tensor) in trained])
    engine.transport.broadcast([copies])
    state = _state_of_rank_0(engine)
    if rounds < state["counters"][1]:
        with torch.no_grad():
            for tensor, value in zip(model, copies, strict=True):
                tensor.copy_(value)
        engine.begin_together()
        _resume_from(engine, state)
    else:
        engine.connect()


def _state_of_rank_0(engine: Rounds) -> dict[str, Any]:
    """Return rank 0's counters, outer state and unrounded model at the begin of its round."""
    sent = io.BytesIO()
    if 0 in engine.transport.ranks:
        worker, periods = engine.workers[0], engine.periods
        steps = periods.total_steps - periods.local_steps
        anchor = None if worker.full_precision else worker.anchor
        counters = [periods.tau, periods.rounds, 0, steps]
        torch.save({"counters": counters, "outer": engine.outer.state_dict(), "anchor": anchor}, sent)
    (length, *_) = engine.transport.all_gather_int([sent.tell()])
    box = torch.zeros(length, dtype=torch.uint8)
    if 0 in engine.transport.ranks:
        box = torch.frombuffer(bytearray(sent.getvalue()), dtype=torch.uint8)
    engine.transport.broadcast([[box]])
    state: dict[str, Any] = torch.load(io.BytesIO(box.numpy().tobytes()), weights_only=True)
    return state


def _resume_from(engine: Rounds, state: dict[str, Any]) -> None:
    worker = engine.workers[0]
    engine.outer.load_state_dict(state["outer"])
    engine.periods.load_state_dict(engine.periods.state_dict() | {"counters": state["counters"]})
    if state["anchor"] is not None:
        worker.anchor, worker.start = state["anchor"].to(worker.anchor), worker.vector().to(worker.anchor)


def _is_lost(error: RuntimeError) -> bool:
    """Return whether an error, or its cause, means that a rank is lost."""
    return is_lost(error) or (isinstance(error.__cause__, RuntimeError) and is_lost(error.__cause__))
