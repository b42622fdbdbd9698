"""Mixing of models at the end of a round: one multiplication of all models by a matrix W.

The model of rank i becomes sum_j W[i, j] times that of rank j.  Modes are full averaging, sampled clients, gossip, and
elastic averaging (EASGD; Zhang, Choromanska & LeCun 2015), whose anchor counts as one more model.  This is the view of
cooperative SGD (Wang & Joshi, arXiv:1808.07576).  A doubly stochastic W keeps the mean of all models.  zeta, the
spectral norm of W without its mean, measures how much it reduces their differences.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import torch

from operators import Key
from operators.compressors.random_k import random_support

from ..processes.reduction import precision
from ..processes.transport import VectorTransport

State = Mapping[str, torch.Tensor]


class Mixing(ABC):
    """A mode of averaging; subclasses are frozen, final dataclasses without side effects.

    Attributes
    ----------
    common : bool
        Whether all ranks start the next round from one model, as compressed movements and block momentum require.
    """

    common: ClassVar[bool]

    def check(self, m: int) -> None:  # noqa: B027  most modes work with any number of ranks
        """Raise ValueError if the mode does not work with m ranks.

        Parameters
        ----------
        m : int
            Number of workers.
        """

    def members(self, round_index: int, m: int) -> Sequence[int]:
        """Return the ranks whose models count in a round, ascending; all unless the mode samples them.

        Parameters
        ----------
        round_index : int
            Index of the round, from 0.
        m : int
            Number of workers.
        """
        return range(m)

    @abstractmethod
    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return W of a round, shape (m, m), or (m + 1, m + 1) with an anchor as the last model.

        Parameters
        ----------
        m : int
            Number of workers.
        round_index : int, optional
            Index of the round, from 0.
        """

    def mix(self, transport: VectorTransport, owns: Sequence[torch.Tensor], round_index: int) -> list[torch.Tensor]:
        """Return the vector that each rank hosted here receives: by default the mean of the members.

        Parameters
        ----------
        transport : VectorTransport
            Transport of the messages.
        owns : sequence of tensor
            One vector per rank hosted here, shape (n,).
        round_index : int
            Index of the round, from 0.

        Returns
        -------
        list of tensor
            Vectors in float32, or float64 for float64.
        """
        return transport.means(owns, self.members(round_index, transport.size))

    def init(self, start: torch.Tensor) -> State:
        """Return a rank's state before the first round, which starts at the model ``start`` on all ranks.

        Parameters
        ----------
        start : tensor
            Common model, shape (d,).
        """
        return {}

    def update(self, state: State, own: torch.Tensor, blended: torch.Tensor, m: int) -> tuple[State, torch.Tensor]:
        """Return (new state, next model) of a rank.

        Parameters
        ----------
        state : State
            Result of ``init`` or of the last ``update``.
        own : tensor
            Model of the rank, shape (d,).
        blended : tensor
            Result of ``mix``, shape (d,).
        m : int
            Number of workers.
        """
        return state, blended


def zeta(W: np.ndarray) -> float:
    """Return the spectral norm of W - J, where J is the averaging matrix.

    For a symmetric W it is the second largest ``|eigenvalue|``.  It is 0 for full averaging.  It is below 1 exactly if
    repeated mixing makes all models equal.

    Parameters
    ----------
    W : ndarray
        Mixing matrix, shape (m, m).
    """
    return float(np.linalg.norm(W - 1 / len(W), 2))


