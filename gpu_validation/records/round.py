"""Record of one round."""

from __future__ import annotations

from dataclasses import dataclass

Error = tuple[float, float, float]  # error2, norm2 and error_along of a Round


@dataclass(frozen=True)
class Round:
    """Record of one averaging on one rank.

    Parameters
    ----------
    index : int
        Index of the round, from 0.
    tau : int
        Local steps of the round.
    bits : tuple of int, bits
        Lengths of all ranks' messages in rank order; in two shots, of all shards of each rank.
    error2 : float
        Squared error of the rank's own decoded movement, in two shots of its shards as decoded by their owners.  It is
        0 for whole models, without measured errors, and for a rank that sent nothing.
    norm2 : float
        Squared norm of the movement; nan for whole models or without measured errors, 0 for a rank that sent nothing.
    error_along : float, optional
        Inner product of that error with the movement; 0 where there is none.
    mean_bits : tuple of int, bits, optional
        Lengths of the owners' messages in two shots, in rank order; else empty.
    carried_bits : int, bits, optional
        Part of this rank's ``bits`` that only carries the output of an operator with stated bits, and does not count.
    """

    index: int
    tau: int
    bits: tuple[int, ...]
    error2: float
    norm2: float
    error_along: float = 0.0
    mean_bits: tuple[int, ...] = ()
    carried_bits: int = 0
