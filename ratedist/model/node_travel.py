"""How messages travel whose nodes sum exactly inside: compressed once a node, between the nodes alone.

Every worker of a node owns the node's exact mean of one shard, and exchanges it with the workers in its place.  The
errors of n nodes with constant omega average to omega/n times the mean energy of the nodes' means, at most that of the
m = n p workers' vectors; so p omega stands for omega among m workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bounds.claims import Unbiased

from .cluster import Cluster
from .travel import DENSE_BITS, Travel, claim_of_shards, stated_bits

if TYPE_CHECKING:
    from operators import Operator


def gathered_by_nodes(operator: Operator, d: int, cluster: Cluster) -> Travel:
    """Return how messages of nodes travel to all other nodes.

    Parameters
    ----------
    operator : Operator
        The compressor of a node's mean.
    d : int
        Number of coordinates.
    cluster : Cluster
        With nodes.

    Raises
    ------
    ValueError
        For fewer than two nodes, fewer coordinates than workers of a node, and operators without an unbiased claim or
        a stated length.
    """
    n, p = _shape(cluster, d)
    shard = -(-d // p)
    claim = claim_of_shards(operator, {shard, d // p})
    bits = p * stated_bits(operator, shard)
    words = f"summed exactly in nodes of {p}, then gathered by {n} nodes"
    return Travel(
        "node_gather",
        Unbiased(p * claim.omega),
        bits,
        bits,
        None,
        1 / p,
        n / p,
        words,
        dense_bits=DENSE_BITS * d,
        pieces=p,
    )


def in_two_shots_of_nodes(first: Operator, second: Operator, d: int, cluster: Cluster) -> Travel:
    """Return how shards of nodes' messages travel to their owners, and compressed means to all nodes.

    Parameters
    ----------
    first, second : Operator
        Of the nodes and of the owners.
    d : int
        Number of coordinates.
    cluster : Cluster
        With nodes.

    Raises
    ------
    ValueError
        For fewer than two nodes, fewer coordinates than workers, and operators without an unbiased claim or a stated
        length.
    """
    n, p = _shape(cluster, d)
    m = n * p
    shard = -(-d // m)
    claims = [claim_of_shards(operator, {shard, d // m}) for operator in (first, second)]
    up, back = (m * stated_bits(operator, shard) for operator in (first, second))
    words = f"summed exactly in nodes of {p}, then in two shots between {n} nodes: owners return {back / d:.4g} bits"
    return Travel(
        "node_two_shot",
        Unbiased(p * claims[0].omega),
        up + back / n,
        up,
        back,
        1 / p + 1 / m,
        2 / p,
        f"{words} a coordinate",
        claims[1],
        dense_bits=DENSE_BITS * d,
        first_encoded=1 / p,
        last_decoded=1 / p,
        pieces=m,
    )


def _shape(cluster: Cluster, d: int) -> tuple[int, int]:
    n, p = cluster.nodes or 1, cluster.gpus_per_node or 1
    if n < 2 or d < cluster.workers:
        raise ValueError(f"messages of nodes need 2 nodes and a coordinate for each worker; got {n} nodes, d = {d}")
    return n, p
