"""The time of a mean that is exact inside every node and in two shots between the nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .checks import nonnegative, positive_integer
from .communication import Communication
from .two_shot import TwoShot


@dataclass(frozen=True)
class TwoShotNodes(TwoShot):
    """Nodes of several workers: exact sums of dense shards inside, two shots between the owners of each shard.

    What it shares with ``TwoShot`` is about the link between nodes, which the workers of a node share; ``bits`` is the
    length of the message of one node.  Without a second node nothing is compressed.

    Parameters
    ----------
    latency_s : float, seconds
        Seconds a message between nodes needs besides its bytes.
    bytes_per_s : float, bytes/s
        Bandwidth of the link of a node.
    message_s : float, seconds
        Seconds that a worker needs for one message between nodes besides its bytes.
    result_bits : float, bits, optional
        Length of the whole compressed mean, by default that of the message of one node.
    node_workers : int
        Workers of one node, which divides m.
    inside : Communication, optional
        The exact sum inside a node and the spreading of the result: ``Ring`` if the result is spread decoded,
        ``TwoShot`` with its ``result_bits`` if it is spread encoded.
    dense_bits : float, bits
        Length of an uncompressed vector.

    Raises
    ------
    ValueError
        For a negative time or length, and in use if node_workers does not divide m.
    """

    node_workers: int = 1
    inside: Communication | None = None
    dense_bits: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("node_workers", self.node_workers)
        nonnegative("dense_bits", self.dense_bits)
        if self.node_workers > 1 and self.inside is None:
            raise ValueError(f"inside must be given with node_workers = {self.node_workers} > 1: the links of a node")

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        m, p = payload_bytes.size, self.node_workers
        if m % p:
            raise ValueError(f"node_workers must divide the number of workers; got m = {m}, node_workers = {p}")
        exact_s = 0.0 if self.inside is None else self.inside.seconds(m=p, bits=self.dense_bits)
        nodes = np.full(m // p, payload_bytes.max())
        return exact_s + (super()._seconds(nodes) if nodes.size > 1 else 0.0)
