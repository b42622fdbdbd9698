"""What one rank knows of its run: how it is set up, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Self

from ..records.compression import Declared
from ..records.sample import Sample
from ..records.storage import plain
from .samples import KeptRound

VERSION = 1  # of the lines in a folder


@dataclass(frozen=True)
class Header:
    """How a run is set up, as one rank saw it at its start.

    Parameters
    ----------
    run : int
        A number that all ranks of one start share.
    rank : int
        Who wrote it.
    size : int
        How many ranks there are.
    d : int
        Parameters.
    value_bytes : int, bytes
        Of one parameter as it is sent.
    mean_bytes : int, bytes
        Of one parameter of the mean.
    operator : str
        Specification; "" where whole models are sent.
    schedule : str
        In words.
    mixing : str
        In words.
    optimizer : str
        In words.
    declared : Declared or None
        What the operator promises at d.
    projects : bool
        Whether <C(x), C(x) - x> is to be 0.
    whole : bool
        Whether whole models are sent.
    common : bool
        Whether all ranks start a round at one point.
    members : int
        Ranks that take part in an averaging.
    buffers : int
        Entries of the buffers that averagings make equal; they travel only where ranks differ.
    tail : int
        Numbers behind a whole model.
    front : int
        Bits before a message.
    extra_bytes : int or None, bytes
        Handed to each other rank in an averaging beside the model, None if that is not known beforehand.
    plain_sgd : bool
        No momentum, no preconditioner.
    host : str, optional
        The machine's name.
    pid : int, optional
        The process that wrote it.
    started : float, optional
        When, in UNIX seconds.
    carried_bits : int, bits, optional
        Of every message: those that only carry an output, and do not count.
    message_d : int, optional
        Coordinates that this rank's message is about: its shard's where ranks form nodes; 0, as in older files, for d.
    outer : bool, optional
        Whether an outer optimizer moves the model along the mean.
    uneven : bool, optional
        Whether ranks may make different numbers of local steps.
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
    carried_bits: int = 0
    message_d: int = 0
    outer: bool = False
    uneven: bool = False

    @property
    def coordinates(self) -> int:
        """Coordinates that this rank's message is about."""
        return self.message_d or self.d

    def line(self) -> dict[str, Any]:
        """Return it as a file keeps it."""
        return {"kind": "header", "version": VERSION, **plain(self)}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """Return what ``line`` was made of.

        Parameters
        ----------
        line : mapping
            One line of JSON.

        Raises
        ------
        TypeError
            For what is none.
        KeyError
            For what is none.
        """
        values = {f.name: line[f.name] for f in fields(cls) if f.name in line or f.default is MISSING}
        declared = values["declared"]
        return cls(**{**values, "declared": None if declared is None else Declared(**_numbers(declared))})


@dataclass(frozen=True)
class State:
    """Where a rank stands.

    Parameters
    ----------
    time : float
        Of the clock on the wall, UNIX.
    seconds : float
        Since its start, pauses left out.
    steps : int
        Local steps seen.
    rounds : int
        Averagings seen.
    tau : int
        Of the last round.
    computing_s : float, seconds
        Sum of the local steps' durations.
    averaging_s : float, seconds
        Sum of the averagings' durations.
    telemetry_s : float, seconds
        Sum of what the recording took.
    sent_bytes : int, bytes
        Counted in averagings.
    received_bytes : int, bytes
        Counted in averagings.
    expected_sent_bytes : int, bytes
        From the lengths of the messages that were really sent; all four of the rounds that can be foretold,
        ``foretold`` of them.
    expected_received_bytes : int, bytes
        From the lengths of the messages that were really sent; all four of the rounds that can be foretold,
        ``foretold`` of them.
    foretold : int
        How many of the rounds can be foretold.
    bits : Sample or None, bits
        Length of every message of this rank.
    ratio : Sample or None
        ``|C(x) - x|^2/|x|^2`` of every message.
    coordinate : Sample or None
        ``|C(x) - x|^2/d`` of every message.
    along : Sample or None
        ``<C(x), x>/|x|^2`` of every message.
    oblique : float
        The largest ``|<C(x), C(x) - x>|/|x|^2``.
    decline : float or None
        Share of the gradient that is lost in a local step, None if nobody measures it.
    stride : int
        Of the kept rounds.
    ended : bool, optional
        Whether the script has let go of the averaging.
    beside_sent_bytes : int, bytes, optional
        Of the expected ones those for buffers.
    beside_received_bytes : int, bytes, optional
        Of the expected ones those for buffers.
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
    beside_sent_bytes: int = 0
    beside_received_bytes: int = 0

    def line(self) -> dict[str, Any]:
        """Return it as a file keeps it."""
        return {"kind": "state", **plain(self)}

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """Return what ``line`` was made of.

        Parameters
        ----------
        line : mapping
            One line of JSON.

        Raises
        ------
        TypeError
            For what is none.
        KeyError
            For what is none.
        """
        values = {f.name: line[f.name] for f in fields(cls)}
        samples = {name: _sample(values[name]) for name in ("bits", "ratio", "coordinate", "along")}
        return cls(**{**values, **samples, "oblique": float(values["oblique"])})


@dataclass(frozen=True)
class Account:
    """All that one rank knows.

    Parameters
    ----------
    header : Header
        How the run is set up.
    state : State
        Where the rank stands.
    rounds : tuple of KeptRound
        The kept ones, ascending.
    """

    header: Header
    state: State
    rounds: tuple[KeptRound, ...]


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return texts such as "inf" as numbers again, where numbers belong."""
    texts = ("kind", "reason")
    return {name: float(v) if isinstance(v, str) and name not in texts else v for name, v in values.items()}


def _sample(value: Mapping[str, Any] | None) -> Sample | None:
    if value is None:
        return None
    atoms = tuple((float(low), float(high), int(n)) for low, high, n in value["atoms"])
    return Sample(**{**value, "atoms": atoms})
