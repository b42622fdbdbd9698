"""Settings of a study as plain values, and their comparison with recorded settings.

A record contains the settings that differ from their defaults.  A missing setting has its default value.  A class is
identified by its ``name``, not by its Python class.  So classes can be renamed and extended with defaults while their
records stay valid.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from .storage import plain

NAME = "name"


def settings(value: Any) -> Any:
    """Return a dataclass as JSON values: its name and the fields that differ from their defaults.

    Parameters
    ----------
    value : object
        A dataclass, a container of dataclasses, or a JSON value.  Fields with ``repr=False`` are skipped.

    Raises
    ------
    TypeError
        For a value that JSON cannot represent.
    """
    if _is_record(value):
        named = {} if (name := _name(value)) is None else {NAME: name}
        return named | {
            field.name: settings(getattr(value, field.name))
            for field in _fields(value)
            if not _is_default(field, value)
        }
    if isinstance(value, dict):
        return {str(key): settings(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [settings(part) for part in value]
    if isinstance(value, bool | int | float | str | None):
        return plain(value)
    raise TypeError(
        f"a setting must be a dataclass, a container or a number; got {value!r}: make it a frozen dataclass"
    )


def difference(recorded: Any, value: Any, path: str = "") -> str | None:
    """Describe the first setting that differs from the recorded one; return None if all are equal.

    Parameters
    ----------
    recorded : object
        Result of ``settings`` at the time of the record.
    value : object
        Current setting.
    path : str, optional
        Name of the setting, for the text.
    """
    if _is_record(value) and isinstance(recorded, dict):
        return _difference_of_fields(recorded, value, path)
    if isinstance(value, dict) and isinstance(recorded, dict) and list(map(str, value)) == list(recorded):
        pairs = [(f"{path}[{key!r}]", recorded[str(key)], part) for key, part in value.items()]
    elif isinstance(value, list | tuple) and isinstance(recorded, list) and len(value) == len(recorded):
        pairs = [(f"{path}[{i}]", *both) for i, both in enumerate(zip(recorded, value, strict=True))]
    else:
        now = settings(value)
        return None if recorded == now else f"{path} was {recorded!r} and is {now!r}"
    answers = (difference(before, part, name) for name, before, part in pairs)
    return next((words for words in answers if words is not None), None)


def _difference_of_fields(recorded: dict[str, Any], value: Any, path: str) -> str | None:
    fields = {field.name: field for field in _fields(value)}
    before = dict(recorded)
    if NAME not in fields and before.pop(NAME, _name(value)) != _name(value):
        return f"{path or 'it'} was {recorded[NAME]!r} and is {_name(value)!r}"
    for name, field in fields.items():
        inner = f"{path}.{name}".lstrip(".")
        if name not in before:
            if not _is_default(field, value):
                return f"{inner} was not set and is {settings(getattr(value, name))!r}"
        elif (words := difference(before.pop(name), getattr(value, name), inner)) is not None:
            return words
    return next((f"{path}.{name}".lstrip(".") + f" was {before[name]!r} and does not exist" for name in before), None)


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields(value: Any) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(value) if field.repr]


def _name(value: Any) -> str | None:
    """Return the class attribute ``name``, unless the class has a field of that name."""
    if NAME in {field.name for field in dataclasses.fields(value)}:
        return None
    name = getattr(value, NAME, None)
    return name if isinstance(name, str) else None


def _is_default(field: dataclasses.Field[Any], value: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(getattr(value, field.name) == field.default)
    if field.default_factory is not dataclasses.MISSING:
        return bool(getattr(value, field.name) == field.default_factory())
    return False