@final
@dataclass(frozen=True)
class Full(Mixing):
    """Full averaging: W = J with all entries 1/m; zeta = 0."""

    common = True

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return the matrix with all entries 1/m."""
        return np.full((m, m), 1 / m)


@final
@dataclass(frozen=True)
class Sampled(Mixing):
    """Average the models of ``clients`` ranks, drawn without replacement from a shared key.

    Parameters
    ----------
    clients : int
        Number of ranks per round, 1 <= clients <= m.
    key : Key
        The draw of round t depends only on it and on t; its rank is ignored.

    Raises
    ------
    ValueError
        If clients < 1 or clients > m.

    Notes
    -----
    All subsets are equally likely, up to a relative error of 2^-32, so the average is an unbiased estimate of the mean
    of all models.  With ``S^2 = sum_i |x_i - mean|^2/(m - 1)`` its expected squared error is (1/clients - 1/m) S^2.
    """

    clients: int
    key: Key

    common = True

    def __post_init__(self) -> None:
        if self.clients < 1:
            raise ValueError(f"clients must be >= 1; got {self.clients}")

    def check(self, m: int) -> None:
        """Raise ValueError if there are fewer ranks than clients."""
        if self.clients > m:
            raise ValueError(f"clients must satisfy 1 <= clients <= m = {m}; got {self.clients}")

    def members(self, round_index: int, m: int) -> Sequence[int]:
        """Return the ranks of round ``round_index``."""
        return [int(rank) for rank in random_support(self.key.shared().fold_in(round_index), self.clients, m)]

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return W with 1/clients in the members' columns.

        Its rows sum to 1; its columns do so only on average over rounds.
        """
        W = np.zeros((m, m))
        W[:, self.members(round_index, m)] = 1 / self.clients
        return W


@final
@dataclass(frozen=True)
class Elastic(Mixing):
    """Elastic averaging: x_i <- x_i - alpha (x_i - z) and z <- z + alpha sum_i (x_i - z), from the same old values.

    Every rank stores the anchor z, which starts at the common model; evaluate the anchor.  W is symmetric and doubly
    stochastic on the m models and the anchor, so their mean does not change.  Buffers and averaged optimizer states
    take the full mean.  Updates are computed in float64 and stored in the models' precision.

    Parameters
    ----------
    alpha : float
        0 < alpha < 2/(m + 1), so that zeta = ``max(|1 - alpha|, |1 - (m + 1) alpha|)`` < 1.

    Raises
    ------
    ValueError
        For an alpha outside this range.
    """

    alpha: float

    common = False

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"alpha must satisfy 0 < alpha < 1; got {self.alpha}")

    @classmethod
    def best(cls, m: int) -> Elastic:
        """Return the mode with alpha = 2/(m + 2), which minimises zeta: m/(m + 2).

        Parameters
        ----------
        m : int
            Number of workers.
        """
        return cls(2 / (m + 2))

    def check(self, m: int) -> None:
        """Raise ValueError unless alpha < 2/(m + 1)."""
        if not self.alpha < 2 / (m + 1):
            raise ValueError(f"alpha must satisfy 0 < alpha < 2/(m + 1) = {2 / (m + 1):.6g}; got {self.alpha}")

    def zeta(self, m: int) -> float:
        """Return the largest factor by which an averaging multiplies differences between models and anchor.

        Parameters
        ----------
        m : int
            Number of workers.
        """
        return zeta(self.matrix(m))

    def matrix(self, m: int, round_index: int = 0) -> np.ndarray:
        """Return W, shape (m + 1, m + 1), with the anchor last."""
        W = np.diag(np.full(m + 1, 1 - self.alpha))
        W[:m, m] = W[m, :m] = self.alpha
        W[m, m] = 1 - m * self.alpha
        return W

    def init(self, start: torch.Tensor) -> State:
        """Return the state with the anchor at the common start."""
        return {"anchor": start}

    def update(self, state: State, own: torch.Tensor, blended: torch.Tensor, m: int) -> tuple[State, torch.Tensor]:
        """Move model and anchor; ``blended`` is the mean of all models."""
        anchor = state["anchor"].to(blended.device, torch.float64)
        moved = anchor + (m * self.alpha) * (blended - anchor)
        mixed = own - self.alpha * (own - anchor)
        return {"anchor": moved.to(blended.dtype)}, mixed.to(blended.dtype)


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
        return zeta(self.matrix(len(self.weights)))

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
    if len(W) > 1 and not zeta(W) < 1 - SUM_TOLERANCE:
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
