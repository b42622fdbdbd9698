"""No module reads numbers out of sentences: rows carry them in ``facts``."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SENTENCES = {"reason", "quantity", "label"}
PARSERS = {
    *("split", "rsplit", "partition", "rpartition", "startswith", "endswith", "find", "index", "removeprefix"),
    *("removesuffix", "match", "fullmatch", "search", "findall", "finditer"),
}
READERS = ("bounds", "operators", "ratedist", "gpu_validation", "docs", "tests/docs")


def is_sentence(node: ast.AST) -> bool:
    """Whether an expression holds a field that is written for people, as an attribute or as a key of a record."""
    return any(
        (isinstance(part, ast.Attribute) and part.attr in SENTENCES)
        or (isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant) and part.slice.value in SENTENCES)
        for part in ast.walk(node)
    )


def parses(node: ast.AST) -> bool:
    """Whether a node takes a sentence apart, or looks for words in it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PARSERS:
        return is_sentence(node.func.value) or any(map(is_sentence, node.args))
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        return any(isinstance(right, ast.Attribute | ast.JoinedStr | ast.BinOp) and is_sentence(right)
                   for right in node.comparators)  # fmt: skip
    return False


def parsed(source: str) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if parses(node)]


@pytest.mark.parametrize("folder", READERS)
def test_no_module_parses_a_sentence(folder):
    hits = {
        str(path.relative_to(ROOT)): lines
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (lines := parsed(path.read_text()))
    }
    assert hits == {}


@pytest.mark.parametrize(
    "source",
    [
        're.search(r"says ([0-9.]+)", row.reason)',
        'row.quantity.endswith("above the floor")',
        'float(record["reason"].rsplit(" ")[-1])',
        '"both at rate" in row.quantity',
        'NUMBER.findall(f"{row.label} {row.theorem}")',
        'mutation.of in f"{row.quantity} {row.theorem}"',
    ],
)
def test_a_parser_would_be_seen(source):
    assert parsed(source)


@pytest.mark.parametrize(
    "source", ["row.quantity == LOSS", "{row.quantity} & names", "print(row.reason)", "a in b.rows"]
)
def test_what_is_no_parser_passes(source):
    assert not parsed(source)
