"""Rounds of local-update SGD for all workers that a process hosts: its own, or many simulated ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from operators.fingerprint import require_finite, require_like, require_own_state

from ..distributed.transport import Transport
from ..records.round import Round
from .attendance import RollCall
from .clock import Clock
from .config import Settings
from .gradient_probe import Closure
from .synchronisations import Synchronisations
from .worker import Worker

STATE_VERSION = "0.2.0"  # the first version whose states have these entries and fingerprints
FIRST_VERSION = "0.1.0"  # its states do not name their version


class Rounds(Synchronisations):
    """Counts local steps and ends rounds.

    Raises
    ------
    ValueError
        For a mode that does not fit the number of ranks, or for ranks with different settings.

    Notes
    -----
    A model whose parameters have changed since the last averaging (added, removed or frozen) is joined again.
    """

    def __init__(self, workers: Sequence[Worker], transport: Transport, settings: Settings, clock: Clock) -> None:
        super().__init__(workers, transport, settings, clock)
        if self.periods.tau:
            self._begin_round()

    # -- stepping ----------------------------------------------------------------------------------------
    def count(
        self, losses: Sequence[torch.Tensor | float | None], closures: Sequence[Closure | None] | None = None
    ) -> list[Round] | None:
        """Count one local step of every worker; end the round after every tau-th.

        Parameters
        ----------
        losses : sequence of tensor or float or None
            Loss of every worker.
        closures : sequence of Closure or None or None, optional
            Closure of every worker, which recomputes the gradient of this step.
        """
        undecided = not self.periods.tau
        self.inputs.record_step(losses, closures, self.participants, self.clock)
        for worker in self.workers:
            if worker.rates is not None:
                worker.rates.record()
        if undecided:
            self._begin_round()
        if self.roll_call is not None:
            self._record_presence(self.roll_call)
        if (accounts := self._count()) is not None:
            return accounts
        self.inputs.step_counted()
        return None

    def _record_presence(self, roll_call: RollCall) -> None:
        stepping = roll_call.stepping()
        self._since = [count + steps for count, steps in zip(self._since, stepping, strict=True)]
        if self.overlapped is not None:
            self.overlapped.record_steps(stepping)

    def _count(self) -> list[Round] | None:
        """Count a local step; end the round after the tau-th."""
        ends = self.periods.count()
        if self.overlapped is not None:
            with self._explaining():
                self.overlapped.after_step(self.periods.total_steps, self.periods.tau)
        return self.end_round() if ends else None

    def depart(self, rank: int) -> None:
        """Stop the steps of a rank hosted here; once all of them have left, serve the other ranks until they leave too.

        Parameters
        ----------
        rank : int
            Rank that leaves.

        Raises
        ------
        ValueError
            Without ``Uneven()``, or if the rank has left before.
        """
        if self.roll_call is None:
            raise ValueError("leave() needs membership=Uneven(): give it on all ranks")
        if not self.periods.tau:  # the first decision is made by all ranks
            silent = () if self.settings.measures else self.participants
            nothing = [None] * len(self.workers)
            self.inputs.record_step(nothing, nothing, silent, self.clock)
            self._begin_round()
        self.roll_call.leave(rank)
        while self.roll_call.all_left and not self.roll_call.over:
            if self.overlapped is None:
                self.end_round()
            elif self._count() is not None:
                self.roll_call.over = self.overlapped.idle
        if self.roll_call.over and self.overlapped is not None:
            self._land()

    @property
    def participants(self) -> Sequence[int]:
        """Ranks whose models count in the coming averaging; the others may idle."""
        gone = self.roll_call.gone if self.roll_call is not None else ()
        members = self.settings.mixing.members(self.periods.rounds, self.transport.size)
        return [rank for rank in members if rank not in gone] if gone else members

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed run needs besides model and optimizer, as tensors and plain values.

        An average in flight is awaited, but stored without merging it.
        """
        with self._explaining():
            in_flight = None if self.overlapped is None else self.overlapped.state_dict()
        return {
            "version": STATE_VERSION,
            "fingerprint": self.fingerprint(),
            "workers": [worker.state_dict() for worker in self.workers],
            "outer": self.outer.state_dict(),
            "receivers": self.movements.states,
            "rhythm": self.periods.state_dict(),
            "clock": self.clock.state_dict(),
            "sensing": self.inputs.state_dict(),
            "in_flight": in_flight,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state of ``state_dict``; model and optimizer are restored by their own methods.

        Parameters
        ----------
        state : mapping
            Result of ``state_dict``.

        Raises
        ------
        ValueError
            For a state of other settings, another model, rank or number of ranks, and for one that is not finite or
            whose tensors have other shapes.  Nothing has changed then, but the current round is not timed.
        """
        if isinstance(state, Mapping) and "rhythm" in state and state.get("version") != STATE_VERSION:
            raise ValueError(
                f"a state must be of ratedist {STATE_VERSION}; got one that ratedist "
                f"{state.get('version', FIRST_VERSION)} saved and reads: load it there, or start without a state"
            )
        state = require_own_state(state, self.fingerprint(), of="this averaging")
        for name in ("workers", "outer", "receivers", "in_flight"):
            require_finite(state[name], name)
        before, since = self.state_dict(), self._since
        try:
            self._load(state)
        except BaseException:
            self._load(before)
            self._since = since
            raise

    def _load(self, state: Mapping[str, Any]) -> None:
        self.periods.load_state_dict(state["rhythm"])
        self._take_choice()
        for worker, worker_state in zip(self.workers, state["workers"], strict=True):
            worker.load_state_dict(worker_state)
        self.outer.load_state_dict(state["outer"])
        require_like(state["receivers"], self.movements.states, "receivers")
        self.movements.states = list(state["receivers"])
        self.clock.load_state_dict(state["clock"])
        self.inputs.load_state_dict(state["sensing"])
        self._since = [self.periods.local_steps] * len(self.workers)
        if self.overlapped is not None:
            self.overlapped.load_state_dict(state["in_flight"])
