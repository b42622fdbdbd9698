"""The pages of the documentation and their blocks of code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BUILT = ("_build", "_static", "reference", "results")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """language : the word behind the fence.  code : what stands inside, ending with a newline."""

    language: str
    code: str


def pages() -> list[str]:
    """Every page that is written by hand, by its path below docs."""
    found = (path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
    return sorted(str(path) for path in found if path.parts[0] not in BUILT)


def blocks(page: str) -> list[Block]:
    """The fenced blocks of one page, in order."""
    return [Block(*match.groups()) for match in FENCE.finditer((DOCS / page).read_text())]
