"""Periodic averaging (PASGD) for a training script: tau local steps, then an average of all models. ::

    averaging = PeriodicAveraging(model, optimizer, schedule=8, operator=QSGD(levels=16))
    for batch in data:
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        optimizer.step()
        averaging.step(value)
    averaging.average()

Averagings follow steps tau, 2 tau, ..., and those of a fragment are tau steps apart.  Every round, the first included,
has tau local steps.  A new tau takes effect with the next round.  With full averaging or sampled clients all ranks hold
bitwise equal models after each averaging, because every rank sums the same vectors in rank order.
"""

from __future__ import annotations

import os
import secrets
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import torch
import torch.distributed as dist

from bounds.schedules import Schedule
from operators import Feedback, Key, Operator
from operators.feedback.memoryless import warn_of_bias
from operators.summed import Summed

from ..processes.collectives import PLACE_BITS, ProcessTransport
from ..processes.quorum import NEW, Quorum
from ..processes.transport import NodeLinks
from ..records.round import Round as Round
from ..telemetry import Journal, Recorder
from .engine import Engine, HasEngine
from .exchange.parts import ExchangePart, exchange_of
from .membership.parts import All, Membership
from .merge.rules import Blocking, Merge
from .mixing import Full, Mixing
from .pacing.clock import WallClock
from .pacing.inputs import Closure
from .pacing.probing import MeasuredInputs, ThirdOrder
from .run_header import header_of
from .settings import Outer, Pacing, Settings, name_parts, place_of
from .structure import ranks_of, require_accepted_by_all
from .worker import Worker

DAY_S = 86_400.0


@contextmanager
def paused(
    transport: ProcessTransport, *, timeout_s: float, steps: int, leave_out: Callable[[float], None]
) -> Iterator[None]:
    """Inside, ranks may do unequal work; at the end all wait for the slowest, at most ``timeout_s`` seconds.

    ``leave_out`` receives the seconds that the pause has taken.

    Raises
    ------
    ValueError
        Unless timeout_s > 0.
    RuntimeError
        If a rank has ended or exceeds the time limit.
    """
    if not timeout_s > 0:
        raise ValueError(f"timeout_s must be > 0; got timeout_s = {timeout_s}")
    (group, spare), began = transport.group_with_timeout(timeout_s), time.monotonic()
    try:
        yield
    except BaseException:
        spare.failed = True  # other ranks wait in it
        raise
    try:
        dist.barrier(group=group)
    except RuntimeError as error:
        spare.failed = True
        raise RuntimeError(
            f"the pause after {steps} local steps did not end, because another rank has ended or is more than "
            f"timeout_s = {timeout_s:g} s late ({error})"
        ) from error
    leave_out(time.monotonic() - began)


if TYPE_CHECKING:
    from ..telemetry import Known, RunReport


