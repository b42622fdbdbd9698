"""The time of one averaging on nodes of several workers, with fast links inside a node and one slow link between.

Setting.  n nodes of p workers, m = n p.  Inside, every worker has a full-duplex link of bandwidth B_i and latency a_i
into a switch; between nodes, every node has one full-duplex link of bandwidth B and latency a, which its workers share.
Messages have b bytes.

* ``SumNodes``, of messages that can be summed: reduce and scatter inside, p ring all-reduces of b/p each between the
  workers with the same place, which share the node's link, and gather inside::

      2 (p-1) (a_i + b/(p B_i)) + 2 (n-1) (a + b/(n B)).

* ``GatherAcross``, of every worker's message to all others: p ring all-gathers between nodes, then one inside, of the n
  messages that each place holds.  A node's link carries (n-1) p messages, a worker receives m - 1::

      (n-1) (a + p b/B) + (p-1) (a_i + n b/B_i).

* ``TwoShotAcross``, of shards of b/m to their owners and of results back, all pairs at once, each pair by the link that
  it has; of the b of every worker the share (n-1)/n leaves the node.  One shot takes::

      max(a + p b (n-1)/(n B), a_i + (p-1) b/(m B_i)).

* ``GatherNodes``, of one message of each node, whose mean is exact: reduce and scatter inside, p ring all-gathers of
  b/p each between nodes, gather inside; ``TwoShotNodes`` is the same with two shots between nodes::

      2 (p-1) (a_i + dense/(p B_i)) + (n-1) (a + b/B).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .checks import nonnegative, positive_integer
from .communication import BITS_PER_BYTE, Communication, Ring, TwoShot


@dataclass(frozen=True)
class AcrossNodes(Communication):
    """An exchange on two levels of links; latency and bandwidth are those between nodes.

    Unequal messages count with the longest.

    Parameters
    ----------
    latency_s : float, seconds
        Seconds a message between nodes needs besides its bytes.
    bytes_per_s : float, bytes/s
        Bandwidth of the link of a node, which its workers share.
    node_workers : int
        Workers of one node, which divides m.
    inside : Ring
        The links of the workers inside a node.

    Raises
    ------
    ValueError
        For a negative time, and in use if node_workers does not divide m.
    """

    node_workers: int
    inside: Ring

    def __post_init__(self) -> None:
        super().__post_init__()
        positive_integer("node_workers", self.node_workers)

    def _nodes(self, payload_bytes: np.ndarray) -> int:
        m, p = payload_bytes.size, self.node_workers
        if m % p:
            raise ValueError(f"node_workers must divide the number of workers; got m = {m}, node_workers = {p}")
        return m // p


@dataclass(frozen=True)
class SumNodes(AcrossNodes):
    """Hierarchical all-reduce of messages that can be summed."""

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        n, longest = self._nodes(payload_bytes), BITS_PER_BYTE * float(payload_bytes.max())
        between = Ring(self.latency_s, self.bytes_per_s)
        return self.inside.seconds(m=self.node_workers, bits=longest) + between.seconds(m=n, bits=longest)


@dataclass(frozen=True)
class GatherAcross(AcrossNodes):
    """All-gather of every worker's message, first between nodes and then inside them."""

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        n, p, longest = self._nodes(payload_bytes), self.node_workers, float(payload_bytes.max())
        between_s = (n - 1) * (self.latency_s + p * longest / self.bytes_per_s)
        return between_s + (p - 1) * (self.inside.latency_s + n * longest / self.inside.bytes_per_s)


@dataclass(frozen=True)
class TwoShotAcross(AcrossNodes):
    """Shards of every worker's message to their owners and results to all, all pairs at once.

    Parameters
    ----------
    result_bits : float or None, bits, optional
        Length of the whole compressed mean, by default that of the longest message.

    Raises
    ------
    ValueError
        For a negative time or length, and in use if node_workers does not divide m.
    """

    result_bits: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        nonnegative("result_bits", self.result_bits or 0.0)

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        n, longest = self._nodes(payload_bytes), float(payload_bytes.max())
        back = longest if self.result_bits is None else math.ceil(self.result_bits / BITS_PER_BYTE)
        return self._shot_s(n, longest) + self._shot_s(n, float(back))

    def _shot_s(self, n: int, message_bytes: float) -> float:
        p = self.node_workers
        near_s = self.inside.latency_s + (p - 1) * message_bytes / (n * p) / self.inside.bytes_per_s
        far_s = self.latency_s + p * (n - 1) / n * message_bytes / self.bytes_per_s
        return max(near_s if p > 1 else 0.0, far_s if n > 1 else 0.0)


@dataclass(frozen=True)
class GatherNodes(AcrossNodes):
    """Exact sums inside nodes, whose compressed means all nodes gather.

    ``bits`` is the length of the message of one node; without a second node nothing is compressed.

    Parameters
    ----------
    dense_bits : float, bits
        Length of an uncompressed vector.

    Raises
    ------
    ValueError
        For a negative time or length, and in use if node_workers does not divide m.
    """

    dense_bits: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        nonnegative("dense_bits", self.dense_bits)

    def _seconds(self, payload_bytes: np.ndarray) -> float:
        n, longest = self._nodes(payload_bytes), float(payload_bytes.max())
        exact_s = self.inside.seconds(m=self.node_workers, bits=self.dense_bits)
        return exact_s + (n - 1) * (self.latency_s + longest / self.bytes_per_s)


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
