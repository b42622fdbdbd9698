"""The scripts of the documentation as modules, as Python finds them when one of them is run."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[1] / "docs"


def load(folder: str, name: str) -> ModuleType:
    """Import docs/FOLDER/NAME.py; what it imports is looked for in docs and its own folder last, where a benchmark is
    called as a package."""
    paths = [str(DOCS), str(DOCS / folder)]
    sys.path += paths
    try:
        return importlib.import_module(name)
    finally:
        for path in paths:
            sys.path.remove(path)
