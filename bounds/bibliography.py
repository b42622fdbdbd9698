"""The works behind the bounds as BibTeX entries, shipped with the package."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from .provenance import Reference

PACKAGE = "ratedist"
TITLE = re.compile(r"^  title = \{(.*)\},$", re.M)
EPRINT = re.compile(r"^  eprint = \{(.*)\},$", re.M)
PART = r"(?:Theorem|Lemma|Section|Algorithm|Assumption|Proposition|Corollary|Definition) [\dIVX][\d.IVX]*"
PLACE = re.compile(rf"{PART}(?: and {PART})*")  # in a source, before a remark of ours
WORK = re.compile(rf"\b(?P<key>[a-z]+(?:19|20)\d\d[a-z]*)(?:, (?P<place>{PLACE.pattern}))?")  # in a remark of ours


@lru_cache(maxsize=1)
def entries() -> dict[str, str]:
    """Return key -> BibTeX entry, in the order of the file."""
    text = (files(__package__) / "references.bib").read_text(encoding="utf-8")
    return {
        match["key"]: match[0].strip() for match in re.finditer(r"^@\w+\{(?P<key>[^,]+),\n.*?^\}", text, re.M | re.S)
    }


def bibtex(reference: Reference) -> str:
    """Return the entry of the work that a statement comes from, with its address and the place in it as a note.

    Titles are braced, so that no style changes their capitals.

    Parameters
    ----------
    reference : Reference
        Key, place and number.

    Raises
    ------
    ValueError
        For a key that is not in the bibliography, naming the nearest.
    """
    return _entry(reference.key, _place(reference))


def _place(reference: Reference) -> str:
    place = PLACE.match(reference.where)
    return place[0] if place else ""


def _entry(key: str, note: str) -> str:
    by_key = entries()
    if key not in by_key:
        near = difflib.get_close_matches(key, by_key, 3) or list(by_key)[:3]
        raise ValueError(
            f"the key of a reference must be in bounds/references.bib; got {key!r}: add it, or take one such "
            f"as {', '.join(near)}"
        )
    entry = TITLE.sub(r"  title = {{\1}},", by_key[key])
    eprint = EPRINT.search(entry)
    added = [f"  url = {{https://arxiv.org/abs/{eprint[1]}}},"] if eprint else []
    added += [f"  note = {{{note}}},"] if note else []
    return "\n".join([entry[:-1].rstrip(), *added, "}"])


def cited(statements: Iterable[tuple[str, Reference]]) -> str:
    """Return what to cite: an entry for each work, once, and that of this package as the last.

    A note lists the places in the work.  The note of this package lists the names of its own statements.  A work that
    the place of a reference names, as in "smooth form of wang2018, Theorem 1", is cited too.

    Parameters
    ----------
    statements : iterable of (str, Reference)
        Names of the statements that were used, each with a reference.
    """
    notes: dict[str, set[str]] = {}
    derived_here: set[str] = set()
    for name, reference in statements:
        if reference.key != PACKAGE:
            notes.setdefault(reference.key, set()).add(_place(reference))
        elif name != PACKAGE:
            derived_here.add(name.replace("_", r"\_"))
        for work in WORK.finditer(reference.where):
            notes.setdefault(work["key"], set()).add(work["place"] or "")
    works = [*notes.items(), (PACKAGE, derived_here)]
    return "\n\n".join(_entry(key, "; ".join(sorted(filter(None, places)))) for key, places in works) + "\n"
