"""The directive ``reproduced``: figures of a script in docs/figures, or of a study, drawn from committed records.

```{reproduced} sparse_dithering
```
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from gpu_validation.judging.plotting import figure_html

FOLDER = Path(__file__).parent.parent / "figures"
DATA = FOLDER.parent / "data"


OPEN = 2  # figures that are shown at once
MOST_CHARACTERS = 90  # of the line that opens a folded figure


def summary(caption: str) -> str:
    """Return the first sentence of a caption, or its first words."""
    words = re.sub(r"^Measured[^:.]*[:.] ", "", caption)
    sentence = re.split(r"[.;] ", words, maxsplit=1)[0].rstrip(".")
    return textwrap.shorten(sentence[:1].upper() + sentence[1:], MOST_CHARACTERS, placeholder=" ...")


def script(name: str) -> Any:
    """A figure script as a module, or a study with its committed record; both have ``figures()`` and ``check()``."""
    for folder in (FOLDER, FOLDER.parent):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))  # for what the scripts share
    from common import named

    return named(name)


class Reproduced(SphinxDirective):
    """All figures of one script or study, each with its caption; the third and later ones are folded."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Raw SVG within the page: nothing to fetch, sharp at every size."""
        name = self.arguments[0]
        path = FOLDER / f"{name}.py"
        if path.exists():
            self.env.note_dependency(str(path))
        else:
            path = FOLDER.parents[1] / "gpu_validation" / "studies" / f"{name.replace('-', '_')}.py"
        for each in [FOLDER / "common.py", *DATA.rglob("*.jsonl")]:
            self.env.note_dependency(str(each))
        drawn = []
        for i, figure in enumerate(script(name).figures()):
            folded = figure.folded or (summary(figure.caption) if i >= OPEN else "")
            drawn.append(figure_html(figure.titled(), figure.caption, figure.source, folded))
        drawn.append(f'<p class="reproduced">Drawn by <code>{path.relative_to(FOLDER.parents[1])}</code>.</p>')
        return [nodes.raw("", "\n".join(drawn), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("reproduced", Reproduced)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
