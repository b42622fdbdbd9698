"""What one rank knows of its run: how it is set up, and where it stands."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from bounds.claims import NoClaim
from bounds.schedules import Fixed
from operators import Feedback, Identity, Operator, Size, specification

from ..mixing import Full, Sampled
from ..records import Declared, Sample, plain
from ..settings import Settings
from ..worker import Worker
from .samples import KeptRound

VERSION = 1  # of the lines in a folder
OWED = "with memory the operator is given the movement and what it owes, and its claim is about that"


@dataclass(frozen=True)
class Header:
    """How a run is set up, as one rank saw it at its start.

    run : a number that all ranks of one start share.  rank, size, host, pid, started : who wrote it, and when (UNIX
    seconds).  d : parameters.  value_bytes, mean_bytes : of one of them as it is sent, and of one of the mean.
    operator, schedule, mixing, optimizer : in words; operator is "" where whole models are sent.
    declared : what the operator promises at d.  projects : whether <C(x), C(x) - x> is to be 0.
    whole : whether whole models are sent.  common : whether all ranks start a round at one point.
    members : ranks that take part in an averaging.  buffers : numbers in buffers, averaged as float64.
    tail : numbers behind a whole model.  front : bits before a message.  extra_bytes : handed to each other rank in an
    averaging beside the model, None if that is not known beforehand.  plain_sgd : no momentum, no preconditioner.
    """

    run: int
    rank: int
    size: int
    d: int
    value_bytes: int
    mean_bytes: int
    operator: str
    schedule: str
    mixing: str
    optimizer: str
    declared: Declared | None
    projects: bool
    whole: bool
    common: bool
    members: int
    buffers: int
    tail: int
    front: int
    extra_bytes: int | None
    plain_sgd: bool
    host: str = ""
    pid: int = 0
    started: float = 0.0

    @classmethod
    def of(
        cls,
        settings: Settings,
        worker: Worker,
        *,
        run: int,
        rank: int,
        size: int,
        whole: bool,
        tail: int,
        front: int,
        plain_exchange: bool,
    ) -> Self:
        """Describe a run.

        plain_exchange : whether bytes go as ``Exchange`` sends them.  The other arguments are those of the engine.
        """
        operator, mode = settings.operator, settings.mode
        d = worker.anchor.numel()
        inner = operator.operator if isinstance(operator, Feedback) else operator
        members = mode.clients if isinstance(mode, Sampled) else size
        adapts = not isinstance(settings.rule, Fixed)
        optimizer = worker.optimizer
        return cls(
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
            declared=None if whole or operator is None else _declared(operator, d),
            projects=isinstance(operator, Operator) and bool(getattr(inner, "projects", False)),
            whole=whole,
            common=mode.common,
            members=members,
            buffers=sum(b.numel() for b in worker.buffers),
            tail=tail,
            front=front,
            extra_bytes=_extra_bytes(settings, mode, adapts) if plain_exchange else None,
            plain_sgd=_plain_sgd(optimizer),
            host=socket.gethostname(),
            pid=os.getpid(),
            started=time.time(),
        )

    def line(self) -> dict[str, Any]:
        """As a file keeps it."""
        return {"kind": "header", "version": VERSION, **plain(self)}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """Back from ``line``.  Raises TypeError or KeyError for what is none."""
        values = {f.name: line[f.name] for f in fields(cls)}
        declared = values["declared"]
        return cls(**{**values, "declared": None if declared is None else Declared(**_numbers(declared))})


@dataclass(frozen=True)
class State:
    """Where a rank stands.

    seconds : since its start, pauses left out.  time : of the clock on the wall, UNIX.
    steps, rounds : local steps and averagings seen.  tau : of the last round.
    computing_s, averaging_s, telemetry_s : sums over the run.
    sent_bytes, received_bytes : counted in averagings.
    expected_sent_bytes, expected_received_bytes : from the lengths of the messages that were really sent; all four of
    the rounds that can be foretold, ``foretold`` of them.
    bits, ratio, coordinate, along : of every message of this rank: its length, |C(x) - x|^2/|x|^2, |C(x) - x|^2/d,
    <C(x), x>/|x|^2.  oblique : the largest |<C(x), C(x) - x>|/|x|^2.
    decline : share of the gradient that is lost in a local step, None if nobody measures it.
    stride : of the kept rounds.  ended : whether the script has let go of the averaging.
    """

    time: float
    seconds: float
    steps: int
    rounds: int
    tau: int
    computing_s: float
    averaging_s: float
    telemetry_s: float
    sent_bytes: int
    received_bytes: int
    expected_sent_bytes: int
    expected_received_bytes: int
    foretold: int
    bits: Sample | None
    ratio: Sample | None
    coordinate: Sample | None
    along: Sample | None
    oblique: float
    decline: float | None
    stride: int
    ended: bool = False

    def line(self) -> dict[str, Any]:
        """As a file keeps it."""
        return {"kind": "state", **plain(self)}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """Back from ``line``.  Raises TypeError or KeyError for what is none."""
        values = {f.name: line[f.name] for f in fields(cls)}
        samples = {name: _sample(values[name]) for name in ("bits", "ratio", "coordinate", "along")}
        return cls(**{**values, **samples, "oblique": float(values["oblique"])})


@dataclass(frozen=True)
class Account:
    """All that one rank knows.

    header : how the run is set up.  state : where the rank stands.  rounds : the kept ones, ascending.
    """

    header: Header
    state: State
    rounds: tuple[KeptRound, ...]


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Texts such as "inf" as numbers again, where numbers belong."""
    texts = ("kind", "reason")
    return {name: float(v) if isinstance(v, str) and name not in texts else v for name, v in values.items()}


def _sample(value: Mapping[str, Any] | None) -> Sample | None:
    if value is None:
        return None
    atoms = tuple((float(low), float(high), int(n)) for low, high, n in value["atoms"])
    return Sample(**{**value, "atoms": atoms})


def _named(operator: Operator | Feedback | None) -> str:
    if operator is None:
        return ""
    if isinstance(operator, Feedback):
        return f"{operator.name}({_named(operator.operator)})"
    return specification(operator)


def _declared(operator: Operator | Feedback, d: int) -> Declared:
    try:
        size = operator.bits(d)
        claim = NoClaim(OWED) if isinstance(operator, Feedback) else operator.claim(d)
    except ValueError as refused:
        size, claim = Size(), NoClaim(str(refused))
    return Declared.of(claim, size)


def _extra_bytes(settings: Settings, mode: object, adapts: bool) -> int | None:
    """To each other rank, beside the model, its buffers and the message."""
    if settings.optimizer_state == "average" or not isinstance(mode, Full | Sampled):
        return None
    numbers = (3 if adapts and not settings.measures else 0) + (1 if settings.block_momentum else 0)
    return 8 * numbers


def _plain_sgd(optimizer: Any) -> bool:
    groups = [] if optimizer is None else optimizer.param_groups
    return type(optimizer).__name__ == "SGD" and not any(g.get("momentum") or g.get("weight_decay") for g in groups)
