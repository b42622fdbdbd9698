"""Arguments that several calls take, and the problem of their examples."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cluster.travel import DENSE_BITS
from ..numbers import meaning, read, refusal, whole
from .call import MOST_BYTES, REQUIRED, Argument, Control, Names, Number, Numbers, Text, Workers

if TYPE_CHECKING:
    from ..cluster.cluster import Cluster
    from ..pilots.pilot import Pilot

UNCERTAIN = {
    name: f"{meaning(name)}: a number, an estimate such as 1.2:0.8:2 "
    "(value:low:high), or left out: then assumed to be 1"
    for name in ("L", "sigma2", "gap")
}
CLUSTER_EXAMPLE = {"workers": 16, "bandwidth_bit_per_s": 1e10, "latency_s": 50e-6, "step_s": 0.08}
PROBLEM_EXAMPLE = {"L": 1, "sigma2": 1, "eta": 0.01, "gap": 1, "time_s": 600, "bits": 8.192e8} | {
    "cluster": CLUSTER_EXAMPLE
}
STEP_TIMES = (
    ("exponential", "exponential (stragglers)"),
    ("half_exponential", "half fixed, half exponential"),
    ("constant", "constant"),
)
CLUSTER_PARTS = (
    Argument(
        "workers", Number(), REQUIRED, "number of workers", control=Control("Workers", "m", decades=(0, 4), whole=True)
    ),
    Argument(
        "bandwidth_bit_per_s",
        Number(),
        1e10,
        "bandwidth of one link in bit/s (default: 1e10)",
        control=Control("Bandwidth of a link", unit="bit/s", decades=(7, 12)),
    ),
    Argument(
        "latency_s",
        Number(),
        50e-6,
        "seconds of one hop besides its bytes (default: 50e-6)",
        control=Control("Latency of a hop", unit="s", decades=(-7, 0)),
    ),
    Argument(
        "step_s",
        Number(),
        0.1,
        "mean seconds of one local step (default: 0.1)",
        control=Control("Mean time of a step", unit="s", decades=(-4, 2)),
    ),
    Argument(
        "compute",
        Text(32),
        "exponential",
        "exponential (default), constant or half_exponential",
        control=Control("Step times", choices=STEP_TIMES),
    ),
    Argument("topology", Text(32), "ring", "ring (default), tree or parameter_server"),
    Argument(
        "nodes",
        Number(),
        None,
        "number of nodes of equally many workers, which share the link of their node",
        control=Control("Nodes of equally many workers", unit="may be empty"),
    ),
    Argument(
        "inside",
        Text(64),
        None,
        "link of a worker inside its node: NAME,LATENCY_S or BIT_PER_S,LATENCY_S",
        control=Control("Link inside a node", unit="name or bit/s, then s"),
    ),
    Argument(
        "between",
        Text(64),
        None,
        "link of a node instead of bandwidth and latency: NAME,LATENCY_S or BIT_PER_S,LATENCY_S",
        control=Control("Link between nodes", unit="name or bit/s, then s"),
    ),
    Argument(
        "sums_at_once", Number(), 1, "sums that one group makes at the same time: 1 for NCCL, 2 for gloo (default: 1)"
    ),
)
CLUSTER = Argument("cluster", Workers(CLUSTER_PARTS), REQUIRED)
OF_THE_PILOT = ("step_s", "compute")  # parts of a cluster that a pilot has measured
MOST_PILOT_BYTES = 16 * MOST_BYTES  # of a request with a pilot of some 500 moments
CODEC_PARTS = (
    Argument(
        "encode_s_per_coordinate",
        Number(),
        REQUIRED,
        control=Control("Encoding a coordinate", unit="s", decades=(-12, -6)),
    ),
    Argument(
        "decode_s_per_coordinate",
        Number(),
        REQUIRED,
        control=Control("Decoding a coordinate", unit="s", decades=(-12, -6)),
    ),
)
BITS_OR_D = (
    Argument("bits", Numbers(), help="bits of one message; 0 counts latency alone"),
    Argument("d", Numbers(), help="number of parameters, sent in binary32, instead of bits"),
)
MOST_COORDINATES = 2**62  # operators count in 64 bits
SETTING = Argument("setting", Names(), help="what holds: refuse what needs more")


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
    return () if d is None else (f"{DENSE_BITS} bits a parameter",)


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
    for part in CLUSTER_PARTS:
        if part.name in OF_THE_PILOT and getattr(cluster, part.name) != part.default:
            raise ValueError(
                f"{part.name} comes from the pilot; got {part.name} = {getattr(cluster, part.name)} beside it: "
                "leave it out"
            )
    return cluster.with_parts(compute=pilot.law(), backward_share=pilot.backward_share())
