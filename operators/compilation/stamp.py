"""What machine code depends on: the loop itself, what it calls in its package and in this one, and their constants."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import config
from numba.core.dispatcher import Dispatcher
from numba.core.types import Type

_NUMBERS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_PACKAGE = __name__.partition(".")[0]


def stamp(function: Callable[..., Any], options: dict[str, Any]) -> bytes:
    """Return 32 bytes that change with everything in the loop's package, and in this one, that its code is made from.

    A loop of another package, or of a test, is followed into the loops that it calls here.  numba's own caches ask for
    the loop's file only, and keep what its callees in other files were.  What numba is taught of a type (its model, its
    operators) counts if the type's class names it, in a tuple.

    Parameters
    ----------
    function : callable
        The loop, as written.
    options : dict
        Its compiler's options.
    """
    digest = hashlib.sha256()
    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK)
    for part in (repr(settings), repr(sorted(options.items())), *_parts(function, function.__module__, set())):
        digest.update(part.encode() + b"\0")
    return digest.digest()


def _parts(value: Any, module: str, seen: set[int]) -> Iterator[str]:
    """All that matters of a value, as texts; ``seen`` has the functions, classes and modules already listed."""
    top = module.partition(".")[0]
    if isinstance(value, Dispatcher):
        yield repr(sorted(value.targetoptions.items()))
        value = value.py_func
    value = getattr(value, "_defn", value)  # of an intrinsic
    if isinstance(value, _NUMBERS):
        yield repr(value)
    elif isinstance(value, np.ndarray | np.generic):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif is_dataclass(value) and not isinstance(value, type):
        yield repr(value)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _parts(item, module, seen)
    elif isinstance(value, FunctionType | type) and value.__module__.partition(".")[0] in (top, _PACKAGE):
        yield f"{value.__module__}.{value.__qualname__}"
        if id(value) not in seen:
            seen.add(id(value))
            yield from _of_class(value, seen) if isinstance(value, type) else _of_function(value, seen)
    elif isinstance(value, Type) and type(value).__module__.partition(".")[0] in (top, _PACKAGE):
        yield repr(value)
        yield from _parts(type(value), module, seen)
    else:
        yield getattr(value, "__qualname__", type(value).__qualname__)


def _of_class(value: type, seen: set[int]) -> Iterator[str]:
    """Methods, numbers and tuples; not what Python itself notes in a class, as it does when an instance is pickled."""
    for name, member in sorted(vars(value).items()):
        noted = name.startswith("__") and name.endswith("__")
        if isinstance(member, FunctionType) or (isinstance(member, (tuple, *_NUMBERS)) and not noted):
            yield name
            yield from _parts(member, value.__module__, seen)


def _of_function(value: FunctionType, seen: set[int]) -> Iterator[str]:
    yield from _of_code(value.__code__)
    variables = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
    for cell in variables.values():
        yield from _parts(cell.cell_contents, value.__module__, seen)
    yield from _parts(value.__defaults__ or (), value.__module__, seen)
    names = sorted(set(_names(value.__code__)))
    for name in names:
        if name in value.__globals__:
            yield from _of_global(name, value.__globals__[name], names, value.__module__, seen)


def _of_global(name: str, value: Any, names: list[str], module: str, seen: set[int]) -> Iterator[str]:
    """A name of the module; of a module that it imports, what the function names."""
    yield name
    if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in (module.partition(".")[0], _PACKAGE):
        for attribute in names:
            if attribute in vars(value):
                yield attribute
                yield from _parts(vars(value)[attribute], value.__name__, seen)
    else:
        yield from _parts(value, module, seen)


def _of_code(code: CodeType) -> Iterator[str]:
    """The instructions and constants of a function and of those inside it; not its place, so that comments may move."""
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)
        else:
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
