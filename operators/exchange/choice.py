"""Which exchange sends fewer bytes: every rank to every other, or in two shots over owners."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from ..feedback.feedback import Feedback
from ..operator import Operator

# Which rank owns which entries of a vector.


def shards(d: int, m: int) -> list[slice]:
    """Return the shard of every rank, in rank order: the lengths differ by 1 at most, and some are 0 where d < m.

    Parameters
    ----------
    d : int
        Number of coordinates.
    m : int
        Number of ranks.
    """
    return [slice(rank * d // m, (rank + 1) * d // m) for rank in range(m)]


def lengths(d: int, m: int) -> list[int]:
    """Return the number of entries of every shard.

    Parameters
    ----------
    d : int
        Number of coordinates.
    m : int
        Number of ranks.
    """
    return [shard.stop - shard.start for shard in shards(d, m)]


def all_known(lengths: Iterable[int | None]) -> list[int] | None:
    """Return the lengths of messages, None if one of them is not known before it is encoded.

    Parameters
    ----------
    lengths : iterable of int or None, bits
        As operators declare them.
    """
    declared = list(lengths)
    exact = [bits for bits in declared if bits is not None]
    return exact if len(exact) == len(declared) else None


Exchange = Literal["gather", "two_shot", "auto"]
GATHER_HEADER_BYTES = 8  # before a message that all get: its length
SHARD_HEADER_BYTES = 32  # before a shard: its length, the sender's step, the bits and bytes of all its shards


@dataclass(frozen=True)
class Choice:
    """An exchange, and what both would send.

    Parameters
    ----------
    exchange : str
        "gather" or "two_shot".
    gather_bytes : float, bytes
        Expected, of all ranks together, headers and receivers counted.
    two_shot_bytes : float, bytes
        The same in two shots.
    """

    exchange: Literal["gather", "two_shot"]
    gather_bytes: float
    two_shot_bytes: float

    def __str__(self) -> str:
        """Say which, and why."""
        return (
            f"the exchange is {self.exchange}: gather is expected to send {self.gather_bytes:.0f} bytes, all ranks "
            f"together, two_shot {self.two_shot_bytes:.0f}"
        )


def check(exchange: str) -> None:
    """Refuse what is no exchange.

    Parameters
    ----------
    exchange : str
        "gather", "two_shot" or "auto".

    Raises
    ------
    ValueError
        For any other word.
    """
    if exchange not in get_args(Exchange):
        raise ValueError(f'exchange must be "gather", "two_shot" or "auto"; got {exchange!r}')


def choose(
    exchange: Exchange,
    first: Operator | Feedback,
    second: Operator | Feedback | None = None,
    *,
    d: int,
    m: int,
) -> Choice:
    """Return the exchange that "auto" stands for, or the one that is named, with the bytes of both.

    Parameters
    ----------
    exchange : Exchange
        "auto" takes the one that sends fewer bytes, "gather" if both send as many.
    first : Operator or Feedback
        Compresses what ranks send of their own.
    second : Operator or Feedback or None, optional
        Compresses the means of two shots; by default the first.
    d : int
        Number of coordinates, >= 1.
    m : int
        Number of ranks, >= 1.

    Raises
    ------
    ValueError
        For an unknown exchange.

    Notes
    -----
    It goes by the sizes that the operators declare, so that all ranks choose alike before anything is encoded; one that
    declares none counts as 1 bit per coordinate.
    """
    check(exchange)
    sizes, second = lengths(d, m), second or first
    gather = m * (m - 1) * (GATHER_HEADER_BYTES + _bytes(first, d))
    headers = m * (m - 1) * (SHARD_HEADER_BYTES + GATHER_HEADER_BYTES)
    two_shot = headers + (m - 1) * sum(_bytes(first, n) + _bytes(second, n) for n in sizes)
    cheaper: Literal["gather", "two_shot"] = "two_shot" if two_shot < gather else "gather"
    return Choice(cheaper if exchange == "auto" else exchange, gather, two_shot)


def _bytes(operator: Operator | Feedback, d: int) -> float:
    """Return the expected length of a message, in bytes, from its declaration."""
    if d == 0:
        return 0.0
    size = operator.bits(d).without(operator.carried_bits(d))
    declared = (bits for bits in (size.exact, size.expected_upper, size.worst_case, d) if bits is not None)
    return next(declared) / 8
