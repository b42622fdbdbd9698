"""What faulty workers send: random rescaling, random signs, negation, omniscient collusion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from operators import Key
from operators.random import bits32, uniform


class Attack(ABC):
    """Subclasses are frozen, final dataclasses.

    Attributes
    ----------
    name : str
        Used in records.
    colludes : bool
        Whether the faulty worker knows more than its own gradient; the bounds for independent faults then do not apply.
    """

    name: ClassVar[str]
    colludes: ClassVar[bool] = False

    @abstractmethod
    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """Return what is sent, shape (d,), float32.

        Parameters
        ----------
        own : ndarray
            The gradient that an honest worker would send.
        truth : ndarray
            The mean over honest workers, or the exact gradient where it is known; only colluders look at it.
        key : Key
            Of this worker and step.
        """

    @abstractmethod
    def right(self, p: float) -> float:
        """Return the probability that the sign sent is that of the truth, if an honest one is with probability p.

        Parameters
        ----------
        p : float
            The probability that an honest sign is right.
        """


@dataclass(frozen=True)
class Collude(Attack):
    """Send -factor times the truth: never right, whatever the noise of the own gradient.

    Parameters
    ----------
    factor : float, optional
        How much larger than an honest message.
    """

    factor: float = 1.0

    name = "collude"
    colludes = True

    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """Return the opposite of the truth."""
        return (-np.float32(self.factor) * truth).astype(np.float32)

    def right(self, p: float) -> float:
        """Return 0: it is never right."""
        return 0.0


@dataclass(frozen=True)
class Negate(Attack):
    """Multiply by -factor (Bernstein et al. 2019, section 5: factor 1).

    Parameters
    ----------
    factor : float, optional
        How much larger than an honest message.
    """

    factor: float = 1.0

    name = "negate"

    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """Return the opposite."""
        return (-np.float32(self.factor) * own).astype(np.float32)

    def right(self, p: float) -> float:
        """Return 1 - p: it is right where the honest sign would have been wrong."""
        return 1 - p


@dataclass(frozen=True)
class RandomSigns(Attack):
    """Flip the sign of each coordinate with probability 1/2 (Bernstein et al. 2019, section 5)."""

    name = "random_signs"

    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """Return the gradient's magnitudes under fair coins."""
        return np.where(bits32(key, own.size) >> 31 == 1, -own, own).astype(np.float32)

    def right(self, p: float) -> float:
        """Return a fair coin."""
        return 0.5


@dataclass(frozen=True)
class Rescale(Attack):
    """Multiply by 10^u, u uniform on [0, decades), afresh at every step (Bernstein et al. 2019, section 5).

    Parameters
    ----------
    decades : float, optional
        The exponent is uniform on [0, decades).
    """

    decades: float = 4.0

    name = "rescale"

    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """Return the gradient, longer."""
        return (own * np.float32(10 ** (self.decades * uniform(key, 1)[0]))).astype(np.float32)

    def right(self, p: float) -> float:
        """Return p: signs are not changed."""
        return p
