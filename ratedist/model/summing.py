"""What an averaging costs whose messages are summed on the way by ``operators.summed``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bounds.claims import NoClaim, UnbiasedMean
from bounds.theorems import shared_scale_error

from .cluster import Cluster
from .travel import Travel

if TYPE_CHECKING:
    from operators.summed import Summed


def summed_travel(method: Summed, d: int, cluster: Cluster) -> Travel:
    """Return how the terms of a method travel: every round is a sum on the way of its own.

    A parameter server reads the terms of all; elsewhere every rank reads as much as one vector.  The claim is that of
    all ranks' parts together, ``Summed.claim``.

    Parameters
    ----------
    method : Summed
        What is summed.
    d : int
        Number of coordinates.
    cluster : Cluster
        Workers and links.

    Raises
    ------
    ValueError
        For more workers than the method can add up.
    """
    m = cluster.workers
    rounds = tuple(float(bits) for bits in method.bits_of_rounds(d, m))
    decoded = m if cluster.topology == "parameter_server" else 1
    claim, words = method.claim(d, m), f"summed on its way in {len(rounds)} round{'s' * (len(rounds) > 1)}"
    if not isinstance(claim, NoClaim):
        words += ", its omega one of all ranks' messages together"
    return Travel("sum", claim, sum(rounds), sum(rounds), None, 1, decoded, words, round_bits=rounds)


def errors(method: Summed, d: int, m: int) -> tuple[float | None, float | None, str]:
    """Return the joint claim for independent and for equal vectors, over the squared length of the mean, and its name.

    Parameters
    ----------
    method : Summed
        What is summed.
    d : int
        Number of coordinates.
    m : int
        Number of workers.
    """
    claim = method.claim_mean(d, m)
    if not isinstance(claim, UnbiasedMean):
        return None, None, ""
    return claim.of_squares * m + claim.of_mean, claim.of_squares + claim.of_mean, shared_scale_error.name
