"""Records as lines of JSON files, written one by one."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import IO, Any, Literal, Union, get_args, get_origin, get_type_hints


@dataclass
class JsonLines:
    """An append-only file of records; every line is on the disk before the next one is written.

    Parameters
    ----------
    path : Path
        File of JSON lines.
    mode : {"w", "a"}, optional
        "w" replaces the file, "a" appends to it.
    """

    path: Path
    mode: Literal["w", "a"] = "w"
    _file: IO[str] | None = field(default=None, repr=False)

    def __enter__(self) -> JsonLines:
        self._file = self.path.open(self.mode, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # a write error was already raised by write
                self._file.close()

    def write(self, record: Any) -> None:
        """Append one record.

        Parameters
        ----------
        record
            A dataclass or a mapping; becomes one line.

        Raises
        ------
        ValueError
            Outside of a with statement.
        OSError
            With the file's name, if it cannot be written.
        """
        if self._file is None:
            raise ValueError("open the file with a with statement before writing to it")
        try:
            self._file.write(json.dumps(plain(record), allow_nan=False) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from error


def plain(value: Any) -> Any:
    """Return a record as JSON values; infinities and nan become strings.

    Parameters
    ----------
    value
        A dataclass, a mapping, a sequence or a JSON value.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def revive(kind: Any, value: Any) -> Any:
    """Return a record from its JSON values.

    Parameters
    ----------
    kind : type
        A dataclass, or the type of a field.
    value : object
        Result of ``plain``.

    Raises
    ------
    TypeError
        If a field without a default is missing.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if value is None else revive(next(part for part in inner if part is not NoneType), value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return kind(
            **{f.name: revive(hints[f.name], value[f.name]) for f in dataclasses.fields(kind) if f.name in value}
        )
    if origin is tuple and inner[-1] is not Ellipsis:
        return tuple(map(revive, inner, value))
    if isinstance(value, list):
        return tuple(revive(inner[0] if inner else Any, part) for part in value)
    if isinstance(value, dict):
        return {name: revive(inner[1] if inner else Any, part) for name, part in value.items()}
    return float(value) if kind is float else value


@lru_cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


Record = dict[str, Any]


class DamagedRecords(ValueError):  # noqa: N818  a public name
    """Raised if a line of a file of records is invalid."""


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Return the records of a file as dictionaries; a last line truncated by a crash is skipped.

    Parameters
    ----------
    path : Path
        File of JSON lines.

    Raises
    ------
    DamagedRecords
        A ValueError with file and line, for any other invalid line.
    """
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("it is no JSON object")
        except ValueError as error:  # invalid JSON or encoding
            if number == len(lines):
                return
            raise DamagedRecords(
                f"{path}, line {number}, is not a record ({error}): remove the line, and what it held is measured again"
            ) from error
        if line.endswith(b"\n"):
            yield record


def write_atomically(path: Path, text: str) -> None:
    """Replace a file so that a reader sees the old or the new content, never a part.

    After an error the old content remains.

    Parameters
    ----------
    path : Path
        File to replace.
    text : str
        New content.

    Raises
    ------
    OSError
        With the file's name, if it cannot be written.
    """
    temporary = path.with_suffix(path.suffix + ".tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
