"""Inline code of the front page and the documentation, sorted by what can be done with it.

A call or an import is run.  ``...`` makes it a form: the names that it calls must exist.  ``name=value`` names a
keyword of a public function, ``name()`` a public function or method.  A line that begins with a program is a command.
What is left is a name or a formula.
"""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass

from pages import DOCS, blocks, pages

PROGRAMS = ("gpu-validation", "make", "pip", "pytest", "ratedist", "sbatch", "torchrun", "export")
FENCED = re.compile(r"^(```+|~~~+).*?^\1\s*?$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<![`}])(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)  # not the argument of a {role}
PROMPT = re.compile(r"^(>>> |\.\.\. )|^(?!>>> |\.\.\. ).*$", re.MULTILINE)  # what is typed stays, what is shown goes


@dataclass(frozen=True)
class Inline:
    """page : where it stands.  code : on one line.  kind : "run", "form", "keyword", "method", "command" or "name"."""

    page: str
    code: str
    kind: str


def inline_code() -> list[Inline]:
    """All of it but the names, once a page."""
    found = []
    for page in ["../README.md", *pages()]:
        text = FENCED.sub("", (DOCS / page).read_text())
        codes = dict.fromkeys(" ".join(match[2].split()) for match in INLINE.finditer(text))
        found += [Inline(page, code, kind_of(code)) for code in codes if kind_of(code) != "name"]
    return found


def kind_of(code: str) -> str:
    """What can be done with a piece of inline code."""
    first, _, rest = code.partition(" ")
    if first in PROGRAMS and rest:
        return "command"
    if re.fullmatch(r"[a-z_]\w*=", code):
        return "keyword"
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return "name"
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    if any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes):
        return "run"
    if isinstance(tree.body[0], ast.Assign) and re.match(r"[a-z_]\w*=\S", code):
        return "keyword"
    if not calls:
        return "name"
    if any(isinstance(node, ast.Constant) and node.value is ... for node in nodes):
        return "form"
    if isinstance(calls[0].func, ast.Name) and not calls[0].args + calls[0].keywords:
        return "run" if hasattr(builtins, calls[0].func.id) else "method"
    return "run"


def definitions(page: str) -> str:
    """What a page's own Python imports and defines, without running what it does."""
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
    parts = [
        block.code if block.language == "python" else PROMPT.sub("", block.code)
        for block in blocks(page)
        if block.language in ("python", "pycon")
    ]
    return "\n".join(ast.unparse(node) for part in parts for node in ast.parse(part).body if isinstance(node, kept))
