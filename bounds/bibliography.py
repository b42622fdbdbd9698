"""The works behind the bounds as BibTeX entries, shipped with the package."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from .provenance import Reference

PACKAGE = "ratedist"


@lru_cache(maxsize=1)
def entries() -> dict[str, str]:
    """Return key -> BibTeX entry, in the order of the file."""
    text = (files(__package__) / "references.bib").read_text(encoding="utf-8")
    return {
        match["key"]: match[0].strip() for match in re.finditer(r"^@\w+\{(?P<key>[^,]+),\n.*?^\}", text, re.M | re.S)
    }


def bibtex(reference: Reference) -> str:
    """Return the entry of the work that a statement comes from, with the place in it as a note.

    Parameters
    ----------
    reference : Reference
        Key, place and number.

    Raises
    ------
    ValueError
        For a key that is not in the bibliography, naming the nearest.
    """
    by_key = entries()
    if reference.key not in by_key:
        near = difflib.get_close_matches(reference.key, by_key, 3) or list(by_key)[:3]
        raise ValueError(
            f"the key of a reference must be in bounds/references.bib; got {reference.key!r}: add it, or take one such "
            f"as {', '.join(near)}"
        )
    entry = by_key[reference.key]
    return f"{entry[:-1]}  note = {{{reference.where}}},\n}}" if reference.where else entry


def cited(references: Iterable[Reference]) -> str:
    """Return what to cite: an entry for each reference, once, and that of this package.

    Parameters
    ----------
    references : iterable of Reference
        Of the statements that were used.
    """
    named = [bibtex(reference) for reference in references if reference.key != PACKAGE]
    return "\n\n".join(dict.fromkeys((*named, entries()[PACKAGE]))) + "\n"
