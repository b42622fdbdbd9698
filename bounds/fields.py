"""The one place where a parameter enters: fields of a frozen dataclass become plain Python values, or are refused."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

MOST_SHOWN = 60  # characters of a refused value
WORDS: dict[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a word",
    NoneType: "None",
    tuple: "a tuple",
    Callable: "a function",
}
_UNFIT = object()


class Fields:
    """Base of frozen dataclasses whose fields are read by their annotations when an object is made.

    An ``int`` takes whole numbers of Python and numpy, a ``float`` any real number, a ``tuple`` a list too; each is
    kept as the plain Python value (1 as 1, not as 1.0), so that equal values make equal objects.  True is no number.
    A field with another annotation than numbers, words, tuples, functions or classes derived from this one is not read.

    Attributes
    ----------
    infinite_fields : bool
        Whether a number may be infinite.

    Raises
    ------
    ValueError
        When an object is made, for a value of another type, NaN and infinity.
    """

    infinite_fields: ClassVar[bool] = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        check = cls.__dict__.get("__post_init__")
        if check is None:
            return

        @wraps(check)
        def checked(self: Any, *given: Any) -> None:
            _normalise(self)
            check(self, *given)
            _refuse_infinite(self)

        cls.__post_init__ = checked  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        _normalise(self)
        _refuse_infinite(self)


def whole(name: str, value: Any) -> int:
    """Return a whole number as a plain int.

    Parameters
    ----------
    name : str
        What it is called in the error.
    value
        An int, a numpy integer, or an array or tensor of one whole number without dimensions.

    Raises
    ------
    ValueError
        For anything else.
    """
    if type(value) is int:
        return value
    read = _read(value, int)
    if read is _UNFIT:
        raise ValueError(f"{name} must be a whole number; got {name} = {shown(value)}: give one such as {name} = 4")
    return int(read)


def shown(value: Any) -> str:
    """Return a value as one short line.

    Parameters
    ----------
    value
        Any object.
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."


def _normalise(self: Any) -> None:
    for name, kinds in _kinds_of(type(self)):  # type: ignore[arg-type]
        value = getattr(self, name)
        if type(value) in _PLAIN and type(value) in kinds:
            continue
        for kind in kinds:
            read = _read(value, kind)
            if read is not _UNFIT:
                if read is not value:
                    object.__setattr__(self, name, read)
                break
        else:
            words = " or ".join(dict.fromkeys(_word(kind) for kind in kinds))
            raise ValueError(f"{name} of {_name(self)} must be {words}; got {name} = {shown(value)}: give {words}")


def _refuse_infinite(self: Any) -> None:
    for name in _real_fields(type(self)):  # type: ignore[arg-type]
        value = getattr(self, name)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and (math.isnan(number) or (math.isinf(number) and not self.infinite_fields)):
                raise ValueError(
                    f"{name} of {_name(self)} must be finite; got {name} = {shown(value)}: give a finite number"
                )


def _name(self: Any) -> str:
    name = getattr(type(self), "name", None)
    return name if isinstance(name, str) else type(self).__name__


_PLAIN = (int, str, bool, NoneType)


@cache  # one entry a class
def _kinds_of(cls: type) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the fields that are read, and the kinds of values that each takes."""
    read = []
    for field in fields(cls):
        kinds = _kinds(_hint(cls, field.name, field.type)) if field.init else None
        if kinds is not None:
            read.append((field.name, kinds))
    return tuple(read)


@cache
def _real_fields(cls: type) -> tuple[str, ...]:
    """Return the fields that may hold a float."""
    return tuple(name for name, kinds in _kinds_of(cls) if float in kinds or any(get_origin(k) is tuple for k in kinds))


def _hint(cls: type, name: str, stated: Any) -> Any:
    """Return the annotation of a field; None where its names are unknown."""
    if not isinstance(stated, str):
        return stated
    owner = next(base for base in cls.__mro__ if name in inspect.get_annotations(base))
    try:
        return eval(stated, {**vars(sys.modules[owner.__module__])})  # the class's own source
    except Exception:  # a name that only type checkers see
        return None


def _kinds(hint: Any) -> tuple[Any, ...] | None:
    """Return the kinds of values of an annotation; None if it has one that is not read."""
    origin = get_origin(hint)
    if origin is Literal:
        return tuple(dict.fromkeys(type(value) for value in get_args(hint)))
    if origin in (Union, UnionType):
        parts = [_kinds(part) for part in get_args(hint)]
        return None if None in parts else tuple(kind for part in parts for kind in part or ())
    if origin is tuple:
        parts = [_kinds(part) for part in get_args(hint) if part is not Ellipsis]
        return (hint,) if all(part is not None and Callable not in part for part in parts) else None
    if hint is Callable or origin is Callable or getattr(origin, "__name__", "") == "Callable":
        return (Callable,)
    if hint in (bool, int, float, str, NoneType, None):
        return (NoneType if hint is None else hint,) if hint is not None else None
    if isinstance(hint, type) and issubclass(hint, Fields):
        return (hint,)
    return None


def _word(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return WORDS[tuple]
    return WORDS.get(kind) or f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def _read(value: Any, kind: Any) -> Any:
    """Return a value as one of a kind, or ``_UNFIT``."""
    if get_origin(kind) is tuple:
        return _read_tuple(value, kind)
    if kind is Callable:
        return value if callable(value) else _UNFIT
    if isinstance(kind, type) and issubclass(kind, Fields):
        return value if isinstance(value, kind) else _UNFIT
    value = _item(value)
    if kind in (int, float):
        return _read_number(value, kind)
    if kind is str and isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    return value if type(value) is kind else _UNFIT


def _read_number(value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, Integral if kind is int else Real):
        return _UNFIT
    try:
        real = 0.0 if kind is int else float(value) + 0.0  # -0.0 becomes 0.0, its equal
        return int(value) if isinstance(value, Integral) else real
    except (OverflowError, ValueError):
        return _UNFIT


def _read_tuple(value: Any, kind: Any) -> Any:
    if getattr(value, "ndim", 0) == 1 and hasattr(value, "tolist") and not hasattr(value, "mask"):
        value = value.tolist()
    if not isinstance(value, tuple | list):
        return _UNFIT
    parts = get_args(kind)
    if type(value) is tuple and parts == (int, Ellipsis) and all(type(part) is int for part in value):
        return value
    kinds: Sequence[Any] = [parts[0]] * len(value) if parts[-1:] == (Ellipsis,) else parts
    if len(kinds) != len(value):
        return _UNFIT
    read = []
    for part, hint in zip(value, kinds, strict=True):
        readings = (_read(part, each) for each in _kinds(hint) or ())
        read.append(next((each for each in readings if each is not _UNFIT), _UNFIT))
    return _UNFIT if any(each is _UNFIT for each in read) else tuple(read)


def _item(value: Any) -> Any:
    """Return the number in a numpy scalar, or in an array or tensor without dimensions."""
    if getattr(value, "ndim", None) != 0 or not hasattr(value, "item") or hasattr(value, "mask"):
        return value
    try:
        return value.item()
    except Exception:  # a tensor without data
        return value
