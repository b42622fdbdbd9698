"""A page of its own for every bound, operator, feedback method, aggregation and public class, written before a build.

The pages lie in docs/reference/entries, which git ignores.  They stand in no tree of contents; the index tables of the
catalogue lead to them.
"""

from __future__ import annotations

from typing import Any

import catalogue
from sphinx.application import Sphinx

FOLDER = "reference/entries"
PAGE = '---\norphan: true\n---\n{{{{ entry("{kind}", "{name}") }}}}\n'


def write(app: Sphinx) -> None:
    """Write pages that are missing, and remove those of names that no longer exist."""
    folder = app.srcdir / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{kind}-{name}.md": PAGE.format(kind=kind, name=name) for kind, name in catalogue.entries()}
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the writer."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
