"""Seconds of a local step when messages travel while the workers compute."""

from __future__ import annotations

from bounds.runtime import RuntimeModel, seconds_per_step_in_flight

from .cluster import Cluster
from .nodes import Exchange


def step_in_flight_s(
    cluster: Cluster,
    *,
    tau: int,
    bits: float,
    exchange: Exchange = "sum",
    in_flight: int | None = None,
    parts: int = 1,
    result_bits: float | None = None,
    dense_bits: float = 0.0,
) -> float:
    """Return mean seconds of a local step when averages travel while the workers go on, whole or in fragments.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    tau : int
        Local steps between two averages of the same fragment, a multiple of parts.
    bits : float, bits
        Length of one worker's message of the whole model.
    exchange : Exchange, optional
        How messages travel, as in ``Cluster.communication``.
    in_flight : int or None, optional
        Steps made while a message travels, 0 to tau/parts; None: all of them.
    parts : int, optional
        Fragments of the model, sent one after the other.
    result_bits : float or None, bits, optional
        Length of what all owners together send back of the whole model.
    dense_bits : float, bits, optional
        Length of the uncompressed model, which is summed inside nodes.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    ``bounds.runtime.seconds_per_step_in_flight`` has the formula and its assumptions.

    Examples
    --------
    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=4, bandwidth_bit_per_s=1e9, latency_s=0.01, step_s=0.5, compute="constant")
    >>> [round(rd.step_in_flight_s(cluster, tau=40, bits=3.2e9, in_flight=steps), 4) for steps in (0, 5, 10)]
    [0.6215, 0.559, 0.5]
    """
    result = None if result_bits is None else result_bits / max(parts, 1)
    communication = cluster.communication(exchange, result_bits=result, dense_bits=dense_bits / max(parts, 1))
    model = RuntimeModel(cluster.step(), communication=communication, m=cluster.workers)
    return seconds_per_step_in_flight(model, tau=tau, in_flight=in_flight, parts=parts, bits=bits)


def step_overlapped_s(
    cluster: Cluster, *, bits: float, backward_fraction: float, exchange: Exchange = "sum", dense_bits: float = 0.0
) -> float:
    """Return mean seconds of a synchronous step that communicates during the backward pass.

    Parameters
    ----------
    cluster : Cluster
        Workers and links.
    bits : float, bits
        Length of one worker's gradient message.
    backward_fraction : float
        Share of a step spent in the backward pass, 0 < backward_fraction <= 1.
    exchange : Exchange, optional
        How messages travel, as in ``Cluster.communication``.
    dense_bits : float, bits, optional
        Length of the uncompressed gradient, which is summed inside nodes.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    As ``RuntimeModel.seconds_per_overlapped_step``: what is sent last is not charged beyond the backward pass, so that
    with few large buckets a step takes longer.
    """
    communication = cluster.communication(exchange, dense_bits=dense_bits)
    model = RuntimeModel(cluster.step(), communication=communication, m=cluster.workers)
    return model.seconds_per_overlapped_step(backward_fraction=backward_fraction, bits=bits)
