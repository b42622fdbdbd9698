"""Who supplies the words: the agreement between what intercepts draws and what chooses the numbers."""

from __future__ import annotations

import ctypes
import gc
import random
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol

import numpy as np
import torch
from numba import carray, cfunc, njit, types
from scipy.special import ndtri
from torch.utils._python_dispatch import TorchDispatchMode

ORDER = 0  # only the order of the words of a draw matters


class Uninterceptable(Exception):  # noqa: N818  caught inside the kit
    """A draw was made that cannot be chosen; the message names it."""


class Source(Protocol):
    """Supplies words to the draws of one call.

    Each method returns None where the generator is to be left alone.
    """

    def __call__(self, root: Hashable, n: int, start: int, kind: int | None = None) -> np.ndarray | None:
        """Return words start ... start + n - 1 of a stream, uint32, shape (n,).

        Parameters
        ----------
        root : Hashable
            Identifies the stream.
        kind : int or None, optional
            r if only the word's place among r equal cells matters, ORDER if only the order does, None if unknown.
        """

    def lend(self, root: Hashable, capacity: int) -> np.ndarray | None:
        """Return the first words of a stream, uint32, at most ``capacity``, where it is not known how many will be
        read.
        """

    def returned(self, root: Hashable, used: int) -> None:
        """How many of the lent words were read."""


class Cursor:
    """Where a generator stands in its stream, known by its state: a state seen before continues where it stood."""

    def __init__(self) -> None:
        self._at: dict[Hashable, tuple[Hashable, int]] = {}

    def at(self, state: Hashable) -> tuple[Hashable, int]:
        """Return (root, position) of a generator in this state; a new state is a root at position 0."""
        return self._at.get(state, (state, 0))

    def moved(self, state: Hashable, root: Hashable, position: int) -> None:
        """After a draw the generator is in ``state``, at ``position`` of the stream ``root``."""
        self._at[state] = (root, position)


# -- Intercept what numpy's generators draw: a live Generator or RandomState is pointed at words and back again
# ``Generator.__init__`` on an existing object replaces its bit generator, whoever holds the object.  The supplied
# words stand in memory behind a bit generator of numpy's C interface (``bitgen_t``): one word for a double or a
# 32-bit number, two for a 64-bit number.

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


# -- Intercept what Python's ``random`` draws ------------------------------------------------------------------

GLOBAL: random.Random = random._inst
METHODS = ("random", "getrandbits", "_randbelow")
LARGEST_KIND = 64


@contextmanager
def python_draws(source: Source) -> Iterator[None]:
    """Let the functions of ``random`` make their numbers from the source's words inside this context."""
    draws = _Draws(source)
    true = {name: getattr(random, name) for name in METHODS if hasattr(random, name)}
    for name in METHODS:
        setattr(GLOBAL, name, getattr(draws, name.strip("_")))
        if name in true:
            setattr(random, name, getattr(draws, name))
    try:
        yield
    finally:
        for name in METHODS:
            delattr(GLOBAL, name)
            if name in true:
                setattr(random, name, true[name])


