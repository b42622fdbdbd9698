"""Where machine code is kept: the folder that NUMBA_CACHE_DIR names, the package's own, or the user's cache folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import lru_cache
from pathlib import Path

from numba.core import config
from numba.misc.appdirs import AppDirs

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
