"""A function of a jax array, which may take a key."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .form import Form, name_of, required


class JaxFunction(Form):
    """A function x -> x_hat, or one that takes a fresh key in every call: as ``key=``, ``rng=`` or its second argument.

    Its keys are not intercepted: the statistical laws judge it.

    Raises
    ------
    ModuleNotFoundError
        Without jax.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.jax = importlib.import_module("jax")
        self.__name__ = name_of(function)
        names = list(inspect.signature(function).parameters)
        second = required(function)[1:2]
        self._key = next((name for name in ("key", "rng") if name in names), second[0] if second else None)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Call it with a fresh key."""
        seed = int(np.random.default_rng().integers(1 << 31))
        keyword = {} if self._key is None else {self._key: self.jax.random.PRNGKey(seed)}
        return np.asarray(self.function(self.jax.numpy.asarray(self.given(x)), **keyword))
