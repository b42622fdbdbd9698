"""The machine code of one loop on disk: one file for each types of arguments and each processor."""

from __future__ import annotations

import hashlib
import pickle
import sys
import uuid
from collections.abc import Callable
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import event
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from .folders import folders, writable_folder
from .notice import Notice
from .processors import processors
from .stamp import stamp

STAMP_BYTES = 32


class CodeCache(_Cache):
    """Load the code of a loop from the first folder that has it, and keep what had to be compiled.

    A file begins with the digest of what the code was made from and that of the rest: a stale or a damaged file is
    compiled again and overwritten.

    Parameters
    ----------
    function : callable
        The loop, as written.
    options : dict
        Its compiler's options.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function, self._options = function, options
        _listen()

    @property
    def cache_path(self) -> str | None:
        """The folder in which code is kept; None without one."""
        folder = writable_folder()
        return None if folder is None else str(folder)

    @cached_property
    def _stamp(self) -> bytes:
        return stamp(self._function, self._options)

    def _file_names(self, signature: Any, machine: tuple[str, str, str]) -> list[str]:
        """The names of files with the code for these types, best first."""
        versions = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag, machine[0])
        digest = hashlib.sha256(f"{signature} {versions}".encode()).hexdigest()[:16]
        base = f"{self._function.__module__}.{self._function.__qualname__}-{digest}"
        return [f"{base}.{processor}.bin" for processor in processors(*machine)]

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled code, None if no folder has it.

        Parameters
        ----------
        signature
            Types of the arguments.
        context
            numba's target context.
        """
        rtsys.initialize(context)  # what loaded code needs; a compilation loads all of numba itself
        for name in self._file_names(signature, context.codegen().magic_tuple()):
            for folder in folders():
                payload = _read(folder / name, self._stamp)
                if payload is not None:
                    return CompileResult._rebuild(context, *pickle.loads(payload))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep compiled code.

        Parameters
        ----------
        signature
            Types of the arguments.
        compiled
            numba's result.

        Raises
        ------
        ValueError
            If the code holds addresses of this process, which another could not use.
        """
        folder = writable_folder()
        if folder is None:
            return
        if compiled.library.has_dynamic_globals:
            raise ValueError(f"{self._function.__qualname__} holds addresses of this process: pass them as arguments")
        payload = dumps(compiled._replace(type_annotation="")._reduce())  # the annotation repeats the source
        name = self._file_names(signature, compiled.library.codegen.magic_tuple())[0]
        _write(folder / name, self._stamp + hashlib.sha256(payload).digest() + payload)

    def enable(self) -> None:
        """Do nothing: the cache is always on."""

    def disable(self) -> None:
        """Do nothing: the cache is always on."""

    def flush(self) -> None:
        """Do nothing: stale files are overwritten."""


@lru_cache(maxsize=1)
def _listen() -> None:
    event.register("numba:compile", Notice())


def _read(path: Path, expected: bytes) -> bytes | None:
    """What follows the two digests, if they are right."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = content[2 * STAMP_BYTES :]
    digests = content[: 2 * STAMP_BYTES]
    return payload if digests == expected + hashlib.sha256(payload).digest() else None


def _write(path: Path, content: bytes) -> None:
    """Replace the file at once, so that no other process reads half of it."""
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError:  # a full disk, or another process that reads the file: the code is compiled again next time
        temporary.unlink(missing_ok=True)
