"""The account of one round."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Round:
    """What one averaging did, as seen by one rank.

    Parameters
    ----------
    index : int
        Rounds before this one.
    tau : int
        Its local steps.
    bits : tuple of int, bits
        Lengths of all ranks' messages in rank order; in two shots, of all shards of each rank together.
    error2 : float
        Squared error of the rank's own decoded delta, in two shots of its shards as their owners decode them; 0 where
        whole models were sent, where no errors are kept, and where the rank had nothing to send.
    norm2 : float
        Squared norm of the delta; nan where whole models were sent or no errors are kept, 0 where the rank had nothing
        to send.
    error_along : float, optional
        Inner product of that error with the delta; 0 where there is none.
    mean_bits : tuple of int, bits, optional
        Lengths of the owners' messages in two shots, in rank order; empty otherwise.
    carried_bits : int, bits, optional
        Of this rank's ``bits``: those that only carry the output of an operator that states its bits, and do not count.
    """

    index: int
    tau: int
    bits: tuple[int, ...]
    error2: float
    norm2: float
    error_along: float = 0.0
    mean_bits: tuple[int, ...] = ()
    carried_bits: int = 0
