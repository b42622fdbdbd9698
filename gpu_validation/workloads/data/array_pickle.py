"""A safe reader for pickled dictionaries of byte arrays, such as CIFAR's.

Unpickling calls the functions that the file names.  This reader allows four names and replaces them by stand-ins that
only collect their arguments, so that the file runs no code of numpy or others.  All other names are refused before they
are looked up.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from typing import Any

import numpy as np

BYTES = ("u1", "|u1")


class UnsafePickle(ValueError):  # noqa: N818  a public name
    """Raised if the file names anything that a dictionary of byte arrays does not need."""


class _Type:
    """Stand-in for numpy.dtype; unsigned bytes only."""

    def __init__(self, name: Any, *_: Any) -> None:
        if name not in BYTES:
            raise UnsafePickle(f"arrays must hold unsigned bytes; got type {name!r}")

    def __setstate__(self, state: Any) -> None:
        """Ignore byte order and alignment, which bytes do not have."""


class _Array:
    """Stand-in for numpy.ndarray during its reconstruction."""

    value: np.ndarray | None = None

    def __init__(self, *_: Any) -> None:
        """Ignore the arguments, which describe an empty array."""

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, fortran, data = state
        raw = data.encode("latin1") if isinstance(data, str) else data
        if not isinstance(kind, _Type) or not isinstance(raw, bytes) or not all(n >= 0 for n in shape):
            raise UnsafePickle("an array's state must be its shape, its type and its bytes")
        if math.prod(shape) != len(raw):
            raise UnsafePickle(f"an array of shape {shape} needs {math.prod(shape)} bytes; got {len(raw)}")
        self.value = np.frombuffer(raw, np.uint8).reshape(shape, order="F" if fortran else "C")


def _latin1(text: Any, encoding: Any) -> bytes:
    """Stand-in for _codecs.encode, by which Python 3 writes bytes in old protocols."""
    if not isinstance(text, str) or encoding != "latin1":
        raise UnsafePickle(f"bytes must be written as text in latin1; got {encoding!r}")
    return text.encode("latin1")


class _Name:
    """Stand-in for the class numpy.ndarray."""


ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Name,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _latin1,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise UnsafePickle(f"the pickle asks for {module}.{name}, which is refused")
        return ALLOWED[module, name]


def read_arrays(data: bytes) -> dict[str, Any]:
    """Return the dictionary in a pickle of protocol 0 to 5, with text keys and byte arrays or plain data as values.

    Raises
    ------
    UnsafePickle
        A ValueError, for any other global and for a malformed pickle.
    """
    try:
        _require_bounded_memo(data)
        content = _Reader(io.BytesIO(data), encoding="latin1").load()
    except UnsafePickle:
        raise
    except Exception as error:  # a malformed pickle raises nearly anything
        raise UnsafePickle(f"not a pickled dictionary of byte arrays: {type(error).__name__}: {error}") from error
    if not isinstance(content, dict):
        raise UnsafePickle(f"the pickle must hold a dictionary; got {type(content).__name__}")
    return {str(name): value.value if isinstance(value, _Array) else value for name, value in content.items()}


def _require_bounded_memo(data: bytes) -> None:
    """Refuse memo indices larger than the number of operations, because the reader allocates memory up to the index."""
    for count, (operation, argument, _) in enumerate(pickletools.genops(data)):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(str(argument)) > count:
            raise UnsafePickle(f"memo index {argument} after {count} operations")
