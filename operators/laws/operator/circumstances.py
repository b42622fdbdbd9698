"""Circumstances of a call that must not matter, and the law that they change no bit of the result.

A vector may lie in memory in any way, the caller may have switched on anything, and other calls may have gone before.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from threading import Thread
from typing import Any

import numpy as np
import torch

from ...functions.global_streams import seeded
from ...key import Key
from ...message import Message
from ..betting.budget import work_s
from ..kit.examples import Example, structured
from ..kit.examples import drawn as drawn_examples
from ..kit.law import Context, Law, NotApplicable, Violation, fail_if
from ..kit.subject import OutOfTime, Subject

Call = Callable[[], Any]
PLAIN = "plain"
DEFAULT_TYPE = "default dtype float64"
GAP = 5  # entries before a vector that lies inside a longer one


def inside(x: np.ndarray) -> np.ndarray:
    """Return the vector as a part of a longer one."""
    longer = np.full(x.size + 2 * GAP, 3, x.dtype)
    longer[GAP:-GAP] = x
    return longer[GAP:-GAP]


def spaced(x: np.ndarray) -> np.ndarray:
    """Return the vector as every second entry of a longer one."""
    longer = np.full(2 * x.size, 7, x.dtype)
    longer[::2] = x
    return longer[::2]


def read_only(x: np.ndarray) -> np.ndarray:
    """Return the vector in memory that cannot be written to."""
    frozen = x.copy()
    frozen.setflags(write=False)
    return frozen


LAYOUTS = {"inside a longer vector": inside, "strided": spaced}
OF_ARRAYS = {"read-only": read_only, "reversed": lambda x: x[::-1].copy()[::-1]}


def tensor(array: np.ndarray) -> torch.Tensor:
    """Return the array as a tensor that lies in the same memory, as a part of a longer one if the array is."""
    longer = array.base
    if not isinstance(longer, np.ndarray) or longer.ndim != 1 or array.strides[0] < 0:
        return torch.from_numpy(array)
    offset = (array.ctypes.data - longer.ctypes.data) // array.itemsize
    return torch.from_numpy(longer).as_strided(array.shape, (array.strides[0] // array.itemsize,), offset)


@contextmanager
def switched(write: Callable[[Any], Any], read: Callable[[], Any], value: Any) -> Iterator[None]:
    """Set something global inside this context."""
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


MODES: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    DEFAULT_TYPE: lambda: switched(torch.set_default_dtype, torch.get_default_dtype, torch.float64),
}
RAISING = "numpy's errors raised"
SWITCHES: dict[str, Callable[[], Any]] = {  # tried at one vector of each size only
    "determinism": lambda: switched(torch.set_deterministic_debug_mode, torch.get_deterministic_debug_mode, 1),
    "another number of threads": lambda: switched(torch.set_num_threads, torch.get_num_threads, 3),
    "anomaly mode": lambda: torch.autograd.set_detect_anomaly(True),
    "denormal numbers flushed": lambda: switched(torch.set_flush_denormal, lambda: False, True),
    RAISING: lambda: np.errstate(all="raise"),
}
THREAD = "another thread"


def names(subject: Subject) -> tuple[str, ...]:
    """Return the circumstances in which a subject is called."""
    arrays = tuple(OF_ARRAYS) if subject.array == "numpy" and not subject.is_operator else ()
    return (PLAIN, *LAYOUTS, *arrays, *MODES, THREAD)


def output(subject: Subject, x: np.ndarray, key: Key, circumstance: str) -> Any:
    """Return what a user gets, in the type that he gets, or None where a function refuses loudly.

    Parameters
    ----------
    subject : Subject
        What is called.
    x : ndarray
        The vector, float32, shape (d,).
    key : Key
        Stream of random numbers.
    circumstance : str
        One of ``names(subject)``.

    Raises
    ------
    OutOfTime
        After the deadline.
    """
    if circumstance == PLAIN:
        return subject.raw(x, key)
    if work_s() > subject.deadline:
        raise OutOfTime
    laid = {**LAYOUTS, **OF_ARRAYS}.get(circumstance, np.copy)(x)
    given = tensor(laid) if subject.array == "torch" or subject.is_operator else laid

    def call() -> Any:
        if subject.is_codec:
            return subject.decode(subject.encode_as_it_is(given, key), x.size, key)
        return subject.target(given)

    if circumstance == THREAD:
        return _in_a_thread(call)
    if circumstance not in MODES:
        return call()
    try:
        with MODES[circumstance]():
            return call()
    except OutOfTime:
        raise
    except Exception:
        if subject.is_operator:
            raise
        return None  # a function may refuse, but not return something wrong


def drawn(subject: Subject, x: np.ndarray, key: Key, circumstance: str) -> np.ndarray | None:
    """Return the output in its own type, shape (d,), or None where a function refuses loudly."""
    y = output(subject, x, key, circumstance)
    if isinstance(y, torch.Tensor):
        y = y.detach().cpu()
        y = (y.float() if y.dtype == torch.bfloat16 else y).numpy()
    return None if y is None else np.asarray(y).reshape(x.shape)


def _in_a_thread(call: Call) -> Any:
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


# -- the law -----------------------------------------------------------------------------------------------------
TYPES = (torch.float64, torch.float16, torch.bfloat16)
ROUGHLY = 0.02  # of the largest entry: what rounding may change in the output of a function
OF_FUNCTIONS, FLAT = (1000,), 64


@dataclass(frozen=True)
class Situation:
    """One way to call: what is handed over, within what, by which copy of the subject, after which other vector."""

    name: str
    given: Any
    within: Callable[[], Any] = nullcontext
    subject: Subject | None = None
    before: Any = None
    in_a_thread: bool = False


def situations(subject: Subject, x: np.ndarray) -> Iterator[Situation]:
    """Return every circumstance for one vector, float32, shape (d,)."""
    of_torch = subject.array == "torch" or subject.is_operator

    def given(array: np.ndarray) -> Any:
        return tensor(array) if of_torch else array

    for name, laid in LAYOUTS.items():
        yield Situation(name, given(laid(x)))
    if subject.is_operator or not of_torch:
        for name, laid in OF_ARRAYS.items():
            yield Situation(name, laid(x))
    if subject.is_operator:
        yield from _shapes(x)
    for name, mode in (MODES | SWITCHES).items():
        yield Situation(name, given(x.copy()), mode)
    yield Situation(THREAD, given(x.copy()), in_a_thread=True)
    yield Situation("after another vector", given(x.copy()), before=given(np.resize(-3 * x, 2 * x.size + 3)))
    if subject.is_operator:
        yield Situation("after a vector that is refused", given(x.copy()), before=np.full(x.size, np.nan, np.float32))
    for name, copied in (("a copy", copy.deepcopy), ("what was stored and restored", _restored)):
        try:
            other = Subject(copied(subject.target), array=subject.array)
        except Exception:  # what cannot be copied has no copy that differs
            continue
        yield Situation(name, given(x.copy()), subject=other)


def _shapes(x: np.ndarray) -> Iterator[Situation]:
    """Return what an Operator takes: tensors of any shape, read in C order, and lazy views."""
    yield Situation("an array", x.copy())
    yield Situation("gradient-tracking", torch.from_numpy(x.copy()).requires_grad_())
    yield Situation("a parameter", torch.nn.Parameter(torch.from_numpy(x.copy())))
    yield Situation("a lazy negative", torch._neg_view(torch.from_numpy(-x)))
    if (x == x[0]).all():
        yield Situation("expanded", torch.full((1,), float(x[0])).expand(x.size))
    if x.size % 2 == 0:
        yield Situation("transposed", torch.from_numpy(x.reshape(2, -1).T.copy()).T)
        yield Situation("an array in Fortran order", np.asfortranarray(x.reshape(2, -1)))
    if x.size % 8 == 0:
        pixels = torch.from_numpy(x.copy()).reshape(1, 2, -1, 4)
        yield Situation("channels_last", pixels.contiguous(memory_format=torch.channels_last))
    if torch.cuda.is_available():
        yield Situation("on a CUDA device", torch.from_numpy(x.copy()).cuda())


def _restored(target: Any) -> Any:
    return pickle.loads(pickle.dumps(target))


class Circumstances(Law):
    """A vector and a key give the same bits in every layout, mode, thread and order of calls, and by a copy.

    The output of a function may differ by rounding: sums are taken in another order.
    """

    name = "circumstances"
    shrinks = False

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return drawn vectors, one for each size, and a flat one; for a function one drawn vector."""
        rng = context.rng(self.name)
        for d in context.budget.sizes if subject.is_operator else OF_FUNCTIONS:
            yield from drawn_examples(d, 1, rng)
        yield next(structured(context.budget.sizes[0] if subject.is_operator else FLAT))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare every circumstance with the plain call."""
        x, key = example.x, context.key(f"{self.name} {example.name}")
        given = self._given(subject, x)
        expected, again = (self._bits(subject, Situation(PLAIN, given), x.size, key, context) for _ in range(2))
        if expected != again:
            fail_if(subject.takes_key, "two calls with the same vector and key differ")
            raise NotApplicable("its random numbers cannot be repeated")
        self._own_memory(subject, x, key)
        for situation in situations(subject, x):
            try:
                result = self._bits(subject, situation, x.size, key, context)
            except (OutOfTime, Violation):
                raise
            except Exception:
                if subject.is_operator and situation.name != RAISING:
                    raise
                continue  # a function may refuse, but not return something else
            of_type_alone = situation.name == DEFAULT_TYPE and not subject.is_codec  # torch.rand draws other numbers
            equal = result == expected if subject.is_operator else _nearly_equal(result[-1], expected[-1], x.size)
            if result[:1] != expected[:1] or not (of_type_alone or equal):
                raise Violation(f"the result is another one: {situation.name}")
        if subject.is_operator:
            self._types(subject, x, key)

    @staticmethod
    def _given(subject: Subject, x: np.ndarray) -> Any:
        return torch.from_numpy(x.copy()) if subject.array == "torch" or subject.is_operator else x.copy()

    def _bits(self, subject: Subject, situation: Situation, d: int, key: Key, context: Context) -> list[Any]:
        """Return message and output bit by bit, with the output's type."""
        if work_s() > subject.deadline:
            raise OutOfTime
        judged = situation.subject or subject
        if situation.before is not None:
            with suppress(Exception):  # it may be refused
                _called(judged, situation.before, Key(key.seed + 1))

        def call() -> list[Any]:
            with situation.within():
                return _called(judged, situation.given, key)

        with nullcontext() if subject.takes_key else seeded(context.seed, self.name):
            return _in_a_thread(call) if situation.in_a_thread else call()

    def _own_memory(self, subject: Subject, x: np.ndarray, key: Key) -> None:
        """Write to what was returned: neither the input nor the message may change."""
        given = self._given(subject, x)
        if not subject.is_codec:
            output = subject.target(given)
            shared = _memory(output) is not None and _memory(output) == _memory(given)
            if shared or (isinstance(given, np.ndarray) and np.shares_memory(given, np.asarray(output))):
                raise Violation("the output lies in the memory of the input")
        elif subject.has_messages:
            message = subject.encode(given, key)
            before = message.payload.clone()
            subject.decode(message, x.size, key).detach().fill_(3.0)
            fail_if(not torch.equal(before, message.payload), "the output lies in the memory of the message")

    def _types(self, subject: Subject, x: np.ndarray, key: Key) -> None:
        """Compare every float type with its float32 copy."""
        scaled = torch.from_numpy(x / max(1.0, float(np.abs(x).max())))
        for dtype in TYPES:
            narrow = scaled.to(dtype)
            a, b = subject.target.encode(narrow, key=key), subject.target.encode(narrow.float(), key=key)
            if a.bits != b.bits or not torch.equal(a.payload, b.payload):
                raise Violation(f"{dtype} gives another message than the same values in float32")
            y = subject.target(narrow, key=key)
            fail_if(y.dtype != dtype, f"{dtype} in, {y.dtype} out")


