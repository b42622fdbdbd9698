"""Seconds of encoding and decoding a coordinate: given, measured on this machine, or free if asked for."""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from ..numbers import Number, real, whole
from ..records import plain
from .compressors import compressor_of

if TYPE_CHECKING:
    import torch

    from operators import Operator
    from operators.summed import Summed


MOST_COORDINATES, FIRST_COORDINATES = 1 << 20, 1 << 15
SHORTEST, STEP = 256, 4  # the shorter messages that are timed too, and by what they grow
RUNS = 3
ENOUGH_S = 0.1  # of encoding and decoding once; a slower codec is measured on FIRST_COORDINATES
DIGITS = 2  # a throughput on a shared machine is not known better
NUMBERS = ("encode_s_per_coordinate", "decode_s_per_coordinate")
FREE_WORD, MEASURED_WORD = "free", "measured"


@dataclass(frozen=True)
class Codec:
    """What one rank's processor spends on a compressor.

    Parameters
    ----------
    encode_s_per_coordinate : float
        Seconds of encoding a coordinate of one message, >= 0.
    decode_s_per_coordinate : float
        Seconds of decoding a coordinate of one message, >= 0.
    source : str, optional
        Where the two come from, in words.
    of_lengths : tuple of (int, float, float), optional
        Coordinates of a message and seconds to encode and to decode it, by rising length: what a short message costs,
        such as a shard of two shots.  Empty: any message costs in proportion.

    Raises
    ------
    ValueError
        For negative or infinite seconds, and lengths that do not rise.

    Examples
    --------
    >>> import ratedist as rd
    >>> rd.Codec(encode_s_per_coordinate=8.5e-9, decode_s_per_coordinate=4.3e-9).in_words()
    'codec given: 8.5 ns a coordinate to encode, 4.3 ns to decode'
    """

    encode_s_per_coordinate: float
    decode_s_per_coordinate: float
    source: str = "given"
    of_lengths: tuple[tuple[int, float, float], ...] = ()

    def __post_init__(self) -> None:
        for name in NUMBERS:
            object.__setattr__(self, name, real(name, getattr(self, name)))
        rows = tuple((whole("d", d), *map(real, NUMBERS, seconds)) for d, *seconds in self.of_lengths)
        if any(len(row) != 3 for row in rows) or any(before[0] >= after[0] for before, after in pairwise(rows)):
            raise ValueError(f"of_lengths must be rising (coordinates, seconds, seconds); got {self.of_lengths!r}")
        object.__setattr__(self, "of_lengths", rows)

    def of_messages(self, length: float) -> tuple[float, float]:
        """Return seconds of encoding and of decoding a coordinate in messages of a length.

        Parameters
        ----------
        length : float
            Coordinates of one message, > 0.

        Notes
        -----
        Between measured lengths a message's seconds are interpolated, a shorter one costs what the shortest does, a
        longer one in proportion to the longest.
        """
        rows = self.of_lengths
        place = bisect_left(rows, length, key=lambda row: row[0])
        if place == len(rows):
            return self.encode_s_per_coordinate, self.decode_s_per_coordinate
        d, encode_s, decode_s = rows[place]
        if place:
            shorter, *before_s = rows[place - 1]
            share = (length - shorter) / (d - shorter)
            encode_s, decode_s = (
                before + share * (after - before) for before, after in zip(before_s, (encode_s, decode_s), strict=True)
            )
        return encode_s / length, decode_s / length

    def in_words(self) -> str:
        """Return one line for the reasons of a plan."""
        if self == FREE:
            return "codec free, as asked for"
        encode, decode = self.encode_s_per_coordinate * 1e9, self.decode_s_per_coordinate * 1e9
        return f"codec {self.source}: {encode:.3g} ns a coordinate to encode, {decode:.3g} ns to decode"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


FREE = Codec(0.0, 0.0, "free")
Codecs = Codec | Literal["free", "measured"] | Mapping[str, Number | Codec | Mapping[str, Number]]
"""One for all operators, or by specification; a codec may be a mapping of its two numbers."""


