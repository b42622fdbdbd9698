"""Recorder of one rank: it sums times and errors, adds no collective and changes no number of the run."""

from __future__ import annotations

import math
import time
import weakref
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from ..processes.collectives import ProcessTransport
from ..processes.learning_rates import learning_rate
from ..processes.tensors import wait_for
from ..records.round import Round
from .account import Account, Header, State, of_beside, of_messages, of_vectors
from .journal import Journal, read_folder
from .observer import Observer
from .samples import KeptRound, Stream, Thinned

LEAST, LARGEST = 2.0**-126, 2.0**100  # range of max|x| in which claims hold
EVERY_S = 1.0  # seconds between two lines of a file
NEARLY_ALL, EVERY_ROUND = 16, 16  # models are compared in the first NEARLY_ALL rounds, then every EVERY_ROUND-th


class WatchedWorker(Protocol):
    """Interface of a worker for a recorder.

    Attributes
    ----------
    device : device
        Device of the parameters.
    start : tensor
        Model at the start of the round, shape (d,).
    begins : int
        Number of times that averagings have written the parameters.
    sender
        Encoder of this rank's messages.
    travelled : list of (str, int)
        Buffers that the last averaging sent, as kinds and numbers of entries.
    """

    device: torch.device
    start: torch.Tensor
    begins: int
    sender: Any
    travelled: list[tuple[str, int]]

    @property
    def optimizer(self) -> torch.optim.Optimizer | None:
        """The optimizer, if there is one."""

    def vector(self) -> torch.Tensor:
        """Return a copy of all parameters, shape (d,)."""

    def outgoing(self) -> torch.Tensor:
        """Return all parameters, shape (d,)."""


class WatchedMixing(Protocol):
    """Interface of a mixing mode for a recorder."""

    def members(self, round_index: int, m: int) -> Sequence[int]:
        """Return the ranks whose models count in round ``round_index``."""


