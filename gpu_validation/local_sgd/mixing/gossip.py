"""Gossip: every rank averages with its neighbours only, weighted by a doubly stochastic matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch

from ...distributed.reduction import precision
from ...distributed.transport import VectorTransport
from .mixing import Mixing
from .mixing import zeta as zeta_of

SUM_TOLERANCE = 1e-12  # of the sums of rows and columns: rounding error of 1000 float64 weights


@final
@dataclass(frozen=True)
class Gossip(Mixing):
    """Gossip averaging: x_i <- sum_j W[i][j] x_j over the neighbours; make one with ``gossip(W)``.

    The sum is accumulated in float64 in rank order.  The mean of all models is kept up to ``(m + 2) 2^-53 max|x|`` from
    the sums, plus half a unit in the last place from storing them.  A rank sends one model per round to every
    neighbour.

    Parameters
    ----------
    weights : tuple of tuple of float
        W, shape (m, m).
    """

    weights: tuple[tuple[float, ...], ...]

    common = False

    @property
    def zeta(self) -> float:
        """The largest factor by which a mixing step multiplies differences between models.

        It enters ``bounds.theorems.cooperative``, which requires a symmetric W.
        """
        return zeta_of(self.matrix(len(self.weights)))

    @property
    def spectral_gap(self) -> float:
        """1 - zeta, in (0, 1]."""
        return 1 - self.zeta

    def check(self, m: int) -> None:
        """Raise ValueError unless W has one row per rank."""
        if len(self.weights) != m:
            raise ValueError(f"W must have one row for each of the {m} ranks; got {len(self.weights)} rows")

    def neighbours(self, rank: int) -> list[int]:
        """Return the other ranks from which ``rank`` receives, ascending.

        Parameters
        ----------
        rank : int
            Rank, 0 <= rank < m.
        """
        return [j for j, weight in enumerate(self.weights[rank]) if weight and j != rank]

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return W itself."""
        return np.array(self.weights)

    def mix(self, transport: VectorTransport, owns: Sequence[torch.Tensor], round_index: int) -> list[torch.Tensor]:
        """Exchange vectors with the neighbours and return their weighted sums."""
        received = transport.receive(owns, self.neighbours)
        return [
            _weighted({**parts, rank: vector}, self.weights[rank])
            for rank, vector, parts in zip(transport.ranks, owns, received, strict=True)
        ]


def gossip(W: Any) -> Gossip:
    """Return gossip with the mixing matrix W.

    Parameters
    ----------
    W
        Mixing matrix, shape (m, m), with weights >= 0.

    Raises
    ------
    ValueError
        Unless all weights are >= 0, all rows and columns sum to 1, and zeta < 1, so that repeated mixing makes all
        models equal (some power of W connects all ranks).
    """
    W = np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != W.shape[1] or not W.size:
        raise ValueError(f"W must be a square matrix; got shape {W.shape}")
    if not (W >= 0).all():
        raise ValueError(f"the weights of W must be >= 0; got {W[~(W >= 0)][0]}")
    for axis, name in ((1, "row"), (0, "column")):
        off = np.abs(W.sum(axis=axis) - 1)
        if off.max() > SUM_TOLERANCE:
            farthest = int(off.argmax())
            raise ValueError(
                f"every row and column of W must sum to 1; {name} {farthest} sums to {W.sum(axis=axis)[farthest]}"
            )
    if len(W) > 1 and not zeta_of(W) < 1 - SUM_TOLERANCE:
        raise ValueError("W must connect all ranks; got zeta = 1: connect them, and give each a weight on itself")
    return Gossip(tuple(tuple(map(float, row)) for row in W))


def ring(m: int) -> Gossip:
    """Return gossip on a ring with weight 1/3 on each rank and both neighbours; 1/2 each for two ranks.

    zeta = ``max_k |1 + 2 cos(2 pi k/m)|/3`` over 0 < k < m, about 1 - 4 pi^2/(3 m^2): gossip over long rings is slow.

    Parameters
    ----------
    m : int
        Number of workers.
    """
    W = np.zeros((m, m))
    for i in range(m):
        for j in {(i - 1) % m, i, (i + 1) % m}:
            W[i, j] = 1 / min(m, 3)
    return gossip(W)


def hypercube(m: int) -> Gossip:
    """Return gossip on a hypercube: weight 1/(k + 1) on a rank and each of its k = log2 m neighbours.

    Neighbours differ in one binary digit of their number.  zeta = (k - 1)/(k + 1) for k >= 1.

    Parameters
    ----------
    m : int
        Number of workers, a power of two.

    Raises
    ------
    ValueError
        Unless m is a power of two.
    """
    if m < 1 or m & (m - 1):
        raise ValueError(f"a hypercube needs a power of two of ranks; got m = {m}: use ring({m})")
    k = m.bit_length() - 1
    W = np.eye(m)
    for i in range(m):
        for digit in range(k):
            W[i, i ^ (1 << digit)] = 1
    return gossip(W / (k + 1))


def _weighted(parts: dict[int, torch.Tensor], weights: Sequence[float]) -> torch.Tensor:
    """Return sum_j weights[j] parts[j] in rank order, without fused multiply-add."""
    first, *rest = sorted(parts)
    total = weights[first] * parts[first].to(torch.float64)
    for j in rest:
        total += weights[j] * parts[j].to(torch.float64)
    return total.to(precision(parts[first].dtype))
