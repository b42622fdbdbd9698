"""Account of one rank's run: its settings and its current state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..records.compression import Declared, Sample
from ..records.storage import plain
from .samples import KeptRound

VERSION = 2  # format of the lines in a folder


@dataclass(frozen=True)
class Header:
    """Settings of a run, as one rank recorded them at its start.

    Parameters
    ----------
    run : int
        Random number that all ranks of one start share.
    rank : int
        Rank that wrote it.
    size : int
        Number of ranks.
    d : int
        Number of averaged parameters.
    value_bytes : int, bytes
        Size of one parameter as sent.
    mean_bytes : int, bytes
        Size of one parameter of the mean.
    operator : str
        Specification of the operator; "" where whole models are sent.
    schedule : str
        Representation of the schedule.
    mixing : str
        Representation of the mixing mode.
    optimizer : str
        Class name of the inner optimizer.
    declared : Declared or None
        Claim and size that the operator declares at d.
    projects : bool
        Whether the operator declares <C(x), C(x) - x> = 0.
    whole : bool
        Whether whole models are sent.
    common : bool
        Whether all ranks start a round at one model.
    members : int
        Ranks that take part in an averaging.
    buffers : int
        Entries of the buffers that averagings make equal; they are sent only where ranks differ.
    tail : int
        Numbers behind a whole model.
    front : int
        Bits before a message.
    extra_bytes : int or None, bytes
        Bytes sent to each other rank per averaging besides the model; None if unknown in advance.
    plain_sgd : bool
        Whether the optimizer is SGD without momentum and weight decay.
    host : str, optional
        Name of the machine.
    pid : int, optional
        Process that wrote it.
    started : float, optional
        Start in UNIX seconds.
    carried_bits : int, bits, optional
        Bits of every message that only carry an output and do not count.
    message_d : int, optional
        Coordinates of this rank's message: those of its shard in nodes; 0, as in older files, means d.
    outer : bool, optional
        Whether an outer optimizer moves the common model.
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
        """Coordinates of this rank's message."""
        return self.message_d or self.d

    def line(self) -> dict[str, Any]:
        """Return the header as a line of the file."""
        return {"kind": "header", "version": VERSION, **plain(self)}


@dataclass(frozen=True)
class State:
    """Current state of a rank's run.

    Parameters
    ----------
    time : float
        Wall clock in UNIX seconds.
    seconds : float
        Seconds since the start, without pauses.
    steps : int
        Local steps so far.
    rounds : int
        Averagings so far.
    tau : int
        Local steps of the last round.
    computing_s : float, seconds
        Total duration of the local steps.
    averaging_s : float, seconds
        Total duration of the averagings.
    telemetry_s : float, seconds
        Total duration of the recording.
    sent_bytes : int, bytes
        Bytes sent in averagings, as counted, over the predictable rounds.
    received_bytes : int, bytes
        Bytes received in averagings, as counted, over the predictable rounds.
    expected_sent_bytes : int, bytes
        Bytes sent, computed from the lengths of the actual messages, over the predictable rounds.
    expected_received_bytes : int, bytes
        Bytes received, computed from the lengths of the actual messages, over the predictable rounds.
    predicted : int
        Number of rounds whose bytes can be predicted.
    bits : Sample or None, bits
        Lengths of this rank's messages.
    ratio : Sample or None
        ``|C(x) - x|^2/|x|^2`` of the messages.
    coordinate : Sample or None
        ``|C(x) - x|^2/d`` of the messages.
    along : Sample or None
        ``<C(x), x>/|x|^2`` of the messages.
    oblique : float
        Largest ``|<C(x), C(x) - x>|/|x|^2``.
    decline : float or None
        Share of the gradient lost per local step; None if not measured.
    stride : int
        Stride of the kept rounds.
    ended : bool, optional
        Whether the averaging has been closed.
    beside_sent_bytes : int, bytes, optional
        Part of ``expected_sent_bytes`` for buffers.
    beside_received_bytes : int, bytes, optional
        Part of ``expected_received_bytes`` for buffers.
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
    predicted: int
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
        """Return the state as a line of the file."""
        return {"kind": "state", **plain(self)}


@dataclass(frozen=True)
class Account:
    """Complete record of one rank.

    Parameters
    ----------
    header : Header
        Settings of the run.
    state : State
        Current state.
    rounds : tuple of KeptRound
        Kept rounds, ascending.
    """

    header: Header
    state: State
    rounds: tuple[KeptRound, ...]


# Bytes of an averaging, from lengths.  Between all pairs of m ranks a message of b bits goes with a header of 8 bytes
# to m - 1 others.  A vector of n numbers goes whole to the other ranks if m = 2 or if all vectors fit in 1 MiB.
# Otherwise every rank receives one shard of each member's vector and sends its shard of the mean to all.
HEADER_BYTES, PLACE_BITS, WHOLE_BYTES = 8, 32, 1 << 20

Bytes = tuple[int, int]  # sent, received


def of_messages(bits: Sequence[int], *, rank: int, members: Sequence[int], front: int) -> Bytes:
    """Return the bytes of one all-gather of messages.

    ``bits`` are the lengths of the ranks' messages, and ``front`` the bits before a member's message.
    """
    taking = set(members)
    lengths = [HEADER_BYTES + -(-(b + (front if r in taking else PLACE_BITS)) // 8) for r, b in enumerate(bits)]
    return (len(bits) - 1) * lengths[rank], sum(lengths) - lengths[rank]


def of_vectors(n: int, *, value_bytes: int, mean_bytes: int, rank: int, size: int, members: Sequence[int]) -> Bytes:
    """Return the bytes of one mean of vectors of n numbers, sent in ``value_bytes`` and returned in ``mean_bytes``."""
    if n == 0 or size == 1:
        return 0, 0
    if len(members) == size and (size == 2 or size * n * value_bytes <= WHOLE_BYTES):
        return (size - 1) * n * value_bytes, (size - 1) * n * value_bytes
    longest = -(-n // size)
    shard = min(n, (rank + 1) * longest) - min(n, rank * longest)
    sent = (n - shard) * value_bytes * (rank in members) + (size - 1) * shard * mean_bytes
    received = shard * value_bytes * (len(members) - (rank in members)) + (n - shard) * mean_bytes
    return sent, received


def of_beside(travelled: Sequence[tuple[str, int]], *, rank: int, size: int, members: Sequence[int]) -> Bytes:
    """Return the bytes of the exchanges of buffers in one averaging.

    ``travelled`` lists kinds and numbers: "numbers" of 8 bytes, "bytes" from every rank to every other, means of
    "floats".
    """
    sent = received = 0
    for what, n in travelled:
        if what == "floats":
            more = of_vectors(n, value_bytes=4, mean_bytes=4, rank=rank, size=size, members=members)
        else:
            more = ((size - 1) * n * (8 if what == "numbers" else 1),) * 2
        sent, received = sent + more[0], received + more[1]
    return sent, received