class PeriodicAveraging(HasEngine):
    """Average this process's model periodically with the models of the other ranks of a process group.

    Parameters
    ----------
    model : Module
        Its parameters and buffers start with the values of rank 0, and a rank whose own differed warns.  They are only
        written in place: storage, offset and strides do not change.  Parameters with the same memory (tied weights) are
        sent once.  Parameters whose memory overlaps partly are refused.  Frozen parameters (``requires_grad=False``)
        are sent only at the start.  Parameters may be replaced, added, removed, frozen or unfrozen if all ranks do the
        same.  At the next averaging replaced parameters count as written.  After any other change all ranks take the
        exact mean of the whole models, whatever the operator and mixing, and the states of feedback and of the outer
        optimizer are dropped.
        A model that ``fully_shard`` has sharded over other ranks than those of ``process_group`` is averaged shard by
        shard: every rank exchanges its own shard with the ranks that have the same one.
    optimizer : Optimizer or None, optional
        The inner optimizer.  An adaptive schedule, ``optimizer_state`` and ``BlockMomentum`` need it.
    schedule : int or Schedule or Pacing or {"auto"}, optional
        Local steps per round (>= 1), a rule of ``bounds.schedules``, or "auto" for ``GradientRetention``.  "auto"
        measures D/Y and the share of a gradient that survives a round.  It needs no tuning, but a closure in ``step``.
        All ranks decide by the mean of their losses or measurements, and by the clock and learning rate of rank 0.  A
        ``Pacing`` adds the length of the run, a clock, and how losses travel.
    operator : Operator or Feedback or Summed or {"auto"} or None, optional
        Compresses the movement of a round; the short form of ``exchange=Gather(operator)``, ``Sum(operator)`` for a
        Summed and ``Candidates()`` for "auto".  A Feedback keeps its state from round to round.  None sends whole
        models in their own dtype.  Means are accumulated in float64 and kept in float32 or better, so that a bfloat16
        model keeps averagings that move it by less than its resolution.  Rank 0 emits ``operators.BiasWarning`` for an
        operator that claims only a contraction.
    exchange : Gather or TwoShot or Cheapest or Sum or Candidates or None, optional
        What is compressed and how it travels, instead of ``operator``; the attribute ``exchange`` names the choice.
        ``Candidates`` chooses operator, exchange and tau for every round from measurements
        (``bounds.schedules.RateAndRetention``).  It requires schedule="auto" and full averaging without telemetry.
    merge : Blocking or Corrected or Overwrite or Delayed or Eager, optional
        What an averaging does to a worker's model and optimizer state.  With ``Blocking`` the workers wait for the
        average.  With the others they may step while it travels in a thread with its own process group.  These, and
        fragments, need full averaging, and whole models travel in float32 or better.  ``Eager`` needs whole models.
    outer : callable or sequence of callable or BlockMomentum or None, optional
        The outer optimizer.  It moves the common model theta with theta - mean of the models as its gradient.
        Pass ``Nesterov(lr, momentum)``, ``SGD(lr, momentum)`` or any callable from a list of tensors to a torch
        optimizer, such as ``functools.partial(torch.optim.Adam, lr=0.1)``.  Its state is bitwise equal on all ranks and
        part of ``state_dict``.  None moves theta to the mean.  Every fragment has its own optimizer; a sequence has one
        entry per fragment.  ``BlockMomentum(beta)`` is a heavy ball in units of gradients.
    mixing : Mixing, optional
        ``Full()``, or a mode of ``gpu_validation.averaging.mixing``: elastic averaging, gossip or sampled clients.
    membership : All or Uneven or Nodes or Quorum, optional
        Who takes part.  ``Uneven()`` lets ranks have different numbers of steps; each rank ends with ``leave``.
        ``Nodes(n)`` sums exactly inside nodes of n ranks; ``links`` has the transports inside a node and between nodes,
        which count their own bytes.  It needs an operator that is not a Summed.  A ``Quorum`` continues without ranks
        that die, and admits new ones, while at least ``quorum.least`` ranks are present.  The quorum creates the
        process group.  A joining rank receives common model, outer optimizer and counters at a synchronisation.  It
        keeps its own inner optimizer and starts at ``total_steps``.  A quorum needs a fixed tau, operators without
        memory and ``Blocking()``.  All but ``All()`` need full averaging.
    key : Key, optional
        Seeds the operator's random streams; step and rank are filled in.
    process_group : ProcessGroup or ProcessTransport or None, optional
        The group of torch.distributed; None is the group of all ranks.  A transport is shared between several
        averagings, and counts the bytes of all of them.  It has its own group, which nothing else may use while an
        average is in flight.
    telemetry : bool or str or PathLike, optional
        True keeps the data of ``report`` in bounded memory.  A folder also receives it as JSON lines, at most one per
        second and rank, which ``ratedist attach`` reads from another process.  Telemetry sends no messages and
        changes no bit of the run.

    Raises
    ------
    ValueError
        For a model without parameters, a tau < 1, a missing optimizer, a mode that does not fit the group or the other
        settings, ranks with different settings, or a folder that cannot be written.

    Notes
    -----
    Every averaging replaces buffers that differ between ranks by their mean.  Integer buffers are summed exactly and
    rounded to the nearest.  Equal buffers keep every bit, and boolean ones are not changed.  Buffers with
    ``persistent=False`` are sent only at the start.
    """

    transport: ProcessTransport

    @name_parts()
    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        *,
        schedule: int | Schedule | Literal["auto"] | Pacing = 1,
        operator: Operator | Feedback | Summed | Literal["auto"] | None = None,
        exchange: ExchangePart | None = None,
        merge: Merge = Blocking(),  # noqa: B008  frozen
        outer: Outer | None = None,
        mixing: Mixing = Full(),  # noqa: B008  frozen
        membership: Membership = All(),  # noqa: B008  frozen
        key: Key = Key(0),  # noqa: B008  frozen
        process_group: dist.ProcessGroup | ProcessTransport | None = None,
        telemetry: bool | str | os.PathLike[str] = False,
    ) -> None:
        quorum = membership if isinstance(membership, Quorum) else None
        transport = process_group if isinstance(process_group, ProcessTransport) else None
        group = None if isinstance(process_group, ProcessTransport) else process_group
        refusal: Exception | None = None
        try:
            settings = Settings(
                Pacing.of(schedule), exchange_of(operator, exchange), merge, outer, mixing, membership, key
            )
            settings.check_optimizer(optimizer)
            if quorum is not None and (telemetry or process_group is not None):
                raise ValueError(
                    "a quorum makes the process group itself, and telemetry does not follow ranks that change: leave "
                    "telemetry and process_group out"
                )
            if settings.chooses and telemetry is not False:
                raise ValueError("telemetry does not follow operators that change: leave it out, or Candidates")
            ranks = None if quorum is not None else ranks_of(group if transport is None else transport.group)
            self._worker = Worker(model, optimizer, merge.modules, ranks)
            if place := place_of(model, settings):  # every shard has random streams of its own
                settings = replace(settings, key=settings.key.fold_in(place))
            for make in settings.outers:
                make([torch.zeros(2, requires_grad=True)])
        except Exception as error:
            if quorum is not None or not dist.is_initialized():
                raise
            refusal = error  # raised on all ranks
        if quorum is not None:
            quorum.form_group(NEW)
        shared = ProcessTransport(None, group) if transport is None else transport
        journal = None
        try:
            journal = None if refusal or isinstance(telemetry, bool) else Journal(telemetry, shared.rank)
        except (OSError, ValueError) as error:
            refusal = error
        if quorum is None:  # ranks of a quorum may die or join later
            require_accepted_by_all(shared, refusal)
        if transport is None:
            transport = ProcessTransport.with_own_group(group) if merge.in_flight else shared
        self.transport = transport
        if transport.rank == 0:
            compressed = settings.exchange.operator, settings.exchange.means
            warn_of_bias(*compressed, d=max(sum(p.numel() for p in model.parameters()), 1))
        run = torch.tensor([secrets.randbits(62)])
        self.transport.broadcast([[run]])  # on every rank, with or without telemetry, before any message is in flight
        super().__init__(Engine([self._worker], self.transport, settings, settings.pacing.clock or WallClock()))
        if telemetry is not False:
            recorder = self.engine.telemetry = self._recorder(int(run), journal)
            weakref.finalize(self, recorder.close)

    def _recorder(self, run: int, journal: Journal | None) -> Recorder:
        engine, size = self.engine, self.transport.size
        describe = partial(
            header_of,
            engine.settings,
            self._worker,
            run=run,
            rank=self.transport.rank,
            size=size,
            whole=engine.whole,
            tail=engine.payload.tail_values,
            front=PLACE_BITS + engine.payload.front_bits,
            plain_transport=type(self.transport) is ProcessTransport and not engine.settings.hidden_bytes,
            exchange=engine.exchange,
        )
        return Recorder(describe, self._worker, self.transport, engine.mixing, journal)

    def step(self, loss: torch.Tensor | float | None = None, closure: Closure | None = None) -> Round | None:
        """Count one local step; average after every tau-th.

        Parameters
        ----------
        loss : tensor or float or None, optional
            Loss of this step on this rank.  Schedules that use the loss need it.
        closure : Closure or None, optional
            Recomputes the gradient of this step, from zero_grad to backward with clipping and accumulation, and returns
            the loss.  schedule="auto" needs it and calls it at a cost of at most one step in 50.  Gradients, buffers
            and torch's generators are restored afterwards.

        Returns
        -------
        Round or None
            The record of the round if it ended, else None.

        Raises
        ------
        UnevenSteps
            If another rank has made a different number of steps.
        UnevenModels
            If another rank's model has other parameters.  Whole models have been averaged then: resume from a
            checkpoint.
        RuntimeError
            If another rank has ended.
        ValueError
            On every rank, if a movement or buffer of any rank is not finite (``recover`` continues then), or if ranks
            have different buffers or optimizer states to average.  Also without a closure that is needed.
        """
        self.engine.telemetry.record_loss(loss)
        accounts = self.engine.count([loss], [closure])
        return accounts[0] if accounts else None

    def leave(self) -> None:
        """End this rank's training; serve the averagings of the other ranks until they have left too.

        Every rank calls it in place of ``average``, once its data is used up.  Its steps since the last averaging count
        in the next one.  Later means are over the remaining ranks, and this rank only forwards their messages.  At the
        end all ranks hold the same model.  Meanwhile the script must not call other collectives of all ranks, such as a
        checkpoint.

        Raises
        ------
        ValueError
            Without ``membership=Uneven()``, or if this rank has left before.
        RuntimeError
            If another rank has ended.
        """
        self.engine.leave(self.transport.rank)

    def average(self) -> Round:
        """End the round now, after any number of steps; every rank must call it at the same step.

        Averages in flight are merged first.  Then all models become their mean.  This is one more exchange: an outer
        optimizer with momentum, or error feedback, moves the model even if no step was made since the last round.
        """
        return self.engine.end_round_now()[0]

    def pause(self, timeout_s: float = DAY_S) -> AbstractContextManager[None]:
        """Return a context in which ranks may do unequal work, such as an evaluation on rank 0.

        Every rank must enter and leave it between the same two local steps.  On leaving, all ranks wait for the slowest
        one, for up to ``timeout_s`` instead of the time limit of the process group.  The wait ends early if a rank has
        ended.  The time inside the context counts neither for schedules nor as time of local steps.

        Parameters
        ----------
        timeout_s : float, seconds, optional
            How long to wait for the slowest rank, > 0; one day by default.

        Raises
        ------
        ValueError
            Unless timeout_s > 0.
        RuntimeError
            If a rank has ended or exceeds the time limit.
        """
        return paused(self.transport, timeout_s=timeout_s, steps=self.total_steps, leave_out=self._leave_out)

    def _leave_out(self, away_s: float) -> None:
        self.engine.clock.leave_out(away_s)
        self.engine.telemetry.leave_out(away_s)

    def report(self, *, known: Known | None = None) -> RunReport:
        """Return the report of the run so far, with verdicts.

        It may be called at any time, on one rank or on all.  With a telemetry folder it covers all ranks that write to
        that folder, otherwise this rank alone.

        Parameters
        ----------
        known : Known or None, optional
            Known constants of the problem, which allow to predict the gain of a better tau.

        Raises
        ------
        ValueError
            Without telemetry.
        """
        recorder = self.engine.telemetry
        if not isinstance(recorder, Recorder):
            raise ValueError("a report needs telemetry: pass telemetry=True or a folder to PeriodicAveraging")
        account = recorder.account()
        from ..telemetry import report_of  # imports bounds and the calculator, which training does not need

        return report_of(recorder.with_others(account), known=known)

    @property
    def model(self) -> torch.nn.Module:
        """This rank's model."""
        return self._worker.model

    @property
    def parameters(self) -> Sequence[torch.Tensor]:
        """The averaged parameters, which are those that require a gradient."""
        return self._worker.parameters

    @property
    def anchor(self) -> torch.Tensor | None:
        """The model at which this rank's round began, shape (d,), in float32 (float64 for float64 models).

        With averages in flight it is the common model.  It is None where nothing needs it: without compression, outer
        step, elastic averaging, gossip or bfloat16.
        """
        if self.engine.overlapped is not None:
            return self.engine.overlapped.thetas()[0]
        return self._worker.anchor if self._worker.keeps_anchor else None

    @property
    def links(self) -> NodeLinks | None:
        """This rank's transports inside its node and between nodes; None without nodes."""
        nodes = self.engine.settings.ranks_per_node
        return None if nodes == 1 else self.transport.in_nodes(nodes)

    @property
    def third_order(self) -> ThirdOrder | None:
        """This rank's estimates of Q and the kurtosis, from the probes of "auto"; None for other schedules.

        They are not part of ``state_dict``: a resumed run estimates them again.
        """
        return self.engine.inputs.probes[0].third_order if isinstance(self.engine.inputs, MeasuredInputs) else None

    @property
    def takes_part(self) -> bool:
        """Whether this rank's steps count in the current round; always True unless clients are sampled."""
        return self.transport.rank in self.participants
