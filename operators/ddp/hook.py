"""The hook of a model: it compresses, exchanges and decodes the gradients of every bucket.

On the CPU all of it is done in a thread of its own, by a process group of its own, while the backward pass goes on; on
a GPU, whose work is queued, in the pass itself.  A bucket's messages are under way while the next bucket is encoded.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from ..allocation import WaterFilling
from ..exchange.choice import Choice, Exchange, choose, lengths
from ..exchange.nodes import check_nodes
from ..feedback.feedback import Feedback
from ..feedback.memoryless import warn_of_bias
from ..fingerprint import fingerprint, require_own_state
from ..key import Key
from ..summed.summed import Summed
from .assignment import Assignment
from .background import Background
from .bucket import Bucket, Layout
from .collectives import Counters
from .comm_hook import Copies
from .ends import GatherEnds, SumEnds, TwoShotEnds, fitted, is_coordinatewise
from .equal_settings import device_of, kinds, require_equal_settings
from .failures import Spare, explaining, not_a_number, raise_after_backward, spare_group
from .nodes import Nodes, in_nodes
from .phases import Ends, Link, Means, Phases, RankFailed, exchanged

log = logging.getLogger("operators")

Scope = Literal["bucket", "layer"]


@dataclass(eq=False)
class _Pending:
    """A bucket whose messages are on their way, and the future that the model waits for."""

    bucket: Bucket
    phases: Phases
    result: Any  # a future of the bucket's memory


class Hook(Copies, Counters):
    """The hook of a model: what it has sent, and what its ends remember.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    scope : str
        What part of the gradients is compressed at once.
    key : Key
        Stream of random numbers.
    group
        The processes that exchange.

    Attributes
    ----------
    exchange : str
        How messages travel.

    Notes
    -----
    A gradient that is not finite in binary32 raises ValueError on every rank, the same words, at the end of the
    backward pass.  Gradients are then NaN, and the ends remember what they did before the pass.  A script that catches
    the error skips the step, as a loss scaler does by itself, and makes the next pass.  States belong to parameters:
    buckets may be rebuilt, and a saved state fits a model whose buckets differ.  Within a bucket the
    parameters are compressed in the order of the model.
    """

    exchange: str
    assignment: Assignment | None = None

    def __init__(self, model: DistributedDataParallel, scope: str, key: Key, group: Any) -> None:
        super().__init__()
        if scope not in ("bucket", "layer"):
            raise ValueError(f'scope must be "bucket" or "layer"; got {scope!r}')
        self.scope, self.key, self.group = scope, key, group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        parameters = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
        for name, p in parameters.items():
            if not p.dtype.is_floating_point:
                raise ValueError(f"parameters must be floats; got {name} of {p.dtype}")
        self._names = {id(p): name for name, p in parameters.items()}
        self._numbers = {name: number for number, name in enumerate(parameters)}
        self._parameters = parameters
        self._nodes: Nodes | None = None

    def _note(self, method: Feedback | Summed, second: Feedback | None = None, ranks: int = 1, **further: Any) -> None:
        """Note the settings, which must be the same on all ranks and in a saved state."""
        settings = {
            "operator": method,
            "scope": self.scope,
            "exchange": self.exchange,
            "second": second,
            "ranks_per_node": ranks,
            "key": replace(self.key, step=0, rank=0),
            "model": kinds(self._parameters),
        }
        self._fingerprint = fingerprint(settings | further)

    def connect(self) -> None:
        """Compare the settings with those of the other ranks, and make what exchanges need.

        Raises
        ------
        ValueError
            On every rank, if one's arguments were refused or ranks differ; for a method that needs scope="layer".
        """
        parameters, group = self._parameters, self.group
        device = device_of(group, parameters)
        require_equal_settings(self._fingerprint, group=group, device=device)
        self._ends = self._made_ends({name: p.shape for name, p in parameters.items()}, device)
        on_cpu = not any(p.is_cuda for p in parameters.values())
        self._background = Background() if on_cpu else None
        self._spares: list[Spare] = [] if self._nodes is None else list(self._nodes.spares)
        if on_cpu and self._nodes is None:  # the pass itself may make collectives, in whatever order to the thread's
            group, spare = spare_group(group, self, device=device)
            self._spares.append(spare)
        self._link = Link(group if self._nodes is None else self._nodes.between, device, self)
        self._pending: list[_Pending] = []
        self._results: list[torch.futures.Future[torch.Tensor]] = []  # of the buckets of this pass
        self._failures: list[Exception] = []  # of means of this pass
        self._passing: list[tuple[Bucket, Any]] = []  # all buckets of this pass, with the futures that the model has
        self._before: Any = None  # what was remembered before this pass
        self._refused = False  # this pass, by all ranks

    @abstractmethod
    def _made_ends(self, shapes: Mapping[str, torch.Size], device: torch.device) -> Ends:
        """Return this rank's ends; called by all ranks at once."""

    # -- one bucket --------------------------------------------------------------------------------------
    def reduce(self, gradients: Any) -> torch.futures.Future[torch.Tensor]:
        """Return the future of a bucket's mean; called by the model for every bucket, in the same order on all ranks.

        The lengths of one bucket are waited for when the next one is ready, and the last bucket's at once: so
        all ranks start their collectives in the same order, and all before the model starts its own.  On the CPU the
        last call waits for the thread, and raises what went wrong in it, for any bucket.

        Parameters
        ----------
        gradients : GradBucket
            What the model hands to its hook.

        Raises
        ------
        ValueError
            On every rank, for a gradient that is not finite, or that a rank could not compress.
        RuntimeError
            If a rank has gone.
        """
        if gradients.index() == 0:
            if self._background is not None:
                self._background.begin()
            self._pending, self._results, self._failures = [], [], []  # left over from a pass that failed
            self._passing, self._before, self._refused = [], self._kept(), False
            self._mark_groups(failed=True)  # until the pass has ended: others may wait in them
        bucket = Bucket(gradients, self._names, self._numbers, self.steps)
        last = bool(gradients.is_last())
        result: Any = torch.futures.Future(devices=[bucket.buffer.device] if bucket.buffer.is_cuda else None)
        self._passing.append((bucket, result))
        try:
            with explaining(f"the gradients of step {self.steps}"):
                self._advance_pass(bucket, result, last)
        except RankFailed as refused:
            self._refuse(refused)
        self.steps += last
        if last:
            if self.assignment is not None and not self._refused:
                self.assignment.step()
            self._passing, self._before = [], None
            self._mark_groups(failed=False)
        return result

    def _mark_groups(self, *, failed: bool) -> None:
        for spare in self._spares:
            spare.failed = failed

    def _advance_pass(self, bucket: Bucket, result: Any, last: bool) -> None:
        if self._refused:
            result.set_result(not_a_number(bucket.buffer))
        elif self._background is None:
            self._take(bucket, result, last)
        else:
            self._background.start(partial(self._take, bucket, result, last))
            if last:
                self._background.finish()

    def _refuse(self, refused: RankFailed) -> None:
        """End the pass with gradients of NaN, as all ranks do, and raise the error behind it."""
        self._refused, self._pending = True, []
        self._put_back(self._before)
        for bucket, result in self._passing:
            not_a_number(bucket.buffer)
            if not result.done():
                result.set_result(bucket.buffer)
        raise_after_backward(refused)

    def _take(self, bucket: Bucket, result: Any, last: bool) -> None:
        """Begin the exchange of a bucket, and go on with those before it."""
        pending = _Pending(bucket, self._exchange(bucket), result)
        next(pending.phases)
        self._pending.append(pending)
        self._results.append(result)
        self._advance(self._pending if last else self._pending[:-1])
        if last:
            self._finish()

    def _exchange(self, bucket: Bucket) -> Phases:
        """Return the phases of a bucket."""
        return exchanged(bucket, self._ends, self._link)

    def _advance(self, buckets: Sequence[_Pending]) -> None:
        """Go one phase on with each bucket, the oldest first: the same collectives in the same order on all ranks."""
        for pending in tuple(buckets):
            try:
                next(pending.phases)
            except StopIteration as stop:
                self._pending.remove(pending)
                _hand_over(stop.value, pending, self._failures, self.assignment)

    def _finish(self) -> None:
        """Go on to the end; what fails in the background is raised here, for the model would garble its words."""
        while self._pending:
            self._advance(self._pending)
        for result in self._results:
            result.wait()
        if self._failures:
            raise self._failures[0]

    def _kept(self) -> tuple[Any, Any]:
        """Return what is remembered, for ``_put_back``; nothing is copied."""
        return self._ends.kept(), self.assignment and self.assignment.kept()

    def _put_back(self, kept: tuple[Any, Any]) -> None:
        """Remember what ``_kept`` returned."""
        ends, assigned = kept
        self._ends.put_back(ends)
        if self.assignment is not None:
            self.assignment.put_back(assigned)

    # -- restart -----------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return states and counters of this rank: tensors and plain values only.  Call it between steps."""
        return {
            "fingerprint": dict(self._fingerprint),
            "place": [self.rank, self.size],
            "counters": self.counted,
            **self._ends.to_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where ``state_dict`` was taken.

        Parameters
        ----------
        state : mapping
            What the method remembers.

        Raises
        ------
        ValueError
            For the state of another rank or number of ranks, of another model or method; nothing has changed then.
        """
        state = require_own_state(state, self._fingerprint, of="this hook")
        if list(state["place"]) != [self.rank, self.size]:
            rank, size = state["place"]
            raise ValueError(
                f"the state is of rank {rank} of {size}; this is rank {self.rank} of {self.size}: "
                "states cannot be moved, start without one"
            )
        before = self._kept()
        try:
            self._load(state)
        except BaseException:
            self._put_back(before)
            raise

    def _load(self, state: Mapping[str, Any]) -> None:
        self._ends.load_dict(state)
        self.counted = state["counters"]


class CompressedGradients(Hook):
    """The hook of a model, made by ``register``: what it has sent, and the states of its feedback.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    method : Feedback
        The compressor or the method of error feedback.
    scope : str
        What part of the gradients is compressed at once.
    key : Key
        Stream of random numbers.
    group
        The processes that exchange.
    exchange : Exchange
        How messages travel.
    second : Feedback
        Compresses the means of two shots.
    ranks_per_node : int, optional
        Ranks that sum exactly among themselves.
    allocation : WaterFilling or None, optional
        Gives parameters different numbers of bits.

    Attributes
    ----------
    exchange : str
        "gather" or "two_shot".
    assignment : Assignment or None
        The method of each parameter, with an allocation.
    inside : Counters
        What is sent inside nodes, which the other counters leave out.

    Notes
    -----
    See ``Hook``.  In steps in which no rank uses a parameter, the model discards what its hook returns for it, and what
    error feedback sent of its residual is lost.
    """

    def __init__(
        self,
        model: DistributedDataParallel,
        method: Feedback,
        scope: str,
        key: Key,
        group: Any,
        exchange: Exchange,
        second: Feedback,
        ranks_per_node: int = 1,
        allocation: WaterFilling | None = None,
    ) -> None:
        super().__init__(model, scope, key, group)
        if allocation is not None and scope != "layer":
            raise ValueError(f'an allocation gives layers different bits; got scope = {scope!r}: pass scope="layer"')
        self.method, self.second, parameters = method, second, self._parameters
        self.inside = Counters()
        check_nodes(self.size, ranks_per_node)
        self._members = self.size // ranks_per_node
        entries = {name: -(-p.numel() // ranks_per_node) for name, p in parameters.items()}
        if allocation is not None:  # the exchange depends on the methods; the lengths of messages on the exchange
            self.assignment = Assignment(method, allocation, {name: [d] for name, d in entries.items()}, self._members)
        self.exchange = self._choose(exchange, entries)
        if allocation is not None:
            pieces = {name: self._pieces(p.numel(), ranks_per_node) for name, p in parameters.items()}
            self.assignment = Assignment(method, allocation, pieces, self._members)
        later = second if self.exchange == "two_shot" else None
        further = {} if allocation is None else {"allocation": allocation}
        self._note(method, later, ranks_per_node, **further)
        if self.rank == 0:
            warn_of_bias(method, later, d=max(sum(entries.values()), 1))
        self._ranks_per_node = ranks_per_node

    def _choose(self, exchange: Exchange, sizes: Mapping[str, int]) -> str:
        """Return the exchange, the same on every rank, by what the operators declare for the whole model."""
        if self.scope == "bucket":
            units = [(self.method, self.second, sum(sizes.values()))]
        else:
            units = [(self._method_of(name), self._second_of(name), size) for name, size in sizes.items() if size]
        choices = [choose(exchange, first, second, d=d, m=self._members) for first, second, d in units]
        gather, two_shot = (sum(c.gather_bytes for c in choices), sum(c.two_shot_bytes for c in choices))
        if exchange != "auto":
            return exchange
        choice = Choice("two_shot" if two_shot < gather else "gather", gather, two_shot)
        log.info("%s", choice)
        return choice.exchange

    def _pieces(self, size: int, ranks_per_node: int) -> list[int]:
        """Return the entries of the messages in which a rank, or the ranks of a node, send a parameter."""
        shards = lengths(size, ranks_per_node)
        return shards if self.exchange == "gather" else [n for d in shards for n in lengths(d, self._members)]

    def _method_of(self, name: str) -> Feedback:
        """Return the present method of a parameter."""
        return self.method if self.assignment is None else self.assignment.method_of(name)

    def _second_of(self, name: str) -> Feedback:
        """Return the present method of the means of a parameter; a second operator that was passed is fixed."""
        return self._method_of(name) if self.second is self.method else self.second

    def _made_ends(self, shapes: Mapping[str, torch.Size], device: torch.device) -> Ends:
        """Return this rank's ends; in two shots a shard has no shape that a matrix method could take."""
        if self._ranks_per_node > 1:
            self._nodes = Nodes.of(self.group, self._ranks_per_node, self, device=device)
        layerwise, key, sizes = self.scope == "layer", self.key, {name: s.numel() for name, s in shapes.items()}
        place = {"rank": self.rank * self._members // self.size, "m": self._members}
        if self._nodes is not None:
            key = key.fold_in(self._nodes.place)
            sizes = {name: lengths(size, self._nodes.ranks)[self._nodes.place] for name, size in sizes.items()}
        methods = {self.method} if self.exchange == "gather" else {self.method, self.second}
        for method in methods:
            if not layerwise and not is_coordinatewise(method, sum(sizes.values())):
                raise ValueError(f'{method.name} keeps a state that no bucket can share: pass scope="layer"')
        if self.exchange == "gather":
            matrices = {name: fitted(self.method, shape) for name, shape in shapes.items() if self._nodes is None}
            of_parameter = self._method_of if self.assignment else lambda name: matrices.get(name, self.method)
            return GatherEnds(Layout(self.method, of_parameter, layerwise, self._numbers, key), sizes, **place)
        first, second = (
            Layout(method, of_parameter, layerwise, self._numbers, key)
            for method, of_parameter in ((self.method, self._method_of), (self.second, self._second_of))
        )
        return TwoShotEnds(first, second, sizes, **place)

    def _exchange(self, bucket: Bucket) -> Phases:
        if self._nodes is None:
            return super()._exchange(bucket)
        return in_nodes(bucket, self._ends, self._link, self._nodes, self.inside)

    def state_dict(self) -> dict[str, Any]:
        """Return states and counters of this rank: tensors and plain values only.  Call it between steps."""
        allocation = {} if self.assignment is None else {"allocation": self.assignment.to_dict()}
        return {**super().state_dict(), "inside": self.inside.counted, **allocation}

    def _load(self, state: Mapping[str, Any]) -> None:
        super()._load(state)
        if self.assignment is not None:
            self.assignment.load_dict(state["allocation"])
        self.inside.counted = state.get("inside", [0, 0, 0, 0])


class SummedGradients(Hook):
    """The hook of gradients that are summed on the way.

    Parameters
    ----------
    model : DistributedDataParallel
        The model.
    method : Summed
        The compressor.
    scope : str
        What part of the gradients is compressed at once.
    key : Key
        Stream of random numbers.
    group
        The processes that exchange.

    Attributes
    ----------
    exchange : str
        "sum".

    Notes
    -----
    See ``Hook``.  What a rank sends does not grow with the number of ranks.  All ranks get the same gradient.
    """

    exchange = "sum"

    def __init__(self, model: DistributedDataParallel, method: Summed, scope: str, key: Key, group: Any) -> None:
        if not isinstance(method, Summed):
            raise TypeError(f"method must be summed on the way, as SharedScale is; got {method!r}: use register")
        super().__init__(model, scope, key, group)
        if scope == "bucket" and not method.coordinatewise:
            raise ValueError(f'{method.name} keeps a state that no bucket can share: pass scope="layer"')
        self.method = method
        self._note(method)

    def _made_ends(self, shapes: Mapping[str, torch.Size], device: torch.device) -> Ends:
        place: dict[str, Any] = {"numbers": self._numbers, "key": self.key, "rank": self.rank, "m": self.size}
        return SumEnds(self.method, shapes, layerwise=self.scope == "layer", **place)


def _hand_over(means: Means, pending: _Pending, failures: list[Exception], assignment: Assignment | None) -> None:
    """Write the means into the bucket when they come, and give its memory to the model; keep the error."""

    def write(done: Means) -> None:
        try:
            if assignment is not None:
                assignment.observe(pending.bucket.names, done.value())
            pending.result.set_result(pending.bucket.write(done.value()))
        except Exception as error:
            failures.append(error)
            pending.result.set_result(not_a_number(pending.bucket.buffer))

    means.add_done_callback(write)
