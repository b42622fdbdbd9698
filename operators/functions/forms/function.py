"""A plain function of a torch tensor or a numpy array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .form import Form, name_of


class Function(Form):
    """A function x -> x_hat with its own randomness."""

    def __init__(self, function: Callable[[Any], Any], library: str) -> None:
        self.function, self.library = function, library
        self.__name__ = name_of(function)

    def __call__(self, x: Any) -> Any:
        """Call it."""
        return self.function(self.given(x))
