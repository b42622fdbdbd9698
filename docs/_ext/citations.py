"""Works named in docstrings, such as "Stich et al. 2018", and their entries in bounds/references.bib."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

from pybtex.database import Entry, parse_file
from sphinx.application import Sphinx

BIBLIOGRAPHY = Path(__file__).parents[2] / "bounds" / "references.bib"
SURNAME = r"(?:[vV]an )?[A-Z][\w'-]+"
OTHERS = rf"(?:(?:,| and| &)\s+{SURNAME})*(?:\s+et\s+al\.)?"
WORK = re.compile(rf"(?P<first>(?:Ben )?{SURNAME}){OTHERS},?\s+\(?(?P<year>(?:19|20)\d\d)\b")


@lru_cache(maxsize=1)
def bibliography() -> dict[str, Entry]:
    """Key -> entry."""
    return dict(parse_file(str(BIBLIOGRAPHY)).entries)


def folded(name: str) -> str:
    """A name without accents, braces and capitals."""
    text = unicodedata.normalize("NFKD", name.replace("{", "").replace("}", ""))
    return "".join(c for c in text if not unicodedata.combining(c)).lower()


def surname(entry: Entry) -> str:
    """Of the first author."""
    person = entry.persons["author"][0]
    return folded(" ".join([*person.prelast_names, *person.last_names]))


def key_of(first: str, year: str, package: str = "") -> str | None:
    """The entry by the first author's surname and the year; None if there is none.

    package : where two entries fit, the one whose keywords name the package is taken.
    """
    found = [k for k, e in bibliography().items() if e.fields["year"] == year and surname(e) == folded(first)]
    marked = [k for k in found if package and package in bibliography()[k].fields.get("keywords", "")]
    return (marked or found or [None])[0]


def linked(rst: str, package: str = "") -> str:
    """Put a link behind every work that the text names."""

    def with_link(match: re.Match[str]) -> str:
        key = key_of(match["first"], match["year"], package)
        return f"{match[0]} :cite:p:`{key}`" if key else match[0]

    return WORK.sub(with_link, rst)


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Link the works that one docstring names, in place."""
    lines[:] = linked("\n".join(lines), name.partition(".")[0]).split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the links of docstrings, after numpydoc sections have been read."""
    app.connect("autodoc-process-docstring", process, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