class _Draws:
    """The three methods from which ``random.Random`` makes all others."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.cursor = Cursor()

    def random(self) -> float:
        return self._drawn(1, None, lambda w: w[0] * 2.0**-32, lambda: random.Random.random(GLOBAL))

    def getrandbits(self, k: int) -> int:
        return self._drawn(
            -(-k // 32), None, lambda w: _joined(w) >> (-k % 32), lambda: random.Random.getrandbits(GLOBAL, k)
        )

    def randbelow(self, n: int) -> int:
        count = max(1, -(-(n - 1).bit_length() // 32))
        kind = n if n <= LARGEST_KIND else None
        return self._drawn(count, kind, lambda w: _joined(w) * n >> (32 * count), lambda: _below_truly(n))

    def _drawn(self, n: int, kind: int | None, of: Callable[[list[int]], Any], truly: Callable[[], Any]) -> Any:
        root, position = self.cursor.at(_python_state())
        value = truly()
        words = self.source(root, n, position, kind)
        self.cursor.moved(_python_state(), root, position + n)
        return value if words is None else of(words.tolist())


def _below_truly(n: int) -> int:
    """As ``random`` itself draws it."""
    k = n.bit_length()
    r = random.Random.getrandbits(GLOBAL, k)
    while r >= n:
        r = random.Random.getrandbits(GLOBAL, k)
    return r


def _joined(words: list[int]) -> int:
    value = 0
    for word in words:
        value = (value << 32) | word
    return value


def _python_state() -> tuple[str, Any]:
    return "random", GLOBAL.getstate()


# -- Intercept what torch draws, on any device and through any layer: its operators tagged as random -----------
# The operator runs first, so that its result has the right shape, type and device and the generator moves on;
# then its numbers are replaced by numbers made of the supplied words.

WORD = 1 << 32
UNIFORM_BITS = {torch.float64: 32, torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}
Values = np.ndarray | torch.Tensor


class TorchDraws(TorchDispatchMode):
    """Replaces the random numbers of torch inside the block.

    Attributes
    ----------
    resolution
        The coarsest spacing of the uniform numbers drawn.

    Raises
    ------
    Uninterceptable
        For a random operator that is not known here (``torch.poisson``, for instance), unless the source leaves its
        generator alone.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.cursor = Cursor()
        self.resolution = 0.0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return no: torch would import its compiler, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator of torch; replace its numbers if it is random."""
        kwargs = kwargs or {}
        if not _is_random(func):
            return func(*args, **kwargs)
        given = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
        before = _generator(args, kwargs)
        root, position = self.cursor.at(_torch_state(before))
        result = func(*args, **kwargs)
        target = result[0] if isinstance(result, tuple) else result
        draw = Draw(self, root, position, _keywords(func, given, kwargs), target)
        rule = RULES.get(func.overloadpacket.__name__)
        if rule is None:
            draw.require_left_alone(func)
        values = None if rule is None else rule(draw)
        self.cursor.moved(_torch_state(before), root, draw.position)
        if values is None:
            return result
        _write(result, values, draw)
        return result


class Draw:
    """One random operator: its arguments by name, its result, and the words it takes."""

    def __init__(self, mode: TorchDraws, root: Any, position: int, named: dict[str, Any], out: torch.Tensor) -> None:
        self.mode, self.root, self.position, self.named, self.out = mode, root, position, named, out

    def words(self, n: int, kind: int | None = None) -> np.ndarray | None:
        """Return the next n words of its generator's stream."""
        words = self.mode.source(self.root, n, self.position, kind)
        self.position += n
        return words

    def require_left_alone(self, func: Any) -> None:
        """A random operator without a rule: fine where its generator is left alone."""
        if self.mode.source(self.root, 1, self.position) is not None:
            raise Uninterceptable(f"it draws from {func.overloadpacket}, whose numbers cannot be chosen")

    def uniform(self) -> np.ndarray | None:
        """Return numbers on [0, 1) as fine as torch's own of this type, shape of the result flattened."""
        words = self.words(self.out.numel())
        bits = UNIFORM_BITS.get(self.out.dtype, 32)
        if words is None:
            return None
        self.mode.resolution = max(self.mode.resolution, 2.0**-bits)
        return (words >> np.uint32(32 - bits)) * 2.0**-bits

    def fine(self) -> np.ndarray | None:
        """Return numbers in (0, 1), half a word away from both ends."""
        words = self.words(self.out.numel())
        return None if words is None else (words + 0.5) * 2.0**-32

    def mapped(self, of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray | None:
        """Return a function of ``fine``."""
        u = self.fine()
        return None if u is None else of(u)

    def get(self, name: str, default: float = 0.0) -> Any:
        """Return an argument: a number, or a tensor's entries broadcast to the result and flattened."""
        value = self.named.get(name)
        if isinstance(value, torch.Tensor):
            return value.detach().cpu().to(torch.float64).expand(self.out.shape).reshape(-1).numpy()
        return default if value is None else value


def _bernoulli(draw: Draw) -> Values | None:
    p = draw.get("p" if draw.named.get("p") is not None else "self")
    return draw.mapped(lambda u: u < p)


def _uniform_between(draw: Draw) -> Values | None:
    low, high = draw.get("from"), draw.get("to", 1.0)
    u = draw.uniform()
    return None if u is None else low + (high - low) * u


def _integers(draw: Draw, low: int, high: int) -> Values | None:
    span = high - low
    n = draw.out.numel()
    if span <= WORD:
        words = draw.words(n, span if span <= LARGEST_KIND else None)
        return None if words is None else low + (words.astype(np.uint64) * np.uint64(span) >> np.uint64(32))
    words = draw.words(2 * n)
    if words is None:
        return None
    wide = (words[0::2].astype(np.uint64) << np.uint64(32)) | words[1::2]
    return np.array([low + (int(w) * span >> 64) for w in wide], dtype=np.int64)


def _randint(draw: Draw) -> Values | None:
    return _integers(draw, int(draw.get("low", 0)), int(draw.get("high")))


def _random(draw: Draw) -> Values | None:
    dtype = draw.out.dtype
    most = 1 << {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}.get(dtype, 0)
    if not dtype.is_floating_point:
        most = torch.iinfo(dtype).max
    return _integers(draw, int(draw.get("from", 0)), int(draw.get("to", most + dtype.is_floating_point)))


def _randperm(draw: Draw) -> Values | None:
    words = draw.words(draw.out.numel(), ORDER)
    return None if words is None else np.argsort(words, kind="stable")


def _normal(draw: Draw) -> Values | None:
    return draw.mapped(lambda u: draw.get("mean", 0.0) + draw.get("std", 1.0) * ndtri(u))


def _multinomial(draw: Draw) -> Values | None:
    """With replacement one word a sample; without, the first k arrivals of an exponential race."""
    weights = draw.named["self"].detach().cpu().to(torch.float64)
    rows = weights.reshape(-1, weights.shape[-1]).numpy()
    samples = int(draw.named["num_samples"])
    if draw.named.get("replacement"):
        u = draw.fine()
        if u is None:
            return None
        ends = np.cumsum(rows, axis=1) / rows.sum(axis=1, keepdims=True)
        return np.concatenate(
            [np.searchsorted(e, v, side="right") for e, v in zip(ends, u.reshape(-1, samples), strict=True)]
        )
    uniform = all(len(set(row.tolist())) == 1 for row in rows) and len(rows) == 1
    words = draw.words(rows.size, ORDER if uniform else None)
    if words is None:
        return None
    with np.errstate(divide="ignore"):
        arrivals = -np.log1p(-(words + 0.5) * 2.0**-32).reshape(rows.shape) / rows
    return np.argsort(arrivals, axis=1, kind="stable")[:, :samples].reshape(-1)


def _dropout(draw: Draw) -> Values | None:
    p = float(draw.get("p", 0.5))
    return draw.mapped(lambda u: u < 1 - p)


RULES: dict[str, Callable[[Draw], Values | None]] = {
    "rand": Draw.uniform,
    "rand_like": Draw.uniform,
    "uniform_": _uniform_between,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli,
    "native_dropout": _dropout,
    "randint": _randint,
    "randint_like": _randint,
    "random_": _random,
    "randperm": _randperm,
    "randn": _normal,
    "randn_like": _normal,
    "normal": _normal,
    "normal_": _normal,
    "multinomial": _multinomial,
    "exponential_": lambda draw: draw.mapped(lambda u: -np.log1p(-u) / draw.get("lambd", 1.0)),
    "geometric_": lambda draw: draw.mapped(lambda u: np.ceil(np.log1p(-u) / np.log1p(-draw.get("p")))),
    "cauchy_": lambda draw: draw.mapped(
        lambda u: draw.get("median", 0.0) + draw.get("sigma", 1.0) * np.tan(np.pi * (u - 0.5))
    ),
    "log_normal_": lambda draw: draw.mapped(lambda u: np.exp(draw.get("mean", 1.0) + draw.get("std", 2.0) * ndtri(u))),
}


def _write(result: Any, values: Values, draw: Draw) -> None:
    if isinstance(result, tuple):  # native_dropout: the scaled input and the mask
        out, mask = result
        kept = torch.as_tensor(values).reshape(mask.shape).to(mask.device)
        mask.copy_(kept)
        scale = 1 / (1 - float(draw.get("p", 0.5))) if float(draw.get("p", 0.5)) < 1 else 0.0
        out.copy_(draw.named["input"] * kept * scale)
        return
    result.copy_(torch.as_tensor(np.asarray(values)).reshape(result.shape))


@cache
def _is_random(func: Any) -> bool:
    return torch.Tag.nondeterministic_seeded in func.tags


@cache
def _defaults(func: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names of its arguments, and the values of those that have one."""
    arguments = func._schema.arguments
    return tuple(a.name for a in arguments), {a.name: a.default_value for a in arguments if a.has_default_value()}


def _keywords(func: Any, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    names, defaults = _defaults(func)
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def _generator(args: Any, kwargs: dict[str, Any]) -> torch.Generator:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Generator):
            return value
    device = kwargs.get("device") or next((a.device for a in args if isinstance(a, torch.Tensor)), torch.device("cpu"))
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.default_generators[device.index or 0]
    return torch.default_generator


def _torch_state(generator: torch.Generator) -> tuple[str, bytes]:
    return "torch", generator.get_state().numpy().tobytes()