def checked_codecs(given: Any) -> Codec | dict[str, Codec] | None:
    """Return the codec times given to a plan: one for all, some by specification, or None (all are measured).

    Parameters
    ----------
    given
        None or "measured", "free", a Codec, a mapping of its two numbers, or a mapping from specifications to any of
        these.

    Raises
    ------
    ValueError
        For anything else.
    """
    from operators import specification

    if given is None or given == MEASURED_WORD:
        return None
    if given == FREE_WORD:
        return FREE
    if isinstance(given, Codec):
        return given
    if isinstance(given, Mapping) and given.keys() & set(NUMBERS):
        return _from_mapping(given)
    if isinstance(given, Mapping):
        named = {specification(compressor_of(name)): checked_codecs(each) for name, each in given.items()}
        return {name: each for name, each in named.items() if isinstance(each, Codec)}
    raise ValueError(
        f'codec must be "measured", "free", a ratedist.Codec or a mapping from operators to one; got {given!r}: '
        "write for example rd.Codec(8.5e-9, 4.3e-9), seconds a coordinate to encode and to decode"
    )


def codec_of(checked: Codec | dict[str, Codec] | None, operator: Operator | Summed, d: int) -> Codec:
    """Return the codec of one operator: the given one, or else the measured one."""
    from operators import specification

    named = checked.get(specification(operator)) if isinstance(checked, dict) else checked
    return measure_codec(operator, d=d) if named is None else named


def _from_mapping(given: Mapping[str, Any]) -> Codec:
    if set(given) != set(NUMBERS):
        raise ValueError(f"a codec has {' and '.join(NUMBERS)}; got {', '.join(map(str, given))}: give just these")
    return Codec(**given)


def measure_codec(
    operator: str | Operator | Summed,
    *,
    d: Number = MOST_COORDINATES,
    device: str = "cpu",
    x: torch.Tensor | None = None,
    seconds_of: Callable[[Callable[[], object]], float] | None = None,
) -> Codec:
    """Time an operator on a Gaussian vector, once a process for each operator.

    Parameters
    ----------
    operator : str or Operator or Summed
        Specification such as "qsgd:4", or an ``Operator``, or what ``operators.summed`` sums on the way.
    d : array_like, optional
        Coordinates, of which at most 2^20 are used (fewer where the codec is slow).
    device : str, optional
        "cpu" or "cuda".
    x : tensor or None, optional
        float32, shape (d,), on the device: the vector to code instead, new at every call.
    seconds_of : callable or None, optional
        With x: from a call of the codec to its seconds, such as those of ranks that make it at once.

    Raises
    ------
    ValueError
        If the operator refuses the vector, and for what is summed on the way on another device than the CPU.

    Notes
    -----
    The least of three runs after one that warms up, to two digits: processor time of the calling thread, so
    that other processes count little; on "cuda" wall-clock time.  Longer vectors are charged in proportion.  A fourth,
    a sixteenth and so on of the vector is timed too, down to 256 coordinates, because shards are short where workers
    are many.  Of what is summed on the way a rank of two is timed: to encode is all until its last terms are packed, to
    decode is to add up the terms of its shard and to read the sums.
    """
    import torch

    from operators import specification
    from operators.summed import Summed

    chosen, threads = compressor_of(operator), torch.get_num_threads()
    n = min(int(real("d", d)) if x is None else x.numel(), MOST_COORDINATES)
    if x is None:
        return _measured(specification(chosen), chosen, n, device, threads)
    if isinstance(chosen, Summed):
        raise ValueError(f"{chosen.name} is timed on a vector of its own; got x: leave it out")
    return _codec(specification(chosen), chosen, n, device, threads, partial(_coded, chosen, x, seconds_of))


@lru_cache(maxsize=512)
def _measured(name: str, operator: Operator | Summed, n: int, device: str, threads: int) -> Codec:
    return _codec(name, operator, n, device, threads, lambda size: _timed(operator, size, device))


def _codec(
    name: str,
    operator: Operator | Summed,
    n: int,
    device: str,
    threads: int,
    timed: Callable[[int], tuple[float, float]],
) -> Codec:
    """Return the codec of timed messages: long ones, unless they would take long, and shorter ones."""
    from operators import Operator

    size = min(n, FIRST_COORDINATES)
    try:
        seconds = timed(size)
        if size < n and sum(seconds) * n < ENOUGH_S * size:
            size = n
            seconds = timed(size)
    except (ValueError, RuntimeError) as failure:
        raise ValueError(f"{name} could not be timed ({failure}): give codec") from None
    short = lengths_of(size)[:-1] if isinstance(operator, Operator) else ()
    rows = [(each, *timed(each)) for each in short]
    plural = "" if threads == 1 else "s"
    where = f"measured on this machine ({device}, {threads} thread{plural}, {size} coordinates)"
    return _of_lengths([*rows, (size, *seconds)], where)


