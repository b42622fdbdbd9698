"""Numbers, bounds and functions times a factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from bounds import Bound
from gpu_validation.records.compression import Sample


def sample(drawn: Sample, factor: float) -> Sample:
    """Return every draw times a factor > 0."""
    return replace(
        drawn,
        mean=drawn.mean * factor,
        sd=drawn.sd * factor,
        low=drawn.low * factor,
        high=drawn.high * factor,
        atoms=tuple((low * factor, high * factor, n) for low, high, n in drawn.atoms),
    )


def numbers(values: tuple[float, ...], factor: float) -> tuple[float, ...]:
    """Return every number times a factor."""
    return tuple(value * factor for value in values)


@contextmanager
def patched(module: Any, name: str, factor: float) -> Iterator[None]:
    """Multiply the value of a module's bound or function by a factor inside this context."""
    honest = getattr(module, name)
    wrong: Bound | Callable[..., Any]
    if isinstance(honest, Bound):
        wrong = replace(honest, value=honest.value * factor, _cache={})
    else:

        def wrong(*arguments: Any, **named: Any) -> Any:
            return honest(*arguments, **named) * factor

    with mock.patch.object(module, name, wrong):
        yield
