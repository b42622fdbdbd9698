"""Results folder of one study: only one run writes to it, and files are not overwritten without request."""

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
    """Inside, this run holds the lock of the folder, which is created if missing.

    The kernel releases the lock when the last process of the run ends.

    Raises
    ------
    UsageError
        If another run holds the lock, or the folder cannot be written.
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
    """Rename a file with a free number; return the new path, or None without a file."""
    if not path.exists():
        return None
    number = 1
    while (other := path.with_name(f"{path.stem}-{number}{path.suffix}")).exists():
        number += 1
    os.replace(path, other)
    return other
