"""The time that a worker computes for messages: encoding its own, decoding those of all.

Gathered, a worker encodes its movement and decodes m messages, its own among them.  In two shots it encodes m shards,
which are one movement, decodes m shards of the others, which are one as well, encodes the mean of its shard and decodes
the means of all.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .checks import nonnegative, positive_integer


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
