"""A language model's training in seconds: 6 N D operations, and averagings that wait or travel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from .cluster import Cluster
from .nodes import Exchange
from .overlap import step_in_flight_s, step_overlapped_s
from .rhythm import BACKWARD_SHARE

FLOP_PER_PARAMETER_AND_TOKEN = 6  # 2 forward, 4 backward
LEAST_BIT_PER_S, MOST_BIT_PER_S = 1.0, 1e18
HALVINGS = 60
HIDDEN = 1 - 1e-9  # of the most that any bandwidth gives, where averages can be hidden


@dataclass(frozen=True)
class Round:
    """One way to average: how often, and what waits for it.

    Parameters
    ----------
    name : str
        In words.
    tau : int
        Local steps between two averages of the same parameter.
    seconds_per_step : callable
        From a cluster to mean seconds of a step, waiting included.
    """

    name: str
    tau: int
    seconds_per_step: Callable[[Cluster], float]

    def utilisation(self, cluster: Cluster) -> float:
        """Return the share of a step in which a worker computes, on average."""
        return cluster.step().mean_s / self.seconds_per_step(cluster)

    def bandwidth_for(self, share: float, cluster: Cluster) -> float:
        """Return the least bandwidth of a link at which workers compute for this share of the time; inf if none does.

        Parameters
        ----------
        share : float
            Wanted, 0 < share <= 1; 1 is what averages in flight can reach where nothing waits for stragglers.
        cluster : Cluster
            Whose link, between nodes where there are any, is varied.
        """
        least = share * HIDDEN

        def reached(bit_per_s: float) -> bool:
            return self.utilisation(with_bandwidth(cluster, bit_per_s)) >= least

        if not reached(MOST_BIT_PER_S):
            return math.inf
        low, high = math.log2(LEAST_BIT_PER_S), math.log2(MOST_BIT_PER_S)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if reached(2.0**middle) else (middle, high)
        return 2.0**high


def with_bandwidth(cluster: Cluster, bit_per_s: float) -> Cluster:
    """Return the same cluster with another link, between nodes where there are any.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    bit_per_s : float, bit/s
        Of the link.
    """
    between = None if cluster.between is None else replace(cluster.links[1], bandwidth_bit_per_s=bit_per_s)
    return replace(cluster, bandwidth_bit_per_s=bit_per_s, between=between)


def rounds(*, bits: float, dense_bits: float, exchange: Exchange, tau: int, in_flight: int, parts: int) -> list[Round]:
    """Return four ways to average: after every step, during the backward pass, after tau steps, and in flight.

    Parameters
    ----------
    bits : float, bits
        Length of one worker's message after tau steps.
    dense_bits : float, bits
        Length of an uncompressed gradient, which the first two sum.
    exchange : Exchange
        How messages of the last two travel.
    tau : int
        Local steps of a round.
    in_flight : int
        Steps that are made while an average travels.
    parts : int
        Fragments of the model.
    """

    def every_step(cluster: Cluster) -> float:
        return step_in_flight_s(cluster, tau=1, bits=dense_bits, in_flight=0)

    def while_going_back(cluster: Cluster) -> float:
        return step_overlapped_s(cluster, bits=dense_bits, backward_fraction=BACKWARD_SHARE)

    def waiting(cluster: Cluster) -> float:
        return step_in_flight_s(cluster, tau=tau, bits=bits, exchange=exchange, in_flight=0, dense_bits=dense_bits)

    def flying(cluster: Cluster) -> float:
        return step_in_flight_s(
            cluster, tau=tau, bits=bits, exchange=exchange, in_flight=in_flight, parts=parts, dense_bits=dense_bits
        )

    return [
        Round("every step", 1, every_step),
        Round("every step, during the backward pass", 1, while_going_back),
        Round(f"every {tau} steps, waiting", tau, waiting),
        Round(f"every {tau} steps, in flight", tau, flying),
    ]
