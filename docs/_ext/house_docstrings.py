"""Docstrings of this project as reStructuredText.

They are plain text: ``name : meaning`` lines state shapes and units, indented lines are formulas or examples, ``code``
is quoted twice, and ``|x|``, ``x_i`` or ``C(x)*`` mean what they say.  Works of the bibliography that are named with
their year become links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import citations
from sphinx.application import Sphinx

ITEM = re.compile(r"^((?:or )?\*{0,2}[A-Za-z_]\w*(?:(?:, | or | and )[A-Za-z_]\w*)*) : ")
INNER_ITEM = re.compile(r"(?<=[.;])\s+(?=[A-Za-z_]\w*(?:, \w+)* : )")
CODE = re.compile(r"``.*?``", re.DOTALL)


def escape(text: str) -> str:
    """Plain text as reStructuredText that shows it unchanged, but for quoted code."""
    parts, end = [], 0
    for code in CODE.finditer(text):
        parts += [_plain(text[end : code.start()]), code[0]]
        end = code.end()
    return "".join(parts) + _plain(text[end:])


def _plain(text: str) -> str:
    return re.sub(r"([\\*`|_<>])", r"\\\1", text)


def to_rst(text: str, package: str = "") -> list[str]:
    """The lines of a docstring in reStructuredText.  package : whose works are preferred where a name is ambiguous."""
    found: list[str] = []
    for block in _blocks(text.expandtabs().splitlines()):
        found += [*_rendered(block, package), ""]
    return found


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Runs of lines that belong together: a paragraph, one item with its meaning, or indented lines."""
    block: list[str] = []
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        starts = not line.strip() or _is_item(line, following)
        if block and not starts:
            doctest = block[0].lstrip().startswith(">>>")
            indented, was_indented = line.startswith(" "), block[0].startswith(" ")
            ended = _is_item(block[0], block[1] if len(block) > 1 else "") and block[-1].rstrip().endswith((".", ":"))
            starts = not doctest and (
                line.lstrip().startswith(">>>")
                or (was_indented and not indented)
                or (indented and not was_indented and not _is_item(block[0], line))
                or (ended and not indented)
            )
        if starts and block:
            yield block
            block = []
        if line.strip():
            block.append(line)
    if block:
        yield block


def _is_item(line: str, following: str) -> bool:
    named = ITEM.match(line) is not None
    return named or (" : " in line[:60] and following.startswith(" ") and not line.startswith((" ", ">")))


def _rendered(block: list[str], package: str) -> list[str]:
    first = block[0]
    if first.lstrip().startswith(">>>"):
        return [line.strip() for line in block]
    if _is_item(first, block[1] if len(block) > 1 else ""):
        text = " ".join(line.strip() for line in block)
        lines: list[str] = []
        for item in INNER_ITEM.split(text):
            name, _, meaning = item.partition(" : ")
            lines += [f"``{name.strip()}``", f"   {citations.linked(escape(meaning), package)}", ""]
        return lines
    if first.startswith(" "):
        return [".. code-block:: text", "", *(f"   {line}" for line in block)]
    return [citations.linked(escape(" ".join(line.strip() for line in block)), package)]


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite one docstring in place."""
    lines[:] = to_rst("\n".join(lines), name.partition(".")[0])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the conversion."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
