"""PowerSGD as it was published: the factors of the mean matrix, by two sums, with error feedback on every rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch

from bounds.claims import NoClaim

from ..compressors.low_rank import LowRank
from ..feedback.feedback import State
from ..feedback.power_sgd import PowerSGD, counted_step, is_exact_step, nudged
from ..key import Key
from ..quantisers.thin_products import orthonormal, times, times_transposed, transposed_times, unit_columns
from .summed import Floats, Rounds, Summed


@dataclass(frozen=True)
class SummedPowerSGD(Summed):
    """Sum M_i Q, take P = orth of it, sum M_i^T P, and return P (mean M_i^T P)^T; M_i is x_i plus what rank i owes.

    Parameters
    ----------
    rank : int, optional
        r >= 1.
    shape : tuple of int or None, optional
        Of the matrix, (rows, columns) with rows columns = d; None for a near-square one.
    exact_steps : int, optional
        Number of first steps in which x itself is summed, >= 0: ``start_powerSGD_iter`` of torch's ``PowerSGDState``.

    Raises
    ------
    ValueError
        As ``PowerSGD`` does; in a step, on all ranks, where a sum exceeds binary32.

    Notes
    -----
    ``PowerSGD`` factorises every rank's own matrix, so that m pairs of factors are gathered; here all ranks have one P,
    and the factors can be added: one power iteration on the mean, 64 (1 - 1/m) r (rows + columns) bits sent by a rank,
    whatever m is (Vogels et al. 2019).  Rank i keeps M_i - P (M_i^T P)^T, a projection and so no longer than M_i; the
    sum of all results plus the mean of the residuals is the sum of all means.  The warm start Q, the same on all ranks,
    is turned a little as in ``PowerSGD``.  P is computed by every rank from the same sums: ranks on unlike processors
    may differ in its last bits, and with it in their results.  x itself is summed where the factors are no shorter.
    """

    rank: int = 1
    shape: tuple[int, int] | None = None
    exact_steps: int = 0

    name = "summed_powersgd"
    sources = ("vogels2019",)
    coordinatewise = False

    def __post_init__(self) -> None:
        PowerSGD(self.rank, self.shape, self.exact_steps)

    def init(self, d: int) -> State:
        """Return the state at the start: a residual of zero, and no direction."""
        return PowerSGD(self.rank, self.shape, self.exact_steps).init(d)

    def rounds(self, state: State, x: np.ndarray, *, key: Key, m: int, member: bool) -> Rounds:
        """Sum the left factors, then the right ones."""
        operator, d = LowRank(self.rank, self.shape), x.size
        owed = state["residual"].numpy()
        corrected = x.astype(np.float64) + owed
        counted = counted_step(state)
        if operator.is_exact(d) or is_exact_step(state, self.exact_steps):
            sums = yield (_binary32(corrected),)
            _require_finite(sums.values[0])
            kept = torch.zeros(d) if member else state["residual"]
            return {"residual": kept, "start": state["start"], **counted}, sums.values[0] / np.float32(sums.members)
        rows, columns = operator.matrix_shape(d)
        padded = np.zeros(rows * columns)
        padded[:d] = corrected
        matrix = padded.reshape(rows, columns)
        start = nudged(state["start"].double().numpy(), key.shared())
        left = yield (_binary32(times(matrix, start).reshape(-1)),)
        _require_finite(left.values[0])
        p = orthonormal(left.values[0].astype(np.float64).reshape(rows, -1) / left.members)
        terms = _binary32(transposed_times(matrix, p).reshape(-1))
        right_i = terms.values.reshape(columns, -1)
        right = yield (terms,)
        _require_finite(right.values[0])
        q = right.values[0].astype(np.float64).reshape(columns, -1) / right.members
        residual = _binary32(corrected - times_transposed(p, right_i).reshape(-1)[:d]).values
        kept = torch.from_numpy(residual) if member else state["residual"]
        new_state = {"residual": kept, "start": torch.from_numpy(unit_columns(q)), **counted}
        mean = _binary32(times_transposed(p, q).reshape(-1)[:d]).values
        _require_finite(mean)
        return new_state, mean

    def bits_of_rounds(self, d: int, m: int) -> tuple[int, ...]:
        """Return the left factors and the right ones in binary32, or all of x, after the exact steps."""
        operator = LowRank(self.rank, self.shape)
        if operator.is_exact(d):
            return (32 * d,)
        rows, columns = operator.matrix_shape(d)
        left = 32 * rows * min(self.rank, rows, columns)
        return left, (operator.bits(d).exact or 0) - left

    def claim_mean(self, d: int, m: int) -> NoClaim:
        """Return ``NoClaim``: a warm start has no constant."""
        return NoClaim("a warm start contracts nothing by itself, see PowerSGD")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        """Rank one and rank four."""
        return cls(), cls(4)


def _binary32(values: np.ndarray) -> Floats:
    """Return the values in binary32, infinite where they exceed it: the sum then shows it to all ranks."""
    with np.errstate(over="ignore"):
        return Floats(values.astype(np.float32))


def _require_finite(sums: np.ndarray) -> None:
    """Raise on all ranks, which have the same sums."""
    if not np.isfinite(sums).all():
        raise ValueError(
            "a sum over the ranks must fit in binary32; a factor of the mean matrix exceeds it: scale the vectors down"
        )
