"""What an averaging costs whose messages are summed on the way by ``operators.summed``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bounds.claims import UnbiasedMean
from bounds.theorems import shared_scale_error

from .cluster import Cluster

if TYPE_CHECKING:
    from operators.summed import Summed


def bits_and_seconds(method: Summed, d: int, cluster: Cluster) -> tuple[float, float]:
    """Return the bits that one rank sends, and the seconds of the links; every round is an all-reduce of its own.

    Parameters
    ----------
    method : Summed
        What is summed.
    d : int
        Number of coordinates.
    cluster : Cluster
        Workers and links.
    """
    m = cluster.workers
    rounds = method.bits_of_rounds(d, m)
    return 2 * (m - 1) / m * sum(rounds), sum(cluster.averaging_s(bits, "sum").midpoint for bits in rounds)


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
