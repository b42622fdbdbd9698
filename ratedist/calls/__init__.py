"""The calls of the calculator, one file each; the command line, the HTTP API and its server read this folder."""

from __future__ import annotations

from functools import cache
from importlib import import_module
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
