"""Intercept what numpy's generators draw: a live Generator or RandomState is pointed at words and back again.

``Generator.__init__`` on an existing object replaces its bit generator, whoever holds the object.  The supplied
words stand in memory behind a bit generator of numpy's C interface (``bitgen_t``): one word for a double or a
32-bit number, two for a 64-bit number.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numba import carray, cfunc, njit, types

from .source import Source, Uninterceptable

CAPACITY = 1 << 16  # words lent to one generator in one call
Generator = np.random.Generator | np.random.RandomState


class _BitGen(ctypes.Structure):
    """numpy's ``bitgen_t``."""

    _fields_ = [("state", ctypes.c_void_p)] + [
        (name, ctypes.c_void_p) for name in ("next_uint64", "next_uint32", "next_double", "next_raw")
    ]


@cache
def _callbacks() -> tuple[Any, Any, Any]:
    """Return next_uint64, next_uint32 and next_double, reading [position, capacity, words ...] as uint64;
    what is read beyond the capacity is counted, and no function of the words.
    """
    two, width = np.uint64(2), np.uint64(32)

    @njit
    def beyond(position):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
        """A word for a position after the last: never the same for long, or a rejection sampler would not end."""
        x = position * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        return (x ^ (x >> np.uint64(27))) >> width

    def next_word(state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
        head = carray(state, (2,), np.uint64)
        position = head[0]
        head[0] = position + np.uint64(1)
        if position >= head[1]:
            return np.uint32(beyond(position))
        return np.uint32(carray(state, (int(head[1]) + 2,), np.uint64)[int(position) + 2])

    def next_pair(state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
        head = carray(state, (2,), np.uint64)
        position = head[0]
        head[0] = position + two
        if position + np.uint64(1) >= head[1]:
            return (beyond(position) << width) | beyond(position + np.uint64(1))
        words = carray(state, (int(head[1]) + 2,), np.uint64)
        return (words[int(position) + 2] << width) | words[int(position) + 3]

    def next_double(state):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
        head = carray(state, (2,), np.uint64)
        position = head[0]
        head[0] = position + np.uint64(1)
        if position >= head[1]:
            return beyond(position) * 2.0**-32
        return carray(state, (int(head[1]) + 2,), np.uint64)[int(position) + 2] * 2.0**-32

    pointer = types.voidptr
    return (
        cfunc(types.uint64(pointer), cache=True)(next_pair),
        cfunc(types.uint32(pointer), cache=True)(next_word),
        cfunc(types.float64(pointer), cache=True)(next_double),
    )


class Reader:
    """A bit generator that reads words from memory."""

    def __init__(self, words: np.ndarray) -> None:
        self.memory = np.concatenate([np.array([0, words.size], np.uint64), words.astype(np.uint64)])
        pair, word, double = (callback.address for callback in _callbacks())
        self._bitgen = _BitGen(self.memory.ctypes.data, pair, word, double, pair)
        self.capsule = _new_capsule(ctypes.addressof(self._bitgen), b"BitGenerator", None)
        self.lock = threading.Lock()

    @property
    def used(self) -> int:
        """How many words were read."""
        return int(self.memory[0])


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def live_generators() -> list[Generator]:
    """Return every Generator and RandomState in memory, numpy's global one among them (a tenth of a second)."""
    kinds = (np.random.Generator, np.random.RandomState)
    living = [o for o in gc.get_objects() if type(o) in kinds]
    return living if any(g is global_generator() for g in living) else [global_generator(), *living]


def global_generator() -> np.random.RandomState:
    """Return the one behind ``np.random.rand`` and its like."""
    return np.random.mtrand._rand


def state_of(generator: Generator) -> Hashable:
    """Return the state as bytes."""
    bits = bit_generator_of(generator)
    return "numpy", type(bits).__name__, _plain(bits.state)


def bit_generator_of(generator: Generator) -> Any:
    """Return the bit generator of a Generator or a RandomState."""
    return generator._bit_generator  # type: ignore[union-attr]


def _plain(value: Any) -> Hashable:
    if isinstance(value, dict):
        return tuple((name, _plain(part)) for name, part in value.items())
    return value.tobytes() if isinstance(value, np.ndarray) else value


@contextmanager
def numpy_draws(source: Source, generators: list[Generator]) -> Iterator[None]:
    """Let the given generators, and those that ``np.random.default_rng`` makes inside this context, read the source's
    words.

    Raises
    ------
    Uninterceptable
        If one reads more than CAPACITY words.
    """
    redirected = _Redirected(source)
    for number, generator in enumerate(generators):
        redirected.add(generator, ("numpy", number))
    true_default_rng = np.random.default_rng

    def default_rng(seed: Any = None) -> np.random.Generator:
        created = true_default_rng(seed)
        if not isinstance(seed, np.random.Generator):
            redirected.add(created, state_of(created))
        return created

    np.random.default_rng = default_rng
    try:
        yield
    finally:
        np.random.default_rng = true_default_rng
        redirected.restore()
    redirected.settle()


class _Redirected:
    """Generators that read words, and the way back."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.readers: list[tuple[Hashable, Reader]] = []
        self.undo: list[Callable[[], None]] = []

    def add(self, generator: Generator, root: Hashable) -> None:
        words = self.source.lend(root, CAPACITY)
        if words is None:
            return
        reader = Reader(words)
        self.readers.append((root, reader))
        self.undo.append(_point_at(generator, reader))

    def restore(self) -> None:
        for undo in reversed(self.undo):
            undo()

    def settle(self) -> None:
        for root, reader in self.readers:
            if reader.used > CAPACITY:
                raise Uninterceptable(f"it reads more than {CAPACITY} random words of a numpy generator in one call")
            self.source.returned(root, reader.used)


def _point_at(generator: Generator, reader: Reader) -> Callable[[], None]:
    """Let the generator read; returns what undoes it."""
    original = bit_generator_of(generator)
    state = generator.get_state(legacy=False) if isinstance(generator, np.random.RandomState) else None
    generator.__init__(reader)  # type: ignore[misc]

    def undo() -> None:
        generator.__init__(original)  # type: ignore[misc]
        if state is not None:
            generator.set_state(state)  # type: ignore[union-attr]

    return undo
