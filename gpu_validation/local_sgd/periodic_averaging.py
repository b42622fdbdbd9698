"""PASGD for a training script: local steps, and every tau of them an averaging. ::

    averaging = PeriodicAveraging(model, optimizer, schedule=8, operator=QSGD(levels=16))
    for batch in data:
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()
        averaging.step(value)
    averaging.average()

Synchronisations come after steps tau, 2 tau, ...: every round, the first included, has tau local steps, and a new
tau begins with a new round.  With full averaging or sampled clients all ranks hold the same model after each of
them, bit for bit, because every rank folds the same vectors in rank order.
"""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
import torch.distributed as dist

from bounds.schedules import Schedule, State
from operators import Feedback, Key, Operator
from operators.exchange import Exchange
from operators.summed import Summed

from ..distributed.collectives import PLACE_BITS, ProcessTransport
from ..distributed.quorum import NEW, Quorum
from ..distributed.transport import NodeLinks
from ..records.round import Round as Round
from ..telemetry import Journal, Recorder
from .clock import Clock, WallClock
from .config import OptimizerState, Settings
from .gradient_probe import Closure
from .ladder import Ladder, apart
from .merge_rules import Overlap
from .mixing import Mixing
from .outer import OuterFactory
from .pause import DAY_S, paused
from .run_header import header_of
from .structure import require_accepted_by_all
from .survival import SurvivingRounds
from .worker import Worker

if TYPE_CHECKING:
    from ..telemetry import Known, RunReport


