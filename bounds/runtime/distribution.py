"""What the numerical integrals need of a distribution of times: its moments, its ends, its tail and its masses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Distribution(ABC):
    """A distribution of nonnegative times, in seconds; hashable, so that its integrals are kept."""

    @property
    @abstractmethod
    def mean_s(self) -> float:
        """Mean, in seconds; infinite if it does not exist."""

    @property
    @abstractmethod
    def sd_s(self) -> float:
        """Standard deviation, in seconds; infinite if the variance is."""

    @property
    def lower_s(self) -> float:
        """The left end of the support, in seconds."""
        return 0.0

    @property
    def upper_s(self) -> float:
        """The right end of the support, in seconds."""
        return np.inf

    @abstractmethod
    def sf(self, t: Any) -> np.ndarray:
        """Return P(Y > t), accurate in relative terms in the far tail; t in seconds, any shape.

        Parameters
        ----------
        t
            Times in seconds, any shape.
        """

    @abstractmethod
    def excess(self, t: float) -> float:
        """Return E max(Y - t, 0), the integral of the tail from t on, in seconds; t >= ``lower_s``.

        Parameters
        ----------
        t : float
            Time in seconds, at least ``lower_s``.
        """

    @abstractmethod
    def quantile(self, tail: float) -> float:
        """Return the time that is exceeded with probability ``tail``, 0 < tail < 1.

        Parameters
        ----------
        tail : float
            Probability with which the time is exceeded, 0 < tail < 1.
        """

    @abstractmethod
    def lattice(self, width_s: float, cells: int) -> np.ndarray:
        """Return masses at lower_s, lower_s + width_s, ..., shape (cells,), with the mean of the law kept.

        Every infinitesimal mass goes to its two neighbours in proportion; what lies beyond is left out.

        Parameters
        ----------
        width_s : float, seconds
            Distance of two lattice points, in seconds.
        cells : int
            Number of lattice points.
        """
