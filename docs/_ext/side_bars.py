"""The side bar of pages outside the tree of contents is made once for each folder depth.

Such are the sources of modules and the entries of the catalogue.  Sphinx resolves the whole tree again for each of some
500 pages, but only the relative links differ by depth.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sphinx.application import Sphinx

BEFORE_THE_THEME = 400
SideBars = dict[tuple[Any, ...], Any]


def reuse(
    made: SideBars, app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
    """Give pages that stand in no tree of contents one side bar for their depth."""
    is_listed = pagename in app.env.all_docs and "orphan" not in app.env.metadata[pagename]
    if is_listed or "toctree" not in context:
        return
    make, depth = context["toctree"], pagename.count("/")

    def toctree(**options: Any) -> Any:
        key = (depth, *sorted(options.items()))
        if key not in made:
            made[key] = make(**options)
        return made[key]

    context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the hook."""
    app.connect("html-page-context", partial(reuse, {}), priority=BEFORE_THE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