def _called(subject: Subject, given: Any, key: Key) -> list[Any]:
    """Return the bits of a call."""
    if not subject.is_codec:
        return _raw_bits(subject.target(given))
    message = subject.encode_as_it_is(given, key)
    d = given.numel() if isinstance(given, torch.Tensor) else given.size
    sent = [message.bits, message.payload.cpu().numpy().tobytes()] if isinstance(message, Message) else []
    return [*sent, *_raw_bits(subject.decode(message, d, key))]


def _raw_bits(output: Any) -> list[Any]:
    if isinstance(output, torch.Tensor):
        return [output.dtype, output.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()]
    return [np.asarray(output).dtype, np.asarray(output).tobytes()]


def _nearly_equal(result: bytes, expected: bytes, d: int) -> bool:
    """Return whether outputs agree up to rounding: sums are taken in another order, so that a few levels may differ."""
    if len(result) != len(expected) or len(result) not in (4 * d, 8 * d):
        return result == expected
    kind = np.float32 if len(result) == 4 * d else np.float64
    a, b = (np.frombuffer(output, kind).astype(np.float64) for output in (result, expected))
    off = np.abs(a - b) > ROUGHLY * float(np.abs(b).max())
    return int(off.sum()) <= max(2, d // 20)


def _memory(value: Any) -> int | None:
    return value.untyped_storage().data_ptr() if isinstance(value, torch.Tensor) else None
