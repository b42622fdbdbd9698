"""The machine code of compiled loops on disk: one file for each types of arguments and each processor."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config, event
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

from .processors import processors
from .stamp import stamp

# Where machine code is kept: the folder that NUMBA_CACHE_DIR names, the package's own, or the user's cache folder.

PACKAGE = Path(__file__).parent / "code"


def folders() -> tuple[Path, ...]:
    """Return all folders in which code is looked for, in their order.

    Those outside the package have a folder for every place in which the package is installed.
    """
    place = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:12]
    user = _users() / place
    return (Path(config.CACHE_DIR) / f"ratedist-{place}", PACKAGE, user) if config.CACHE_DIR else (PACKAGE, user)


def _users() -> Path:
    """Return the user's cache folder; XDG_CACHE_HOME counts only where it is absolute, as its specification says."""
    folder = Path(AppDirs("ratedist", appauthor=False).user_cache_dir)
    return folder if folder.is_absolute() else Path(os.path.expanduser("~/.cache/ratedist"))


@lru_cache(maxsize=8)
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def writable_folder() -> Path | None:
    """Return the first folder that can be written, None if there is none."""
    return next((folder for folder in folders() if _is_writable(folder)), None)


# One line to the user when compilation keeps a process waiting.

log = logging.getLogger("operators")

PATIENCE_S = 1.0


class Notice(event.Listener):
    """Add the seconds of compilations up, and say once what is going on when they exceed ``PATIENCE_S``."""

    def __init__(self) -> None:
        self._depth, self._spent_s, self._begun_s, self._was_given = 0, 0.0, 0.0, False

    def on_start(self, event: Any) -> None:
        """Begin to count at the outermost function, and look at the clock at those that it calls."""
        module = event.data["dispatcher"].py_func.__module__
        if not self._depth and module.partition(".")[0] != __name__.partition(".")[0]:
            return  # a loop of the user's own
        now_s = time.perf_counter()
        if not self._depth:
            self._begun_s = now_s
        self._depth += 1
        self._look(now_s)

    def on_end(self, event: Any) -> None:
        """Keep the seconds of the outermost function."""
        if not self._depth:
            return
        now_s = time.perf_counter()
        self._look(now_s)
        self._depth -= 1
        if not self._depth:
            self._spent_s += now_s - self._begun_s

    def _look(self, now_s: float) -> None:
        if not self._was_given and self._spent_s + now_s - self._begun_s > PATIENCE_S:
            self._was_given = True
            log.warning(sentence())


def sentence() -> str:
    """Return the notice to the user: where the code will be, or why there is no such place."""
    folder = writable_folder()
    if folder is not None:
        return (
            f"compiling loops for this processor, once: the code is kept in {folder}; "
            "python -m operators.precompile compiles those of all operators beforehand"
        )
    places = " nor ".join(str(folder) for folder in folders())
    return (
        f"compiling loops for this processor, again in every process: neither {places} can be written; "
        "set NUMBA_CACHE_DIR to a folder that can"
    )


# The machine code of one loop on disk: one file for each types of arguments and each processor.

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
                    with suppress(ImportError, AttributeError):  # it names a type that has moved: stale
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
