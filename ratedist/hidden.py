"""Modules of the user that hide a package of ours: ``operators.py`` beside a script is found before ``operators``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("bounds", "operators")


def require_own_packages() -> None:
    """Check that the packages that stand beside this one are those that Python finds; none is imported.

    Raises
    ------
    ImportError
        Naming the file that hides one.
    """
    beside = Path(__file__).resolve().parents[1]
    for name in PACKAGES:
        spec = find_spec(name)
        found_at = Path(spec.origin).resolve() if spec is not None and spec.origin else None
        if found_at is not None and found_at != beside / name / "__init__.py":
            raise ImportError(
                f"ratedist needs its own package {name!r}, which {found_at} hides: rename that file, or start Python "
                "from another folder"
            )
