"""What a subject promises about the mean of its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from bounds.claims import Unbiased

from .subject import Subject


@dataclass(frozen=True)
class MeanClaim:
    """E C(x) = mean, shape (d,), float64, and ``E|C(x) - mean|^2`` <= second_moment ``|x|^2``."""

    mean: np.ndarray
    second_moment: float


@runtime_checkable
class HasMean(Protocol):
    """A biased operator that says what its mean is: ``mean_at(x)``, with a bound on the error around it."""

    def mean_at(self, x: np.ndarray) -> tuple[np.ndarray, float] | None:
        """Return (E C(x), a bound on ``E|C(x) - E C(x)|^2 / |x|^2``) at a float32 vector: float64, shape (d,); None if
        unknown.
        """


def mean_claim(subject: Subject, x: np.ndarray) -> MeanClaim | None:
    """Return the claim about the mean at a vector, or None if there is none."""
    claim = subject.claim(x.size)
    if isinstance(claim, Unbiased):
        return MeanClaim(x.astype(np.float64), float(claim.omega))
    if isinstance(subject.target, HasMean):
        stated = subject.target.mean_at(x)
        if stated is not None:
            return MeanClaim(np.asarray(stated[0], np.float64), float(stated[1]))
    return None