def lengths_of(d: int) -> tuple[int, ...]:
    """Return the lengths of the messages that are timed, rising to d.

    Parameters
    ----------
    d : int
        Coordinates of the longest.
    """
    lengths = [d]
    while lengths[-1] >= STEP * SHORTEST:
        lengths.append(lengths[-1] // STEP)
    return tuple(reversed(lengths))


def _of_lengths(rows: Sequence[tuple[int, float, float]], source: str) -> Codec:
    """Return the codec of rows of coordinates, seconds to encode and seconds to decode, to two digits."""
    digits = [(d, *(float(f"{each:.{DIGITS}g}") for each in seconds)) for d, *seconds in rows]
    longest, *seconds = rows[-1]
    encode, decode = (float(f"{each / longest:.{DIGITS}g}") for each in seconds)
    return Codec(encode, decode, source, tuple(digits) if len(rows) > 1 else ())  # type: ignore[arg-type]


def _timed(operator: Operator | Summed, size: int, device: str) -> tuple[float, float]:
    import torch

    from operators import Operator

    if not isinstance(operator, Operator):
        return _sum_timed(operator, size, device)
    x = torch.randn(size, generator=torch.Generator().manual_seed(0)).to(device)
    return _coded(operator, x, partial(_least_s, device=device), size)


def _coded(
    operator: Operator, x: torch.Tensor, seconds_of: Callable[[Callable[[], object]], float] | None, size: int
) -> tuple[float, float]:
    """Return seconds of encoding and of decoding the first coordinates of a vector."""
    from operators import Key

    part, key = x[:size].clone(), Key(0)
    message = operator.encode(part, key=key)
    seconds_of = seconds_of or partial(_least_s, device=x.device.type)
    return (
        seconds_of(lambda: operator.encode(part, key=key)),
        seconds_of(lambda: operator.decode(message, d=size, key=key)),
    )


def _least_s(call: Callable[[], object], device: str) -> float:
    import torch

    wait, clock = (lambda: None, time.thread_time) if device == "cpu" else (torch.cuda.synchronize, time.perf_counter)
    call()
    least = math.inf
    for _ in range(RUNS):
        wait()
        start = clock()
        call()
        wait()
        least = min(least, clock() - start)
    return least


def _sum_timed(method: Summed, size: int, device: str) -> tuple[float, float]:
    """Return the least seconds of one rank of two before and after its last terms are packed."""
    import torch

    if device != "cpu":
        raise ValueError(f"{method.name} is summed by the CPU; got device = {device!r}")
    x = torch.randn(size, generator=torch.Generator().manual_seed(0))
    runs = [_sum_of_two(method, x) for _ in range(1 + RUNS)][1:]
    return min(encode for encode, _ in runs), min(decode for _, decode in runs)


def _sum_of_two(method: Summed, x: torch.Tensor) -> tuple[float, float]:
    """Return the seconds that rank 0 of two equal ones needs to encode and to decode, all rounds together."""
    from operators import Key
    from operators.summed import SumEnd

    end, other = (SumEnd(method, Key(0), rank=rank, m=2, d=x.numel()) for rank in range(2))
    exchange, theirs = None, other.begin(x, 0)
    encode_s = decode_s = 0.0
    while exchange is None or not exchange.over:
        start = time.thread_time()
        exchange = exchange or end.begin(x, 0)
        outgoing = exchange.outgoing
        packed = time.thread_time()
        shards = theirs.outgoing
        theirs_of_both = theirs.merge({0: outgoing[1], 1: shards[1]}, range(2))
        added = time.thread_time()
        sums = [exchange.merge({0: outgoing[0], 1: shards[0]}, range(2)), theirs_of_both]
        exchange.receive(sums, 2)
        read = time.thread_time()
        theirs.receive(sums, 2)
        encode_s, decode_s = encode_s + decode_s + packed - start, read - added
    start = time.thread_time()
    end.mean()
    return encode_s, decode_s + time.thread_time() - start
