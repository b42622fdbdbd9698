"""A function of a jax array, which may take a key."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .form import Form, name_of


class JaxFunction(Form):
    """A function x -> x_hat, or (x, key) -> x_hat with a fresh key in every call.

    Its keys are not intercepted: the statistical laws judge it.  Raises ModuleNotFoundError without jax.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.jax = importlib.import_module("jax")
        self.__name__ = name_of(function)
        self._keyed = "key" in inspect.signature(function).parameters

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Call it with a fresh key."""
        seed = int(np.random.default_rng().integers(1 << 31))
        keyword = {"key": self.jax.random.PRNGKey(seed)} if self._keyed else {}
        return np.asarray(self.function(self.jax.numpy.asarray(self.given(x)), **keyword))
