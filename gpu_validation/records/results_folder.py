"""The folder of one experiment's results: one run at a time writes to it, and nothing in it is overwritten unasked."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .exit_status import UsageError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of some network file systems


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Make the folder if it is missing and hold it; the kernel lets go of it when the last process of the run ends.

    Raises
    ------
    UsageError
        If another run holds it or it cannot be written to.
    OSError
        If the disk is full or broken.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "no permission to write", str(folder))
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        raise UsageError(f"cannot write results to {folder}: {error.strerror}: choose another --out") from error
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(f"another run is writing to {folder}: wait until it ends, or choose another --out") from error
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


def set_aside(path: Path) -> Path | None:
    """Give a file another name, with a number that is free; returns it, or None if there is no such file."""
    if not path.exists():
        return None
    number = 1
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    os.replace(path, other)
    return other
