"""Docstrings, errors and pages are plain technical English: a floor of mechanical rules under reading aloud."""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")

PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    if not {"_build", "entries"} & set(path.parts)
)
CLAUSE = re.compile(
    r"^Return\W*$|^Return (?:is|are|has|needs|takes|of|in|on|at|to|for|after|before|within|without|with|from|by|"
    r"because|there|none|those|that|theirs)\b|"
    r"^Return (?!whether|how|why|what|where|when|if)\w+ (?:is|are|has|needs|takes)\b"
)
BANNED = re.compile(
    r"\b(?:anew|foretell|foretold|sooner|comes to|manieth|mend|bears?|as there|which one|for ever|told|heard|"
    r"likewise|\d+ bits? an? coordinate|be there fewer)\b|\bbits an? coordinate\b|\b\d+ an? rank\b|\bnothing is owed\b",
    re.IGNORECASE,
)
CODE = re.compile(r"```.*?```|`[^`\n]*`|\{\{.*?\}\}|\]\([^)]*\)|https?://\S+", re.DOTALL)
BARE = re.compile(r"(?<![\w.\d/\\])-?\.\d+")  # .05 without its zero
NAMED = re.compile(r"^\w+(?= : )", re.MULTILINE)  # a parameter's or field's own name is no word of the sentence


def files(package):
    """The Python files of a package."""
    return sorted((ROOT / package).rglob("*.py"))


def prose(path):
    """The text of a page, without code, links and directives."""
    text = path.read_text()
    if path.suffix == ".ipynb":
        text = "\n\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")
    return CODE.sub("``", text)


@cache
def parsed(path):
    return ast.parse(path.read_text())


def documented(path):
    """(name, node, docstring) of the module and of all classes and functions in it."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')}", node, text


def raised(path):
    """(line, text) of every sentence that is raised, with its values left out."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield f"{path.relative_to(ROOT)}:{part.lineno}", part.value


def decorated(node, word):
    return any(word in ast.unparse(decorator) for decorator in node.decorator_list)


def returns_nothing(node):
    """Whether a function is annotated to return None."""
    returned = getattr(node, "returns", None)
    return isinstance(returned, ast.Constant) and returned.value is None


@pytest.mark.parametrize("package", PACKAGES)
def test_first_lines_are_sentences(package):
    wrong = []
    for path in files(package):
        for name, node, text in documented(path):
            first = text.splitlines()[0]
            if CLAUSE.match(first):
                wrong.append(f"{name}: {first}")
            elif first.startswith("Return ") and isinstance(node, ast.FunctionDef):
                if returns_nothing(node) or decorated(node, "contextmanager") or decorated(node, "property"):
                    wrong.append(f"{name}: {first}")
            elif first.startswith("Return ") and isinstance(node, ast.ClassDef | ast.Module):
                wrong.append(f"{name}: {first}")
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_banned_words_are_not_used(package):
    wrong = []
    for path in files(package):
        texts = [(name, NAMED.sub("", text)) for name, _, text in documented(path)] + list(raised(path))
        wrong += [f"{name}: {match[0]}" for name, text in texts if (match := BANNED.search(text))]
    assert wrong == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_use_no_banned_word_and_no_number_without_its_zero(path):
    text = prose(path)
    assert BANNED.findall(text) == []
    assert BARE.findall(text) == []


@pytest.mark.parametrize(
    ("text", "found"), [("about .05 of it", [".05"]), ("0.05, 1.5, v.2", []), ("($-.5$)", ["-.5"])]
)
def test_a_number_without_its_zero_is_found(text, found):
    assert BARE.findall(text) == found


@pytest.mark.parametrize(
    "first",
    ["Return kernels are launched", "Return needs a CUDA device.", "Return in what a mean is kept", "Return none."],
)
def test_the_rules_refuse_clauses(first):
    assert CLAUSE.match(first)


@pytest.mark.parametrize(
    "first", ["Return the message.", "Return ``NoClaim``.", "Launch kernels.", "Return both ends."]
)
def test_the_rules_accept_sentences(first):
    assert not CLAUSE.match(first)
