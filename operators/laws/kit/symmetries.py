"""Which symmetries a subject declares: ``equivariant``, a set of "scale", "sign" and "permutation"."""

from __future__ import annotations

from .subject import Subject


def undeclared(subject: Subject, symmetry: str) -> str | None:
    """Return why a symmetry is not tried, or None if the subject declares it."""
    if symmetry in getattr(subject.target, "equivariant", ()):
        return None
    return f'"{symmetry}" is not among the symmetries it declares (attribute equivariant)'
