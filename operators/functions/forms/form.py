"""What an adapted compressor is to the kit: a function from a 1-d array to a 1-d array."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import torch


class Form(ABC):
    """A compressor of another project as a function x -> x_hat.

    Attributes
    ----------
    dtype
        Of the tensors that the compressor is given.
    __name__ : str
        What a report calls it.
    """

    dtype = torch.float32
    __name__: str

    @abstractmethod
    def __call__(self, x: Any) -> Any:
        """Return the output for a 1-d array, float32, in the library of the form; same library, shape (d,)."""

    def given(self, x: Any) -> Any:
        """Return the vector in the compressor's own type; x itself where that is float32."""
        if isinstance(x, np.ndarray):
            return x if self.dtype == torch.float32 else x.astype(str(self.dtype).removeprefix("torch."))
        return x.to(self.dtype)


def name_of(function: Callable[..., Any]) -> str:
    """Return a function's name, or its class's."""
    return getattr(function, "__qualname__", type(function).__name__).rpartition(".")[2]


def required(function: Callable[..., Any]) -> list[str]:
    """Return the names of the arguments that must be given by place."""
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind in places and p.default is inspect.Parameter.empty]