class PeriodicAveraging(SurvivingRounds):
    """Periodic averaging of this process's model with those of the other ranks of a process group.

    Parameters
    ----------
    model : Module
        Its parameters and buffers start as rank 0's.  They are only written to in place: storage, offset and strides
        stay as they are.  Parameters in the same memory (tied weights) are sent once; two that share only a part of
        it are refused.  Frozen parameters, which require no gradient, are sent at the start only.  Parameters may be
        replaced, added, removed, frozen or unfrozen on all ranks alike.  At the next averaging replaced ones count as
        written to; else all ranks get the exact mean of whole models, whatever the operator and the mixing, and what
        feedback and the outer optimizer remember is dropped.
    optimizer : Optimizer or None, optional
        The inner one; needed if the schedule adapts, for ``optimizer_state`` and for ``block_momentum``.
    schedule : int or Schedule or {"auto"}, optional
        Local steps a round, a rule of ``bounds.schedules``, or "auto", which is ``GradientRetention``: it measures D/Y
        and how much of a gradient survives a round, and needs no tuning, but a closure in ``step``.  All ranks decide
        by the mean of their losses or measurements, by rank 0's clock and learning rate.
    operator : Operator or Feedback or Summed or Ladder or {"auto"} or None, optional
        Compresses the movement of a round; a Feedback keeps its state from round to round; a Summed is added on the way
        (``operators.summed``), and ``exchange`` is then "sum". "auto", or a ``Ladder`` of one's own, chooses operator
        and exchange anew for every round, with tau and by what is measured (``bounds.schedules.RateAndRetention``);
        only with schedule="auto", full averaging that is waited for, and no telemetry. None sends whole models in their
        own dtype. Means are taken in float64 and kept in float32 or better, so that a bfloat16 model loses nothing of
        an averaging that moves it by less than its resolution.
    mixing : Mixing or {"full"}, optional
        "full", or a mode of ``gpu_validation.local_sgd.mixing``: elastic averaging, gossip, sampled clients.
    process_group : ProcessGroup or None, optional
        Of torch.distributed; by default that of all ranks.
    transport : ProcessTransport or None, optional
        One to share between several averagings, so that it counts the bytes of all; it brings its own group, which
        nothing else may use while an average is in flight.
    key : Key, optional
        Of the operator's randomness; step and rank are filled in.
    optimizer_state : OptimizerState, optional
        What an averaging does to it: keep each worker's own, average it, or reset it (local momentum restarts from
        zero, as AdaComm prescribes).  An average goes by the names of the parameters: a rank without a moment counts as
        zero, and counters become the largest.
    block_momentum : float, optional
        beta of u <- beta u + G, x <- anchor - eta u, where G is the mean sum of gradients of a round: the outer heavy
        ball in units of gradients.
    steps : int or None, optional
        Of the whole run, if known.
    clock : Clock or None, optional
        What the schedule and the record of events go by.
    telemetry : bool or str or PathLike, optional
        True keeps what ``report`` needs in bounded memory; a folder also gets it as JSON lines, at most one a second
        and rank, which ``gpu-validation attach`` shows from another process.  Nothing is sent for it: the run is the
        same, bit for bit and byte for byte.
    piggyback : bool, optional
        Whether loss, clock and learning rate that a schedule looks at travel with the models, by the clock before the
        averaging, and not in a collective of their own after it; full averaging only.
    exchange : {"gather", "two_shot", "auto"}, optional
        How compressed movements become their mean.  "gather": every rank sends its message to all, (m - 1) b bits a
        coordinate.  "two_shot": every rank sends each shard to its owner, which sends the compressed mean of its shard
        to all, (1 - 1/m)(b1 + b2) bits.  "auto" takes what sends fewer bytes by the operators' declared sizes; the
        attribute ``exchange`` says which.  Whole models are summed exactly, whatever it is.
    second : Operator or Feedback or None, optional
        Compresses the means of two shots; by default ``operator``, so that a Feedback keeps a residual at both ends.
    errors : bool, optional
        Whether a rank also measures what compression has done to its own movement (``error2``, ``norm2`` and
        ``error_along`` of its rounds, which telemetry reports); in two shots it decodes its own shards for that.
    outer : callable or None, optional
        The outer optimizer, which moves the common model theta by theta - mean of the models as its gradient:
        ``Nesterov(lr, momentum)``, ``SGD(lr, momentum)``, or what makes any optimizer of torch from a list of tensors,
        such as ``functools.partial(torch.optim.Adam, lr=0.1)``.  Its state is the same on all ranks, bit for bit, and
        part of ``state_dict``.  None moves theta to the mean.
    overlap : {"none", "corrected", "overwrite", "delayed", "eager"}, optional
        What becomes of the steps that are made while an average is in flight, which then travels in a thread and by a
        process group of its own; "none" waits for it.  "corrected" adds them to the new common model, "overwrite" drops
        them; "delayed" merges a round's average at the end of the next one, "eager" takes this rank's share of it at
        once.  Needs full averaging.  Whole models then travel in float32 or better, also where parameters have less.
    delay : int or None, optional
        Local steps between the send, ``delay`` steps before the end of a round, and the merge, of "corrected" and
        "overwrite"; at most tau.  None is the whole round.
    fragments : int, optional
        Parts of the model, of equal length, whose rounds of tau steps end one after the other, tau/fragments steps
        apart.
    ranks_per_node : int, optional
        More than 1: as many consecutive ranks sum their movements exactly among themselves, each a shard, and nodes
        exchange the compressed means of those as ``exchange`` says, so that a node sends over the slow link what one
        rank would.  ``links`` has the transports inside the node and between nodes, which count their own bytes.
        Needs an operator that is not summed on the way, and full averaging.
    uneven : bool, optional
        Whether ranks may have different numbers of local steps to make: each ends by ``leave``.  Every averaging, or
        message in flight, then begins with a roll call of 8 bytes from every rank to every other.  Full averaging only.
    quorum : Quorum or None, optional
        Go on without ranks that die, and let others in, as long as its smallest number is there; it makes the process
        group when the averaging is made.  One that joins, or joins again, gets the common model, the outer optimizer
        and the counters of the others at a synchronisation, and keeps an inner optimizer of its own; it begins at
        ``total_steps``.  A fixed tau, full averaging, operators without memory, nothing in flight.

    Raises
    ------
    ValueError
        For a model without parameters, a tau < 1, a missing optimizer, a mode that does not fit the group or the other
        settings, ranks that are configured differently, or a folder that cannot be written to.

    Notes
    -----
    Buffers that differ between ranks become their mean in every averaging: floating-point ones and integer ones, which
    are summed exactly and rounded to the nearest.  Equal ones keep every bit, and boolean ones stay as they are.  Those
    with ``persistent=False`` are sent at the start only.
    """

    transport: ProcessTransport

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        schedule: int | Schedule | Literal["auto"] = 1,
        operator: Operator | Feedback | Summed | Ladder | Literal["auto"] | None = None,
        mixing: Mixing | Literal["full"] = "full",
        process_group: dist.ProcessGroup | None = None,
        transport: ProcessTransport | None = None,
        key: Key = Key(0),  # noqa: B008  frozen
        optimizer_state: OptimizerState = "keep",
        block_momentum: float = 0.0,
        steps: int | None = None,
        clock: Clock | None = None,
        telemetry: bool | str | os.PathLike[str] = False,
        piggyback: bool = False,
        exchange: Exchange = "gather",
        second: Operator | Feedback | None = None,
        errors: bool = True,
        outer: OuterFactory | None = None,
        overlap: Overlap = "none",
        delay: int | None = None,
        fragments: int = 1,
        ranks_per_node: int = 1,
        uneven: bool = False,
        quorum: Quorum | None = None,
    ) -> None:
        if transport is not None and process_group is not None:
            raise ValueError("give process_group or transport, not both: the transport has its own group")
        refusal: Exception | None = None
        try:
            fixed, ladder = apart(operator)
            settings = Settings(
                schedule,
                fixed,
                mixing,
                key,
                optimizer_state,
                block_momentum,
                steps,
                piggyback=piggyback,
                exchange=exchange,
                second=second,
                errors=errors,
                outer=outer,
                overlap=overlap,
                delay=delay,
                fragments=fragments,
                ranks_per_node=ranks_per_node,
                uneven=uneven,
                least=0 if quorum is None else quorum.least,
                ladder=ladder,
            )
            settings.check_optimizer(optimizer)
            if quorum is not None and (telemetry or transport is not None or process_group is not None):
                raise ValueError(
                    "a quorum makes the process group itself, and telemetry does not follow ranks that change: leave "
                    "telemetry, transport and process_group out"
                )
            if settings.chooses and telemetry is not False:
                raise ValueError('telemetry does not follow operators that change: leave it out, or operator="auto"')
            self._worker = Worker(model, optimizer)
            if outer is not None:
                outer([torch.zeros(2, requires_grad=True)])
        except Exception as error:
            if quorum is not None or not dist.is_initialized():
                raise
            refusal = error  # raised on all ranks
        if quorum is not None:
            quorum.meet(NEW)
        shared = ProcessTransport(None, process_group) if transport is None else transport
        journal = None
        try:
            journal = None if refusal or isinstance(telemetry, bool) else Journal(telemetry, shared.rank)
        except (OSError, ValueError) as error:
            refusal = error
        if quorum is None:  # ranks of a quorum may die, and others join without them
            require_accepted_by_all(shared, refusal)
        if transport is None:
            transport = ProcessTransport.apart(process_group) if settings.overlaps else shared
        self.transport = transport
        run = torch.tensor([secrets.randbits(62)])
        self.transport.broadcast([[run]])  # by every rank, with telemetry or without, before a message may be under way
        super().__init__([self._worker], self.transport, settings, clock or WallClock(), quorum)
        if telemetry is not False:
            self.telemetry = self._recorder(int(run), journal)
            weakref.finalize(self, self.telemetry.close)

    def _recorder(self, run: int, journal: Journal | None) -> Recorder:
        size = self.transport.size
        describe = partial(
            header_of,
            self.settings,
            self._worker,
            run=run,
            rank=self.transport.rank,
            size=size,
            whole=self.whole,
            tail=self.payload.tail_values,
            front=PLACE_BITS + self.payload.front_bits,
            plain_transport=type(self.transport) is ProcessTransport and not self.settings.hidden_bytes,
            exchange=self.exchange,
        )
        return Recorder(describe, self._worker, self.transport, self.mixing, journal)

    def step(self, loss: torch.Tensor | float | None = None, closure: Closure | None = None) -> Round | None:
        """Count one local step; average after every tau-th.

        Parameters
        ----------
        loss : tensor or float or None, optional
            Of this step, on this rank; needed by schedules that look at it.
        closure : Closure or None, optional
            Computes the gradient of this step again, from zero_grad to backward, clipping and accumulation included,
            and returns the loss; needed by "auto", which calls it once in the time of 50 steps at most, and leaves
            gradients, buffers and torch's generators as they were.

        Returns
        -------
        Round or None
            The round's account, or None.

        Raises
        ------
        UnevenSteps
            If another rank has made fewer or more steps, and UnevenModels if its model has other parameters (whole
            models have been averaged then: resume from a checkpoint).
        RuntimeError
            If one has gone.
        ValueError
            On every rank, if one's movement, buffer or loss is not finite (``recover`` continues then), and if ranks
            have different buffers or optimizer states to average; without a closure that is needed.
        """
        self.telemetry.record_loss(loss)
        accounts = self.count([loss], [closure])
        return accounts[0] if accounts else None

    def leave(self) -> None:
        """End this rank's training, and serve the others' averagings until they have left too.

        Every rank ends its run so, in place of ``average``, after as many local steps as it has data for.  What a rank
        has done since the last averaging counts in the next one as any rank's movement; from then on means are over
        those that are left, and this rank moves messages for them without a model of its own.  At the end all ranks
        hold the same model.  Meanwhile the script must make no other collective of all ranks, such as a checkpoint.

        Raises
        ------
        ValueError
            Unless the averaging was made with ``uneven=True``, or if this rank has left before.
        RuntimeError
            If another rank has gone.
        """
        self.depart(self.transport.rank)

    def average(self) -> Round:
        """End the round now, however many steps it has had; every rank must do so at the same step.

        What is in flight is merged, and then all models become their mean.
        """
        return self.end_round_now()[0]

    def pause(self, timeout_s: float = DAY_S) -> AbstractContextManager[None]:
        """Let ranks do unequal things, such as an evaluation on rank 0: at the end all wait for the slowest one.

        Every rank must enter and leave it, between the same two local steps.  Collectives of the process group give up
        after its time-out; this wait after ``timeout_s``, or as soon as a rank has ended.  The time within does not
        count for schedules that go by the clock, nor as time of local steps.

        Parameters
        ----------
        timeout_s : float, seconds, optional
            How long the others wait.

        Raises
        ------
        ValueError
            Unless timeout_s > 0.
        RuntimeError
            If a rank has ended or comes too late.
        """
        return paused(self.transport, timeout_s=timeout_s, steps=self.total_steps, leave_out=self._leave_out)

    def _leave_out(self, away_s: float) -> None:
        self.clock.leave_out(away_s)
        self.telemetry.leave_out(away_s)

    def report(self, *, known: Known | None = None) -> RunReport:
        """Return what the run tells about itself so far, judged; this rank alone calls it, or all do, at any time.

        With a folder all ranks that write to the same one are heard, else this rank alone.

        Parameters
        ----------
        known : Known or None, optional
            Constants of the problem, for what a better tau would gain.

        Raises
        ------
        ValueError
            Without telemetry.
        """
        if not isinstance(self.telemetry, Recorder):
            raise ValueError("a report needs telemetry: give PeriodicAveraging(..., telemetry=True) or a folder")
        account = self.telemetry.account()
        from ..telemetry import report_of  # bounds and the calculator, which training does without

        return report_of(self.telemetry.with_others(account), known=known)

    @property
    def model(self) -> torch.nn.Module:
        """This rank's model."""
        return self._worker.model

    @property
    def parameters(self) -> Sequence[torch.Tensor]:
        """The parameters that are averaged, which are those that require a gradient."""
        return self._worker.parameters

    @property
    def anchor(self) -> torch.Tensor | None:
        """Where this rank's round began, shape (d,), in float32 (float64 for float64); in flight, the common model.

        None where nothing needs it: without compression, an outer step, elastic averaging, gossip or bfloat16.
        """
        if self.overlapped is not None:
            return self.overlapped.thetas()[0]
        return self._worker.anchor if self._worker.keeps_anchor else None

    @property
    def links(self) -> NodeLinks | None:
        """This rank's transports inside its node and between nodes; None where there are none."""
        nodes = self.settings.ranks_per_node
        return None if nodes == 1 else self.transport.in_nodes(nodes)

    @property
    def tau(self) -> int:
        """Local steps of the current round; 0 before an adaptive schedule has seen the first one."""
        return self.periods.tau

    @property
    def schedule_state(self) -> State:
        """What the schedule knows; with "auto" also n = D/Y, the decline and the loss jump, in its own words."""
        return self.periods.rule

    @property
    def total_steps(self) -> int:
        """Local steps made so far."""
        return self.periods.total_steps

    @property
    def takes_part(self) -> bool:
        """Whether this rank's steps count in the current round; without sampled clients they always do."""
        return self.transport.rank in self.participants
