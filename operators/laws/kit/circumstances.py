"""Circumstances of a call that must not matter: how a vector lies in memory, and what the caller has switched on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import numpy as np
import torch

from ...key import Key
from .clock import work_s
from .subject import OutOfTime, Subject

Call = Callable[[], Any]
PLAIN = "plain"
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


@contextmanager
def float64_by_default() -> Iterator[None]:
    """Make float64 torch's default type."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


MODES: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "default dtype float64": float64_by_default,
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
    given = torch.from_numpy(laid) if subject.array == "torch" or subject.is_operator else laid

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
