"""Modules of the user that hide a package of ours: ``operators.py`` beside a script is found before ``operators``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("bounds", "operators")
COMMANDS = {"ratedist": "ratedist", "gpu_validation": "gpu-validation"}  # of python -m -> of the shell


def require_own_packages() -> None:
    """Check that the packages that stand beside this one are those that Python finds; none is imported.

    Raises
    ------
    ImportError
        Naming the file that hides one.
    SystemExit
        With status 2 after the same sentence, where Python was started as one of our commands.
    """
    beside = Path(__file__).resolve().parents[1]
    for name in PACKAGES:
        spec = find_spec(name)
        found_at = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if found_at is not None and found_at != beside / name / "__init__.py":
            sentence = (
                f"ratedist needs its own package {name!r}, which {found_at} hides: rename that file, or start Python "
                "from another folder"
            )
            command = _command()
            if command is None:
                raise ImportError(sentence)
            sys.stderr.write(f"{command}: {sentence}\n")
            raise SystemExit(2)


def _command() -> str | None:
    """Return which of our commands this process is, None for any other."""
    started = sys.argv[0] if sys.argv else ""
    if started == "-m":  # Python is still looking for the module that is to run
        words = sys.orig_argv
        return COMMANDS.get(words[words.index("-m") + 1]) if "-m" in words[:-1] else None
    name = Path(started).name
    return name if name in COMMANDS.values() else None