class Recorder(Observer):
    """Accumulates the account of this rank's run in bounded memory, and in a file if there is a journal.

    Parameters
    ----------
    describe : callable
        Returns the current settings of the run.
    worker : WatchedWorker
        Worker of this rank.
    transport : ProcessTransport
        Transport that counts payload bytes.
    mixing : WatchedMixing
        Mode that returns the members of a round.
    journal : Journal or None
        File of the account; None for memory only.  The account restarts when the model's parameters change.
    """

    watches = True

    def __init__(
        self,
        describe: Callable[[], Header],
        worker: WatchedWorker,
        transport: ProcessTransport,
        mixing: WatchedMixing,
        journal: Journal | None,
    ) -> None:
        self._describe, self._worker, self._transport, self._mixing = describe, worker, transport, mixing
        self._journal = journal
        self._hooked: weakref.ref[torch.optim.Optimizer] | None = None
        self._begin()

    def _begin(self) -> None:
        self.header = self._describe()
        self._kept = Thinned()
        self._bits, self._ratio, self._coordinate, self._along = Stream(), Stream(), Stream(), Stream()
        self._rounds = self._steps = self._tau = self._predicted = 0
        self._sent = self._received = self._expected_sent = self._expected_received = 0
        self._beside_sent = self._beside_received = 0
        self._computing_s = self._averaging_s = self._telemetry_s = 0.0
        self._oblique = 0.0
        self._decline: float | None = None
        self._loss: torch.Tensor | float | None = None
        self._began = self._left = self._arrived = time.perf_counter()
        self._inside_s = self._compute_s = 0.0
        self._before = (0, 0)
        self._own: torch.Tensor | None = None
        self._away2 = self._paired = math.nan
        self._changed = self._looking = self._ended = False
        self._due = self._began
        self._given = self._merged = self._applied_from = math.nan
        self._left_sum = self._left_begins = -1  # of the parameters that the last averaging left
        self._begun = self._still = -1
        self._optimizer_steps = 0
        self._watch_optimizer()
        if self._journal is not None:
            self._journal.begin(self.header)
            self._journal.write([], self.state())

    # -- methods of Observer -----------------------------------------------------------------------------
    def record_loss(self, loss: torch.Tensor | float | None) -> None:
        """Store the last loss; it is read only with a kept round, so that no device is synchronised."""
        self._loss = loss.detach() if isinstance(loss, torch.Tensor) else loss

    def start_sync(self, index: int) -> None:
        """Stop timing local steps, start timing the averaging."""
        wait_for(self._worker.device)  # the averaging would wait for the device anyway
        self._arrived = time.perf_counter()
        self._compute_s = self._arrived - self._left
        self._inside_s = 0.0
        self._before = self._transport.handed_over
        self._looking = self._looks(index)
        self._own, self._changed, self._away2, self._paired = None, False, math.nan, math.nan
        self._given = self._merged = self._applied_from = math.nan
        self._still = self._timed(self._as_left)

    def keep(self, model: torch.Tensor) -> None:
        """Copy the model in rounds whose models are compared."""
        if self._looking:
            self._own = self._timed(model.clone)
            self._given, self._applied_from = self._timed(lambda: projection(model)), 0.0

    def record_mean(self, mean: torch.Tensor) -> None:
        """Measure this rank's distance from the mean."""
        if self._own is not None:
            model, self._own = self._own, None
            self._away2 = self._timed(lambda: _square(model.to(mean.dtype) - mean))
            self._merged = self._timed(lambda: projection(mean))

    def record_movements(
        self, mean: torch.Tensor, own: torch.Tensor, decoded: torch.Tensor | None, members: int
    ) -> None:
        """Measure the distance from the mean, and the inner product with the other ranks' decoded movements."""
        if self._looking:
            self._own = own.to(mean)
            self.record_mean(mean)
            self._applied_from = self._timed(lambda: projection(self._worker.start))
            if decoded is not None:
                self._given = self._timed(lambda: projection(decoded))
            if members > 1 and decoded is not None:
                self._paired = self._timed(lambda: _paired(own, decoded, mean, members))

    def _watch_optimizer(self) -> None:
        """Count the optimizer's steps by a hook, which has only a weak reference to this recorder."""
        optimizer = self._worker.optimizer
        if optimizer is None or (self._hooked is not None and self._hooked() is optimizer):
            return
        self._hooked, this = weakref.ref(optimizer), weakref.ref(self)

        def before_step(*_: Any) -> None:
            recorder = this()
            if recorder is not None:
                recorder.before_step()

        optimizer.register_step_pre_hook(before_step)

    def before_step(self) -> None:
        """Count a step of the optimizer; compare the parameters with those after the last averaging."""
        if self._optimizer_steps == 0:
            self._begun = self._as_left()
        self._optimizer_steps += 1

    def _as_left(self) -> int:
        """Return whether the parameters equal those after the last averaging; -1 if unknown."""
        if self._left_sum < 0 or self._worker.begins != self._left_begins:
            return -1
        return int(checksum(self._worker.vector()) == self._left_sum)

    def change(self) -> None:
        """Restart the account after this averaging."""
        self._changed = True

    def finish_round(self, done: Round, steps: int, rule: Any) -> None:
        """Record time, error and bytes of the averaging, and write to the file once per second."""
        if self._changed:
            self._begin()
            return
        now = time.perf_counter()
        averaging_s = now - self._arrived - self._inside_s
        self._computing_s += self._compute_s
        self._averaging_s += averaging_s
        first, self._rounds = self._rounds == 0, self._rounds + 1
        self._steps, self._tau = steps, done.tau
        ratio = self._messages(done)
        self._bytes(done)
        if self._kept.wants(done.index):
            compute_s = math.nan if first else self._compute_s  # the begin of the first round is unknown
            self._kept.add(self._kept_round(done, steps, compute_s, averaging_s, ratio))
        self._end_comparisons(done)
        decline = getattr(rule, "decline", None)
        self._decline = float(decline) if decline is not None and getattr(rule, "fresh", 0) > 0 else None
        if self._journal is not None and now >= self._due:
            self._write()
        self._left = time.perf_counter()
        self._telemetry_s += self._inside_s + self._left - now

    def leave_out(self, seconds: float) -> None:
        """Exclude the seconds from local steps and from the run."""
        self._left += seconds
        self._began += seconds

    def close(self) -> None:
        """Write the last line and close the file."""
        self._ended = True
        if self._journal is not None:
            self._write()
            self._journal.close()

    # -- results -----------------------------------------------------------------------------------------
    def account(self) -> Account:
        """Return the account so far; write to the file what it lacks."""
        if self._journal is not None:
            self._write()
        kept = tuple(kept_round for kept_round in self._kept.rounds)
        return Account(self.header, self.state(), kept)

    def with_others(self, own: Account) -> list[Account]:
        """Return this rank's account and those of other ranks in the same folder, in rank order.

        Parameters
        ----------
        own : Account
            Account of this rank.
        """
        if self._journal is None:
            return [own]
        accounts = {account.header.rank: account for account in read_folder(self._journal.path.parent)}
        return [account for _, account in sorted({**accounts, self.header.rank: own}.items())]

    def state(self) -> State:
        """Return the current state."""
        return State(
            time=time.time(),
            seconds=time.perf_counter() - self._began,
            steps=self._steps,
            rounds=self._rounds,
            tau=self._tau,
            computing_s=self._computing_s,
            averaging_s=self._averaging_s,
            telemetry_s=self._telemetry_s,
            sent_bytes=self._sent,
            received_bytes=self._received,
            expected_sent_bytes=self._expected_sent,
            expected_received_bytes=self._expected_received,
            predicted=self._predicted,
            bits=self._bits.sample(),
            ratio=self._ratio.sample(),
            coordinate=self._coordinate.sample(),
            along=self._along.sample(),
            oblique=self._oblique,
            decline=self._decline,
            stride=self._kept.stride,
            ended=self._ended,
            beside_sent_bytes=self._beside_sent,
            beside_received_bytes=self._beside_received,
        )

    # -- one round ---------------------------------------------------------------------------------------
    def _messages(self, done: Round) -> float:
        """Record this rank's message; return its relative squared error, nan without a message."""
        if self.header.whole or self.header.rank not in self._members(done):
            return math.nan
        self._bits.add(done.bits[self.header.rank] - done.carried_bits)
        if not self.header.coordinates * LEAST**2 <= done.norm2 <= LARGEST**2:
            return math.nan  # zero movement, or outside the range of the claims
        ratio, along = done.error2 / done.norm2, 1 + done.error_along / done.norm2
        self._ratio.add(ratio)
        self._coordinate.add(done.error2 / self.header.coordinates)
        self._along.add(along)
        self._oblique = max(self._oblique, abs(ratio + along - 1))
        return ratio

    def _members(self, done: Round) -> Any:
        return self._mixing.members(done.index, self.header.size)

    def _bytes(self, done: Round) -> None:
        """Compare the counted bytes with the predicted ones, where they can be predicted."""
        h = self.header
        if h.extra_bytes is None:
            return
        members = self._members(done)
        place: dict[str, Any] = {"rank": h.rank, "members": members}
        if h.whole:
            n = h.d + h.tail
            model = of_vectors(n, value_bytes=h.value_bytes, mean_bytes=h.mean_bytes, size=h.size, **place)
        else:
            model = of_messages(done.bits, front=h.front, **place)
        beside = of_beside(self._worker.travelled, size=h.size, **place)
        extra = (h.size - 1) * h.extra_bytes
        self._predicted += 1
        sent, received = self._transport.handed_over
        self._sent += sent - self._before[0]
        self._received += received - self._before[1]
        self._beside_sent += beside[0]
        self._beside_received += beside[1]
        self._expected_sent += model[0] + beside[0] + extra
        self._expected_received += model[1] + beside[1] + extra

    def _end_comparisons(self, done: Round) -> None:
        """Store the parameters' checksum for the next round, if its models are compared."""
        looks = self._looks(done.index + 1) and self.header.common
        self._left_sum = checksum(self._worker.vector()) if looks else -1
        self._left_begins = self._worker.begins
        self._begun, self._optimizer_steps = -1, 0
        self._watch_optimizer()

    @staticmethod
    def _looks(index: int) -> bool:
        return index < NEARLY_ALL or index % EVERY_ROUND == 0

    def _kept_round(self, done: Round, steps: int, compute_s: float, averaging_s: float, ratio: float) -> KeptRound:
        model = self._worker.outgoing() if self._looking else None
        optimizer = self._worker.optimizer
        return KeptRound(
            index=done.index,
            steps=steps,
            tau=done.tau,
            compute_s=compute_s,
            averaging_s=averaging_s,
            bits=done.bits[self.header.rank] - done.carried_bits,
            ratio=ratio,
            away2=self._away2,
            model2=math.nan if model is None else _square(model),
            paired=self._paired,
            norm2=done.norm2,
            loss=math.nan if self._loss is None else float(self._loss),
            eta=math.nan if optimizer is None else learning_rate(optimizer.param_groups),
            checksum=-1 if model is None else checksum(model),
            sent=self._given if done.bits[self.header.rank] > 0 else math.nan,
            merged=self._merged,
            applied=math.nan if model is None else projection(model) - self._applied_from,
            rates=math.nan if optimizer is None else _rates(optimizer),
            optimizer_steps=-1 if self._hooked is None else self._optimizer_steps,
            begun=self._begun,
            still=self._still,
            key=_number(getattr(self._worker.sender, "key", None)) if done.bits[self.header.rank] > 0 else -1,
        )

    def _timed(self, work: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = work()
        self._inside_s += time.perf_counter() - began
        return result

    def _write(self) -> None:
        assert self._journal is not None
        self._journal.write(self._kept.take_fresh(), self.state())
        if self._journal.is_long:
            self._journal.begin_anew(self._kept.rounds, self.state())
        self._due = time.perf_counter() + EVERY_S


def _square(vector: torch.Tensor) -> float:
    """Return ``|v|^2``; entries are squared in their own precision and summed pairwise."""
    return float(torch.linalg.vector_norm(vector.detach())) ** 2


def _paired(own: torch.Tensor, decoded: torch.Tensor, mean: torch.Tensor, members: int) -> float:
    """Return <x, mean of the other ranks' decoded movements>, an unbiased estimate of <x, mean of their movements>."""
    return (members * float(own @ mean.to(own.dtype)) - float(own @ decoded)) / (members - 1)


_WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def checksum(vector: torch.Tensor) -> int:
    """Return a digest below 2^62 of a vector: the sum of its bits as integers."""
    words = vector.detach().contiguous().view(_WORDS[vector.element_size()])
    return int(words.sum(dtype=torch.int64)) & (1 << 62) - 1


def projection(vector: torch.Tensor) -> float:
    """Return the inner product with a fixed vector of entries in [-1, 1], in float64.

    It is linear, so a mean can be compared with its terms without sending a vector.
    """
    places = torch.arange(1, vector.numel() + 1, dtype=torch.float64, device=vector.device)
    return float(torch.cos(places * places.sqrt()) @ vector.detach().double())


def _rates(optimizer: torch.optim.Optimizer) -> float:
    rates = [group.get("lr") for group in optimizer.param_groups]
    numbers = [float(rate) for rate in rates if rate is not None]
    return math.fsum(numbers) if len(numbers) == len(rates) else math.nan


def _number(key: Any) -> int:
    """Return a digest of a key; -1 for None."""
    return -1 if key is None else zlib.crc32(repr(key).encode())
