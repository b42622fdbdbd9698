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
    by_key = entries()
    if reference.key not in by_key:
        near = difflib.get_close_matches(reference.key, by_key, 3) or list(by_key)[:3]
        raise ValueError(
            f"the key of a reference must be in bounds/references.bib; got {reference.key!r}: add it, or take one such "
            f"as {', '.join(near)}"
        )
    entry = TITLE.sub(r"  title = {{\1}},", by_key[reference.key])
    eprint = EPRINT.search(entry)
    added = [f"  url = {{https://arxiv.org/abs/{eprint[1]}}},"] if eprint else []
    place = PLACE.match(reference.where)
    added += [f"  note = {{{place[0]}}},"] if place else []
    return "\n".join([entry[:-1].rstrip(), *added, "}"])


def cited(references: Iterable[Reference]) -> str:
    """Return what to cite: an entry for each reference, once, and that of this package.

    Parameters
    ----------
    references : iterable of Reference
        Of the statements that were used.
    """
    named = [bibtex(reference) for reference in references if reference.key != PACKAGE]
    return "\n\n".join(dict.fromkeys((*named, bibtex(Reference(PACKAGE))))) + "\n"
