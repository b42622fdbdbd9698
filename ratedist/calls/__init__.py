"""The calls of the calculator, one file each; the command line, the HTTP API and its server read this folder."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from .call import Call


@cache
def call_of(name: str) -> Call | None:
    """Return the call of a file of this folder, None if there is no such file or no call in it."""
    if name not in {module.name for module in iter_modules(__path__)}:
        return None
    call = getattr(import_module(f"{__name__}.{name}"), "CALL", None)
    return call if isinstance(call, Call) else None


@cache
def all_calls() -> dict[str, Call]:
    """Return every call by its name, in the order of their places."""
    calls = [call for module in iter_modules(__path__) if (call := call_of(module.name)) is not None]
    return {call.name: call for call in sorted(calls, key=lambda call: (call.place, call.name))}


@dataclass(frozen=True)
class Outline:
    """What the list of commands says of a call, read from its file without importing it.

    Parameters
    ----------
    name : str
        Of the command.
    summary : str
        What it does.
    place : int
        Where it is listed.
    """

    name: str
    summary: str
    place: int


def outlines() -> tuple[Outline, ...]:
    """Return the calls that have a command, in the order of their places; nothing is imported."""
    files = sorted(Path(folder) / f"{module.name}.py" for folder in __path__ for module in iter_modules([folder]))
    read = [outline for file in files if (outline := _outline(file)) is not None]
    return tuple(sorted(read, key=lambda outline: (outline.place, outline.name)))


def _outline(file: Path) -> Outline | None:
    """Return what the ``CALL`` of a file states in plain words; None for a file without one, or without a command."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            stated = {keyword.arg: keyword.value for keyword in node.value.keywords}
            if names == ["CALL"] and "command" in stated:
                place = ast.literal_eval(stated["place"]) if "place" in stated else Call.place
                return Outline(ast.literal_eval(stated["name"]), ast.literal_eval(stated["summary"]), place)
    return None
