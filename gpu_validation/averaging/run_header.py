"""Description of a run for its telemetry."""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from bounds.claims import NoClaim
from bounds.schedules import Fixed
from operators import Feedback, Identity, Operator, Size, specification
from operators.summed import Summed

from ..records.compression import Declared
from ..telemetry import Header
from .mixing import Full, Sampled
from .outer import BlockMomentum
from .settings import Settings
from .worker import Worker

OWED = "with error feedback the claim is about the movement plus the residual"
SUMS = Declared.of(NoClaim("a Summed claims only something about the mean"), Size())
SHARDS = Declared.of(NoClaim("in two shots the claim is about each shard"), Size())


def header_of(
    settings: Settings,
    worker: Worker,
    *,
    run: int,
    rank: int,
    size: int,
    whole: bool,
    tail: int,
    front: int,
    plain_transport: bool,
    exchange: str = "gather",
) -> Header:
    """Return the description of a run.

    ``plain_transport`` says that bytes are sent as ``ProcessTransport`` sends them.  Sizes and errors of shards
    ("two_shot", "sum" or nodes) are not predicted.
    """
    operator, mode = settings.operator, settings.mixing
    d = worker.anchor.numel()
    inner = operator.operator if isinstance(operator, Feedback) else operator
    members = mode.clients if isinstance(mode, Sampled) else size
    adapts = not isinstance(settings.rule, Fixed)
    in_shards = (exchange != "gather" or settings.ranks_per_node > 1) and not whole
    optimizer = worker.optimizer
    return Header(
        run=run,
        rank=rank,
        size=size,
        d=d,
        value_bytes=worker.vector().element_size(),
        mean_bytes=worker.anchor.element_size(),
        operator="" if whole and not isinstance(operator, Identity) else _named(operator),
        schedule=repr(settings.rule),
        mixing=repr(mode),
        optimizer="" if optimizer is None else type(optimizer).__name__,
        declared=None if whole or operator is None else _declared(operator, d, in_shards),
        projects=isinstance(operator, Operator) and bool(getattr(inner, "projects", False)),
        whole=whole,
        common=mode.common and not settings.merge.keeps_steps,
        members=members,
        buffers=sum(b.numel() for b in worker.buffers),
        tail=tail,
        front=front,
        extra_bytes=_extra_bytes(settings, mode, adapts) if plain_transport and not in_shards else None,
        plain_sgd=_plain_sgd(optimizer),
        host=socket.gethostname(),
        pid=os.getpid(),
        started=time.time(),
        carried_bits=0 if whole else settings.carried_bits(d, rank),
        outer=settings.moves_outside,
        uneven=settings.uneven,
        message_d=d if whole else settings.message_d(d, rank),
    )


def _named(operator: Operator | Feedback | Summed | None) -> str:
    if operator is None:
        return ""
    if isinstance(operator, Summed):
        return str(operator)
    if isinstance(operator, Feedback):
        return f"{operator.name}({_named(operator.operator)})"
    return specification(operator)


def _declared(operator: Operator | Feedback | Summed, d: int, in_shards: bool) -> Declared:
    if isinstance(operator, Summed):
        return SUMS
    if in_shards:
        return SHARDS
    try:
        carried = operator.carried_bits(d)
        size = operator.bits(d).without(carried)
        claim = NoClaim(OWED) if isinstance(operator, Feedback) else operator.claim(d)
    except ValueError as refused:
        return Declared.of(NoClaim(str(refused)), Size())
    return Declared.of(claim, size, are_stated=carried > 0)


def _extra_bytes(settings: Settings, mode: object, adapts: bool) -> int | None:
    """Return the bytes sent to each other rank besides model, buffers and message; None if unknown."""
    if settings.merge.optimizer_state == "average" or not isinstance(mode, Full | Sampled):
        return None
    numbers = (3 if adapts and not settings.measures and not settings.pacing.piggyback else 0) + (
        2 if isinstance(settings.outer, BlockMomentum) else 0
    )
    return 8 * numbers


def _plain_sgd(optimizer: Any) -> bool:
    groups = [] if optimizer is None else optimizer.param_groups
    return type(optimizer).__name__ == "SGD" and not any(g.get("momentum") or g.get("weight_decay") for g in groups)
