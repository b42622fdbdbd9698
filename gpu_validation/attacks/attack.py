"""What a faulty worker sends in place of its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from operators import Key


class Attack(ABC):
    """Subclasses are frozen, final dataclasses.

    name : used in records.  colludes : whether the faulty worker knows more than its own gradient; the bounds for
    independent faults then do not apply.
    """

    name: ClassVar[str]
    colludes: ClassVar[bool] = False

    @abstractmethod
    def corrupt(self, own: np.ndarray, *, truth: np.ndarray, key: Key) -> np.ndarray:
        """What is sent, shape (d,), float32.

        own : the gradient that an honest worker would send.  truth : the mean over honest workers, or the exact
        gradient where it is known; only colluders look at it.  key : of this worker and step.
        """

    @abstractmethod
    def right(self, p: float) -> float:
        """The probability that the sign sent is that of the truth, if an honest one is with probability p."""
