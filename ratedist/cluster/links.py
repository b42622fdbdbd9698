"""Links, nodes of several workers, and how messages travel inside and between nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bounds.runtime import Communication, GatherAcross, GatherNodes, Ring, SumNodes, TwoShotAcross, TwoShotNodes

from ..numbers import Number, real, refusal, whole

# -- links ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineRate:
    """What a specification states for one direction.

    Parameters
    ----------
    bit_per_s : float, bit/s
        In each direction.
    source : str
        Who states it, and of what.
    """

    bit_per_s: float
    source: str


def _nvlink(generation: int, gigabytes_per_s: int, gpu: str) -> LineRate:
    about = f"NVIDIA {gpu} data sheet: NVLink {generation}, {gigabytes_per_s} GB/s a GPU, half of it in each direction"
    return LineRate(gigabytes_per_s / 2 * 8e9, about)


def _pcie(generation: int, gigatransfers_per_s: int) -> LineRate:
    about = f"PCI Express {generation} specification: {gigatransfers_per_s} GT/s a lane, 16 lanes, 128b/130b coding"
    return LineRate(gigatransfers_per_s * 16e9 * 128 / 130, about)


LINE_RATES = {
    "nvlink3": _nvlink(3, 600, "A100"),
    "nvlink4": _nvlink(4, 900, "H100"),
    "nvlink5": _nvlink(5, 1800, "B200"),
    "pcie4_x16": _pcie(4, 16),
    "pcie5_x16": _pcie(5, 32),
    **{
        f"infiniband_{name}": LineRate(rate, f"InfiniBand Trade Association roadmap: {name.upper()}, 4 lanes")
        for name, rate in (("hdr", 200e9), ("ndr", 400e9), ("xdr", 800e9))
    },
    **{
        f"ethernet_{gigabit}g": LineRate(gigabit * 1e9, f"IEEE 802.3: {gigabit} Gbit/s Ethernet")
        for gigabit in (1, 10, 25, 100, 200, 400)
    },
    "aws_p4d": LineRate(400e9, "Amazon EC2 instance types: p4d.24xlarge, 400 Gbit/s an instance"),
    "aws_p5": LineRate(3200e9, "Amazon EC2 instance types: p5.48xlarge, 3200 Gbit/s an instance"),
}


@dataclass(frozen=True)
class Link:
    """A full-duplex link.

    Parameters
    ----------
    bandwidth_bit_per_s : float, bit/s
        In each direction, > 0.
    latency_s : float, seconds
        That a message needs besides its bits, >= 0.
    source : str, optional
        Where the numbers come from.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Examples
    --------
    >>> import ratedist as rd
    >>> rd.Link.named("infiniband_ndr", latency_s=5e-6, count=8).bandwidth_bit_per_s
    3200000000000.0
    """

    bandwidth_bit_per_s: float
    latency_s: float
    source: str = "given"

    def __post_init__(self) -> None:
        for name in ("bandwidth_bit_per_s", "latency_s"):
            object.__setattr__(self, name, real(name, getattr(self, name)))

    @classmethod
    def named(cls, name: str, *, latency_s: Number, count: Number = 1, reached: Number = 1) -> Link:
        """Return a link at the line rate of a public specification.

        Parameters
        ----------
        name : str
            Such as "nvlink4", "infiniband_ndr" or "ethernet_10g"; ``LINE_RATES`` has them with their sources.
        latency_s : float, seconds
            No specification states what software and switches add to a message: measure a short one.
        count : int, optional
            Ports used together.
        reached : float, optional
            Share of the line rate that transfers reach, 0 < reached <= 1; measure a long one.

        Raises
        ------
        ValueError
            For an unknown name, and numbers outside their ranges.
        """
        if name not in LINE_RATES:
            raise ValueError(f"a link must be one of {', '.join(LINE_RATES)}; got {name!r}: or give rd.Link(bit/s, s)")
        rate, ports, share = LINE_RATES[name], whole("count", count), real("reached", reached)
        if share > 1:
            raise refusal("reached", "0 < reached <= 1", reached)
        source = rate.source + (f", {ports} ports" if ports > 1 else "") + (f", {share:g} of it" if share < 1 else "")
        return cls(ports * rate.bit_per_s * share, real("latency_s", latency_s), source)

    @classmethod
    def read(cls, name: str, given: Link | str) -> Link:
        """Return a link, or the one that a text describes.

        Parameters
        ----------
        name : str
            Of the argument.
        given : Link or str
            A link, or "NAME,LATENCY_S" or "BIT_PER_S,LATENCY_S", such as "nvlink4,3e-6" or "4e11,5e-6".

        Raises
        ------
        ValueError
            For anything else.
        """
        if isinstance(given, Link):
            return given
        first, comma, latency = given.partition(",") if isinstance(given, str) else ("", "", "")
        if not comma:
            raise ValueError(
                f"{name} must be a ratedist.Link, or a name or bit/s and a latency; got {given!r}: "
                'write for example "nvlink4,3e-6"'
            )
        if first.strip() in LINE_RATES:
            return cls.named(first.strip(), latency_s=latency.strip())
        try:
            bit_per_s = real("bandwidth_bit_per_s", first.strip())
        except ValueError:
            names = ", ".join(LINE_RATES)
            raise ValueError(
                f"{name} must begin with bit/s > 0 or a name; got {first.strip()!r}: use {names}"
            ) from None
        return cls(bit_per_s, real("latency_s", latency.strip()))

    def in_words(self) -> str:
        """Return one line for the assumptions of a result."""
        return f"{self.latency_s:g} s and {self.bandwidth_bit_per_s:g} bit/s ({self.source})"


# -- nodes ---------------------------------------------------------------------------------------------

Exchange = Literal["sum", "gather", "two_shot", "node_gather", "node_two_shot"]
BITS_PER_BYTE = 8


def node_fields(given: Mapping[str, Any], *, bit_per_s: float, latency_s: float) -> dict[str, Any]:
    """Return what the fields of a cluster hold that has nodes; nothing where it has none.

    The numbers of the link between nodes stand where those of the links stand.

    Parameters
    ----------
    given : mapping of str to object
        All fields, as they were given.
    bit_per_s : float, bit/s
        The bandwidth of a link that was not given.
    latency_s : float, seconds
        The latency of a link that was not given.

    Raises
    ------
    ValueError
        For numbers that do not fit together, and links without nodes.
    """
    if given["nodes"] is None:
        extra = [name for name in ("gpus_per_node", "inside", "between") if given[name] is not None]
        if extra:
            raise ValueError(f"{extra[0]} goes with nodes; got nodes = None: give the number of nodes")
        return {}
    if given["topology"] != "ring":
        raise ValueError(f"nodes need topology ring; got {given['topology']!r}: leave it out")
    workers, nodes, each = shape_of(given["workers"], given["nodes"], given["gpus_per_node"])
    if given["inside"] is None and each > 1:
        raise ValueError(f"nodes of {each} workers need inside, their links; got None: write rd.Link(bit/s, s)")
    inside = None if given["inside"] is None else Link.read("inside", given["inside"])
    fields: dict[str, Any] = {"workers": workers, "nodes": nodes, "gpus_per_node": each, "inside": inside}
    if given["between"] is None:
        return fields
    between = Link.read("between", given["between"])
    for name, default in (("bandwidth_bit_per_s", bit_per_s), ("latency_s", latency_s)):
        if given[name] not in (default, getattr(between, name)):
            raise ValueError(f"between stands for {name}; got both, {name} = {given[name]}: leave one of them out")
        fields[name] = getattr(between, name)
    return fields | {"between": between}


def shape_of(workers: Any, nodes: Any, gpus_per_node: Any) -> tuple[int, int, int]:
    """Return workers, nodes and workers of a node; one of them may be None.

    Parameters
    ----------
    workers : array_like
        Number of workers; 0 where it is open.
    nodes : array_like
        Number of nodes.
    gpus_per_node : array_like or None
        Workers of a node; None where it is open.

    Raises
    ------
    ValueError
        If they do not fit together.
    """
    count = whole("nodes", nodes)
    given = {"workers": workers} if workers not in (0, "0") else {}
    total = whole("workers", given["workers"]) if given else 0
    if gpus_per_node is None:
        if not given or total % count:
            raise ValueError(
                f"nodes must divide workers; got nodes = {nodes}, workers = {workers}: give gpus_per_node, the workers "
                "of one node"
            )
        return total, count, total // count
    each = whole("gpus_per_node", gpus_per_node)
    if given and total != count * each:
        raise ValueError(
            f"workers must equal nodes * gpus_per_node; got {total} workers, {count} nodes of {each}: leave workers out"
        )
    return count * each, count, each


def on_nodes(
    exchange: Exchange,
    links: tuple[Link, Link],
    gpus_per_node: int,
    *,
    result_bits: float | None,
    dense_bits: float,
) -> Communication:
    """Return how messages travel on two levels of links.

    Parameters
    ----------
    exchange : Exchange
        What is exchanged: sums on the way, all messages, shards and results; or, after exact sums inside nodes, the
        messages of nodes, gathered or in two shots.
    links : tuple of Link
        That of a worker inside its node, and that of a node, which its workers share.
    gpus_per_node : int
        Workers of a node.
    result_bits : float or None, bits
        Length of what all owners together send back, in two shots.
    dense_bits : float, bits
        Length of an uncompressed vector, for exact sums inside nodes.
    """
    inside, between = links
    link: dict[str, Any] = {"latency_s": between.latency_s, "bytes_per_s": between.bandwidth_bit_per_s / BITS_PER_BYTE}
    ring = Ring(inside.latency_s, inside.bandwidth_bit_per_s / BITS_PER_BYTE)
    link |= {"node_workers": gpus_per_node, "inside": ring}
    match exchange:
        case "sum":
            return SumNodes(**link)
        case "gather":
            return GatherAcross(**link)
        case "two_shot":
            return TwoShotAcross(**link, result_bits=result_bits)
        case "node_gather":
            return GatherNodes(**link, dense_bits=dense_bits)
        case "node_two_shot":
            return TwoShotNodes(**link, result_bits=result_bits, dense_bits=dense_bits)
