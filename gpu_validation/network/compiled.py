"""C programs of this package, compiled once per machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .namespaces import NetworkUnavailable

COMPILE_TIMEOUT_S = 60.0
FLAGS = ("-O2", "-std=gnu11")


def cache_folder() -> Path:
    """Return the folder of compiled programs: $XDG_CACHE_HOME/ratedist, or ~/.cache/ratedist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ratedist"


@contextmanager
def compiled(source: Path) -> Iterator[Path]:
    """Inside, the yielded program exists, compiled from a C file by $CC or cc unless it is in the cache.

    If the cache folder cannot be written, the program is removed afterwards.

    Raises
    ------
    NetworkUnavailable
        Without a compiler, or if it fails.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    text = source.read_bytes()
    name = f"{source.stem}-{hashlib.sha256(text + repr((compiler, FLAGS)).encode()).hexdigest()[:16]}"
    with ExitStack() as stack:
        cache = cache_folder()
        if not _writable(cache):
            cache = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ratedist-")))
        program = cache / name
        if not program.exists():
            if compiler is None:
                raise NetworkUnavailable(
                    f"no C compiler for {source.name}: install cc or set CC; without one leave delay out"
                )
            _compile(compiler, source, program)
        yield program


def _compile(compiler: str, source: Path, program: Path) -> None:
    """Compile next to the program, then move the result atomically."""
    with tempfile.TemporaryDirectory(dir=program.parent, prefix="compile-") as scratch:
        unfinished = Path(scratch) / program.name
        command = [compiler, *FLAGS, "-o", str(unfinished), str(source)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S)
        except subprocess.CalledProcessError as error:
            raise NetworkUnavailable(f"{compiler} failed on {source.name}: {error.stderr.strip()[-500:]}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NetworkUnavailable(f"{compiler} failed on {source.name}: {error}") from error
        os.replace(unfinished, program)


def _writable(folder: Path) -> bool:
    """Create the folder if needed; return False if it belongs to another user or is read-only."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return False
    return folder.stat().st_uid == os.geteuid() and os.access(folder, os.W_OK)
