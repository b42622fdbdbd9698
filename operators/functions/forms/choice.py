"""Which of the forms a compressor of another project has."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from .form import Form
from .function import Function
from .hivemind import Hivemind
from .hook import Hook
from .jax_function import JaxFunction
from .pair import Pair

Library = Literal["torch", "numpy", "jax"]


def form_of(target: Any, library: Library, state: Any = None) -> Form:
    """Return a compressor as a function x -> x_hat.

    Parameters
    ----------
    target
        A function, a hook, a pair, or a codec; see ``operators.laws.adapt``.
    library : Library
        Of the arrays that it takes.
    state : optional
        Of a hook.

    Raises
    ------
    TypeError
        For what has none of these forms.
    """
    if isinstance(target, tuple) and len(target) == 2 and all(map(callable, target)):
        return Pair(*target, library=library)
    if isinstance(target, type):
        raise TypeError(f"expected an instance; got the class {target.__name__}: call it first")
    if callable(getattr(target, "compress", None)) and callable(getattr(target, "extract", None)):
        return Hivemind(target)
    if callable(getattr(target, "compress", None)) and callable(getattr(target, "decompress", None)):
        return Pair(target.compress, target.decompress, library=library, name=type(target).__name__)
    if not callable(target):
        raise TypeError(
            f"expected a function, a hook(state, bucket), a pair (compress, decompress), or an object with compress "
            f"and decompress or extract; got {target!r}"
        )
    if library == "jax":
        return JaxFunction(target)
    return Hook(target, state) if _is_hook(target) else Function(target, library)


def _is_hook(target: Callable[..., Any]) -> bool:
    """Return whether two arguments must be given."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except ValueError:  # a built-in function
        return False
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in places and p.default is inspect.Parameter.empty for p in parameters) == 2
