"""The time of one averaging from latency and bandwidth, by topology."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from .checks import nonnegative, positive, positive_integer

BITS_PER_BYTE = 8


@dataclass(frozen=True)
class Communication(ABC):
    """A topology on equally fast, full-duplex links.

    Parameters
    ----------
    latency_s : float, seconds
        Seconds a message needs besides its bytes, at every hop.
    bytes_per_s : float, bytes/s
        Bandwidth of one link.

    Raises
    ------
    ValueError
        For a negative latency or a bandwidth <= 0.
    """

    latency_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        nonnegative("latency_s", self.latency_s)
        positive("bytes_per_s", self.bytes_per_s)

    def seconds(self, *, m: int, bits: float | Sequence[float]) -> float:
        """Time of one averaging among m workers, in seconds; 0 for one worker.

        Parameters
        ----------
        m : int
            Number of workers; 1 <= m, an integer.
        bits : float or sequence of float, bits
            Length of one worker's message; a sequence of m lengths if they differ.  Bytes are whole.

        Raises
        ------
        ValueError
            For m < 1, a negative length, or a sequence that has not m entries.
        """
        m = positive_integer("m", m)
        lengths: list[float] = [bits] if np.ndim(bits) == 0 else list(bits)  # type: ignore[list-item, arg-type]
        if np.ndim(bits) > 0 and len(lengths) != m:
            raise ValueError(f"bits must have one length for each of the m = {m} workers; got {len(lengths)}")
        payload_bytes = np.array([math.ceil(nonnegative("bits", b) / BITS_PER_BYTE) for b in lengths], float)
        return 0.0 if m == 1 else self._seconds(np.broadcast_to(payload_bytes, (m,)))

    @abstractmethod
    def _seconds(self, payload_bytes: np.ndarray) -> float:
        """Return the time for m >= 2 messages of these lengths in bytes, shape (m,)."""


@dataclass(frozen=True)
class Ring(Communication):
    """Ring all-reduce of messages that can be summed: m - 1 steps to reduce, m - 1 to spread the shards.

    2 (m-1) latencies and 2 (m-1)/m message lengths; unequal messages are padded to the longest.
    """

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        m = payload_bytes.size
        return 2 * (m - 1) * (self.latency_s + float(payload_bytes.max()) / m / self.bytes_per_s)


@dataclass(frozen=True)
class RingGather(Communication):
    """Ring all-gather of messages that cannot be summed, such as entropy-coded ones of unequal length.

    Every worker sends its own message first and forwards what it receives, whole messages only, in order.
    Message j leaves hop s when it has arrived there and the link has finished message j + 1:
    T(j, s) = max(T(j, s-1), T(j+1, s-1)) + latency + bytes_j/bandwidth; equal lengths give m - 1 times one hop.
    """

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        longest = float(payload_bytes.max())
        if payload_bytes.min() == longest:
            return (payload_bytes.size - 1) * (self.latency_s + longest / self.bytes_per_s)
        hop_s = self.latency_s + payload_bytes / self.bytes_per_s
        done_s = np.zeros_like(hop_s)
        for _ in range(payload_bytes.size - 1):
            done_s = np.maximum(done_s, np.roll(done_s, -1)) + hop_s
        return float(done_s.max())


@dataclass(frozen=True)
class Tree(Communication):
    """Binary-tree reduction followed by a broadcast of whole messages: 2 ceil(log2 m) hops, one after the other.

    Unequal messages count with the longest.
    """

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        hops = 2 * (payload_bytes.size - 1).bit_length()
        return hops * (self.latency_s + float(payload_bytes.max()) / self.bytes_per_s)


@dataclass(frozen=True)
class TreeGather(Communication):
    """All-gather by doubling (Bruck) of messages that cannot be summed: ceil(log2 m) hops, m - 1 messages received.

    Every hop hands on all that has been gathered.  Unequal messages count with the longest.
    """

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        m = payload_bytes.size
        return (m - 1).bit_length() * self.latency_s + (m - 1) * float(payload_bytes.max()) / self.bytes_per_s


@dataclass(frozen=True)
class ParameterServer(Communication):
    """All messages enter one server through one link, then m copies of the result leave through it.

    Parameters
    ----------
    result_bits : float or None, bits, optional
        Length of the result, by default that of the longest message.

    Raises
    ------
    ValueError
        For a negative length.

    Notes
    -----
    2 latencies and sum + m * (result) bytes: linear in m.
    """

    result_bits: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        nonnegative("result_bits", self.result_bits or 0.0)

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        longest = payload_bytes.max() if self.result_bits is None else math.ceil(self.result_bits / BITS_PER_BYTE)
        through_link = payload_bytes.sum() + payload_bytes.size * longest
        return 2 * self.latency_s + float(through_link) / self.bytes_per_s


@dataclass(frozen=True)
class TwoShot(Communication):
    """All pairs exchange shards at once, first the workers' and then the owners' means.

    A shot costs one latency, m - 1 messages that a worker handles one after the other, and (m-1)/m of its message over
    its link.  The first shot counts with the longest message.

    Parameters
    ----------
    latency_s : float, seconds
        Seconds a message needs besides its bytes.
    bytes_per_s : float, bytes/s
        Bandwidth of one link.
    message_s : float, seconds
        Seconds that a worker needs for one message besides its bytes.
    result_bits : float, bits, optional
        Length of the whole compressed mean, by default that of the longest message.

    Raises
    ------
    ValueError
        For a negative time or length.
    """

    message_s: float = 0.0
    result_bits: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        nonnegative("message_s", self.message_s)
        nonnegative("result_bits", self.result_bits or 0.0)

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        m, longest = payload_bytes.size, float(payload_bytes.max())
        both = longest + (longest if self.result_bits is None else math.ceil(self.result_bits / BITS_PER_BYTE))
        return 2 * (self.latency_s + (m - 1) * self.message_s) + (m - 1) / m * both / self.bytes_per_s


@dataclass(frozen=True)
class TwoShotRing(TwoShot):
    """Like ``TwoShot`` in m - 1 steps a shot, each of which waits for the one before: 2 (m-1) latencies.

    So it is in a ring that compresses partial sums again at every hop, and where a worker sends to its neighbour at
    distance s in step s.  The bytes are those of ``TwoShot``.
    """

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        return super()._seconds(payload_bytes) + 2 * (payload_bytes.size - 2) * self.latency_s


@dataclass(frozen=True)
class Links(Communication):
    """What an averaging takes depends on how it is made; unless that is said, it is summed on a ring."""

    def of(self, exchange: str) -> Communication:
        """Return the time of one exchange.

        Parameters
        ----------
        exchange : str
            "sum", "gather" or "two_shot".

        Raises
        ------
        ValueError
            For another word.
        """
        kinds: dict[str, type[Communication]] = {"sum": Ring, "gather": RingGather, "two_shot": TwoShot}
        if exchange not in kinds:
            raise ValueError(f"exchange must be {', '.join(kinds)}; got {exchange!r}")
        return kinds[exchange](self.latency_s, self.bytes_per_s)

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        return self.of("sum")._seconds(payload_bytes)


@dataclass(frozen=True)
class Coding:
    """Seconds of a codec, for one whole movement.

    Parameters
    ----------
    encode_s : float, seconds
        To encode a movement.
    decode_s : float, seconds
        To decode one message of a movement.

    Raises
    ------
    ValueError
        For a negative time.
    """

    encode_s: float
    decode_s: float

    def __post_init__(self) -> None:
        for field in fields(self):
            nonnegative(field.name, getattr(self, field.name))

    def seconds(self, *, m: int, two_shot: bool = False) -> float:
        """Return seconds that every worker computes for one averaging.

        Parameters
        ----------
        m : int
            Number of workers.
        two_shot : bool, optional
            Whether shards go to owners, and their means to all.

        Raises
        ------
        ValueError
            For m < 1.
        """
        m = positive_integer("m", m)
        if two_shot:
            return self.encode_s * (1 + 1 / m) + 2 * self.decode_s
        return self.encode_s + m * self.decode_s
