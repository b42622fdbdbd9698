"""Draws of an exchange: errors of the mean over the group's scale, step after step."""

from __future__ import annotations

import numpy as np

from ..kit.evidence import Draws, Source
from ..kit.examples import Example
from .groups import Group
from .mean_function import MeanFunction


class MeanSource(Source):
    """Fresh results of an exchange: every draw is a step of its own."""

    def __init__(self, function: MeanFunction) -> None:
        self.function = function

    def draw(self, example: Example, n: int) -> Draws:
        """Return n draws: ``(y - xbar)/scale``, shape (n, d)."""
        assert isinstance(example, Group)
        results = np.stack([self.function.mean(example.vectors) for _ in range(n)])
        return Draws((results - example.wide_mean) / example.scale, np.zeros(n))
