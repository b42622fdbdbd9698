"""A small C program of this package, compiled once for this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .namespaces import NetworkUnavailable

COMPILE_TIMEOUT_S = 60.0
FLAGS = ("-O2", "-std=gnu11")


def cache_folder() -> Path:
    """Where programs are kept: $XDG_CACHE_HOME/ratedist, or ~/.cache/ratedist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ratedist"


def compiled(source: Path, fallback: Path) -> Path:
    """The program made of a C file, compiled by $CC or cc if this version of it is not in the cache yet.

    fallback : an existing folder to compile into where the cache folder cannot be written.
    Raises NetworkUnavailable without a compiler or if it fails.
    """
    compiler = shutil.which(os.environ.get("CC", "cc"))
    text = source.read_bytes()
    name = f"{source.stem}-{hashlib.sha256(text + repr((compiler, FLAGS)).encode()).hexdigest()[:16]}"
    folder = _writable(cache_folder(), fallback)
    program = folder / name
    if program.exists():
        return program
    if compiler is None:
        raise NetworkUnavailable(f"no C compiler for {source.name}: install cc or set CC; without one leave delay out")
    with tempfile.TemporaryDirectory(dir=folder, prefix="compile-") as scratch:
        unfinished = Path(scratch) / name
        command = [compiler, *FLAGS, "-o", str(unfinished), str(source)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S)
        except subprocess.CalledProcessError as error:
            raise NetworkUnavailable(f"{compiler} failed on {source.name}: {error.stderr.strip()[-500:]}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NetworkUnavailable(f"{compiler} failed on {source.name}: {error}") from error
        os.replace(unfinished, program)
    return program


def _writable(wanted: Path, fallback: Path) -> Path:
    try:
        wanted.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        return fallback
    owner_only = wanted.stat().st_uid == os.geteuid()  # nobody else's programs are run
    return wanted if owner_only and os.access(wanted, os.W_OK) else fallback
