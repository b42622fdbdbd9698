"""Nodes of several workers: how many there are, and how messages travel inside and between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from bounds.runtime import Communication, GatherAcross, GatherNodes, Ring, SumNodes, TwoShotAcross, TwoShotNodes

from ..numbers import whole
from .links import Link

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
    """Return workers, nodes and workers of a node, of which one may be left open.

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
