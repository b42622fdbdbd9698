"""What several calls read alike, and the problem of their examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cluster.travel import DENSE_BITS
from ..numbers import read, refusal, whole
from ..records import Advised
from .arguments import workers
from .call import MOST_BYTES

if TYPE_CHECKING:
    from ..cluster.cluster import Cluster
    from ..pilots.pilot import Pilot

CLUSTER_EXAMPLE = {"workers": 16, "bandwidth_bit_per_s": 1e10, "latency_s": 50e-6, "step_s": 0.08}
PROBLEM_EXAMPLE = {"L": 1, "sigma2": 1, "eta": 0.01, "gap": 1, "time_s": 600, "bits": 8.192e8} | {
    "cluster": CLUSTER_EXAMPLE
}
OF_THE_PILOT = ("step_s", "compute")  # parts of a cluster that a pilot has measured
MOST_PILOT_BYTES = 16 * MOST_BYTES  # of a request with a pilot of some 500 moments
MOST_COORDINATES = 2**62  # operators count in 64 bits


def measured_pilot(pilot: Pilot | str, d: Any = None) -> Pilot:
    """Return a pilot, a recorded one with the parameters of another model.

    Parameters
    ----------
    pilot : Pilot or str
        What was measured, its file, or the name of a recorded pilot.
    d : array_like, optional
        Number of parameters of a model whose gradients have the recorded statistics.

    Raises
    ------
    ValueError
        For d beside a pilot that is not recorded.
    """
    from ..pilots.pilot import Pilot

    measured = pilot if isinstance(pilot, Pilot) else Pilot.read(pilot)
    if d is None:
        return measured
    if not measured.recorded:
        raise ValueError(
            f"d beside a pilot of your own must be the pilot's, {measured.d}; got d = {d}: make the pilot with the "
            "model that you will train (a recorded pilot, resnet20 or transformer, takes d)"
        )
    return replace(measured, d=coordinates(d))


def coordinates(d: Any) -> int:
    """Return the length of vectors that operators encode.

    Parameters
    ----------
    d : array_like
        Number of coordinates.

    Raises
    ------
    ValueError
        Unless it is a whole number from 1 to 2^62.
    """
    count = whole("d", d)
    if count > MOST_COORDINATES:
        raise refusal("d", "d <= 2^62 where operators are asked", d)
    return count


def message_bits(cluster: Cluster, bits: Any, d: Any) -> str | np.ndarray:
    """Return the length of one message from its bits, or from the parameters that it holds in binary32.

    Parameters
    ----------
    cluster : Cluster
        One worker alone sends nothing, so that neither is needed.
    bits : array_like or None, bits
        Of one message.
    d : array_like or None
        Number of parameters.

    Raises
    ------
    ValueError
        If both or neither are given, and outside the ranges.
    """
    if bits is not None and d is not None:
        raise ValueError(f"give bits or d, not both; got bits = {bits}, d = {d}: drop one")
    if bits is not None:
        return read("bits", bits)
    if d is not None:
        count = read("d", d)
        return count * DENSE_BITS if isinstance(count, np.ndarray) else str(Fraction(count) * DENSE_BITS)
    if cluster.workers == 1:
        return "0"
    raise ValueError(
        "bits, the length of one message, must be given; got neither bits nor d: give bits, or d for the parameters "
        "sent in binary32 (bits = 0 counts latency alone)"
    )


def parameters_not_said(d: Any) -> tuple[str, ...]:
    """Return how many bits a parameter is taken to have, where a message is given by its parameters.

    Parameters
    ----------
    d : array_like or None
        Number of parameters.
    """
    return () if d is None else (f"{DENSE_BITS} bits per parameter",)


def measurement(op: str, **given: Any) -> Advised:
    """Return the advice to measure a compressor on a vector of the reader's.

    Parameters
    ----------
    op : str
        The compressor.
    **given
        Further arguments of ``gap``.
    """
    return Advised("gap", {"op": op, **given}, ("x",), f"ratedist measure x.npy --operators {op}")


def command_of(name: str, cluster: Cluster, arguments: Mapping[str, Any]) -> str:
    """Return a call as a command; empty where no option states the law of the cluster's step times.

    Parameters
    ----------
    name : str
        The command.
    cluster : Cluster
        Workers and links.
    arguments : mapping of str to object
        The other arguments.
    """
    try:
        stated = cluster.options() | dict(arguments)
    except ValueError:
        return ""
    return " ".join(["ratedist", name, *(f"--{key.replace('_', '-')} {value}" for key, value in stated.items())])


def with_steps_of(pilot: Pilot, cluster: Cluster) -> Cluster:
    """Return the cluster with the steps and backward passes that a pilot has measured; as it is for a recorded one.

    Parameters
    ----------
    pilot : Pilot
        What was measured.
    cluster : Cluster
        Workers and links.

    Raises
    ------
    ValueError
        If the cluster has been given steps of its own.
    """
    if pilot.recorded:
        return cluster
    for part in workers().parts:
        if part.name in OF_THE_PILOT and getattr(cluster, part.name) != part.default:
            raise ValueError(
                f"{part.name} comes from the pilot; got {part.name} = {getattr(cluster, part.name)} beside it: "
                "leave it out"
            )
    return cluster.with_parts(compute=pilot.law(), backward_share=pilot.backward_share())
