"""Exchanges among which a run with ``Candidates`` chooses, and their costs and errors for the rule."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bounds.runtime import Coding
from bounds.schedules import Candidate, RateAndRetention
from operators import Key, Operator

from ...processes.transport import Transport
from ..pacing.clock import Clock, SimulatedClock
from ..settings import Settings
from ..worker import Worker
from .movements import Movements, Payload
from .nodes import movements_of
from .parts import Candidates, Cheapest, Gather, Trial, TwoShot, row_of, shared_trials, trial_of

TRIALS = 0x6C616464  # folded into the key of the trial messages


@dataclass(frozen=True)
class Option:
    """One operator with its exchange.

    Parameters
    ----------
    whole : bool
        Whether whole models are sent.
    exchange : str
        "gather" or "two_shot".
    coding_s : float or None, seconds
        Coding time of one averaging for a simulated clock; None on a wall clock.
    movements : Movements
        The exchange of movements.
    carried_bits : tuple of int, bits
        Bits of each message of the ranks hosted here that only carry an output.
    """

    whole: bool
    exchange: str
    coding_s: float | None
    movements: Movements
    carried_bits: tuple[int, ...]


class Choices:
    """Measures all candidates and makes their exchanges.

    Raises
    ------
    ValueError
        For an operator that is not unbiased.
    """

    def __init__(self, settings: Settings, worker: Worker, transport: Transport, clock: Clock) -> None:
        assert isinstance(settings.exchange, Candidates)
        simulated = isinstance(clock, SimulatedClock)
        self._candidates = settings.exchange.uncharged() if simulated else settings.exchange
        self._settings, self._transport = settings, transport
        self._charged = self._candidates.codings is not None
        self.try_again(worker)

    def try_again(self, worker: Worker) -> None:
        """Measure all operators again, at the model's current number of coordinates."""
        self.d = worker.anchor.numel()
        self.rule = RateAndRetention(self._rule_candidates(worker), self._transport.size)

    def _rule_candidates(self, worker: Worker) -> tuple[Candidate, ...]:
        d, m = worker.anchor.numel(), self._transport.size
        key = self._settings.shared_key.fold_in(TRIALS)
        trials = [self._trial(i, worker, key.fold_in(i)) for i in range(len(self._candidates.operators))]
        rows = self._transport.all_gather_floats([row_of(trials)] * len(self._transport.ranks))
        pairs = zip(self._candidates.operators, shared_trials(trials, rows), strict=True)
        return tuple(self._candidate(operator, trial, d, m) for operator, trial in pairs)

    def _trial(self, i: int, worker: Worker, key: Key) -> Trial:
        operator, d = self._candidates.operators[i], worker.anchor.numel()
        free = Coding(0.0, 0.0)
        if operator is None:
            return Trial(8.0 * worker.vector().element_size() * d, 0.0, free)
        trial = trial_of(operator, d=d, device=worker.device, key=key)
        return trial if self._candidates.codings is None else replace(trial, coding=self._candidates.codings[i])

    def _candidate(self, operator: Operator | None, trial: Trial, d: int, m: int) -> Candidate:
        if operator is None:
            return Candidate("whole models", 2 * (m - 1) / m * trial.bits / 8)
        in_two = self._of(operator, d).name == "two_shot"
        link_bytes = (2 * (m - 1) / m if in_two else m - 1) * trial.bits / 8
        return Candidate(str(operator), link_bytes, trial.error, trial.coding.seconds(m=m, two_shot=in_two), in_two)

    def _of(self, operator: Operator | None, d: int) -> Gather | TwoShot:
        return Gather() if operator is None else Cheapest(operator).chosen(d=d, m=self._transport.size)

    def connect(self, payload: Payload, d: int) -> None:
        """Make the exchanges for the current number of ranks."""
        transport, key = self._transport, self._settings.shared_key
        self.options: list[Option] = []
        for operator, candidate in zip(self._candidates.operators, self.rule.candidates, strict=True):
            exchange = self._of(operator, d)
            self.options.append(
                Option(
                    operator is None,
                    exchange.name,
                    candidate.coding_s if self._charged else None,
                    movements_of(exchange, key, transport, payload, d),
                    (0 if operator is None else operator.carried_bits(d),) * len(transport.ranks),
                )
            )
