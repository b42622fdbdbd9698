"""The directive ``reproduced``: the figures of a script under docs/figures, drawn from committed records at the build.

```{reproduced} sparse_dithering
```
"""

from __future__ import annotations

import html
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from gpu_validation.reporting.plotting import figure_html

FOLDER = Path(__file__).parent.parent / "figures"
DATA = FOLDER.parent / "data"


def script(name: str) -> ModuleType:
    """A figure script as a module.  Raises FileNotFoundError if there is none of this name."""
    if str(FOLDER) not in sys.path:
        sys.path.insert(0, str(FOLDER))  # for what the scripts share
    spec = importlib.util.spec_from_file_location(f"figures_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def scripts() -> list[str]:
    """Their names."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "common")


class Reproduced(SphinxDirective):
    """All figures of one script, each with its caption and the script's title above them."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Raw SVG within the page: nothing to fetch, sharp at every size."""
        name = self.arguments[0]
        module = script(name)
        self.env.note_dependency(str(FOLDER / f"{name}.py"))
        for path in [FOLDER / "common.py", *DATA.rglob("*.jsonl")]:
            self.env.note_dependency(str(path))
        drawn = [figure_html(figure.draw(), figure.caption, figure.source) for figure in module.figures()]
        title = html.escape((module.__doc__ or "").splitlines()[0])
        source = f'<p class="reproduced">{title} Drawn by <code>docs/figures/{name}.py</code>.</p>'
        return [nodes.raw("", "\n".join([*drawn, source]), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("reproduced", Reproduced)
    return {"parallel_read_safe": True, "parallel_write_safe": False}
