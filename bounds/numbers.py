"""What may be given for a number, for several and for a vector: the types of the arguments of calls."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np


class SupportsArray(Protocol):
    """An array of numpy, a tensor of PyTorch, and whatever else numpy reads as an array."""

    def __array__(self) -> np.ndarray: ...


Number = float | str | Fraction | Decimal | np.number
"""One number, or a text that states one exactly."""
Numbers = Number | Sequence[Number] | Sequence[Sequence[Number]] | SupportsArray
"""One number or several."""
Vector = Sequence[float] | SupportsArray
"""The coordinates of a vector."""
