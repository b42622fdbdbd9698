"""Docstrings, errors and pages are plain technical English: a floor of mechanical rules under reading aloud."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Files and folders that were rewritten by hand.  Add yours when it is done.
REWRITTEN = (
    "operators/aggregate",
    "operators/combinators",
    "operators/compressors",
    "operators/feedback",
    "operators/catalogue.py",
    "operators/equal_bits.py",
    "operators/fingerprint.py",
    "operators/inputs.py",
    "operators/key.py",
    "operators/message.py",
    "operators/operator.py",
    "operators/outside.py",
    "operators/pieces.py",
    "operators/precompile.py",
    "operators/random.py",
    "operators/rate.py",
    "operators/streamed.py",
    "operators/torch_ddp.py",
    "gpu_validation/adapters",
    "gpu_validation/cli.py",
    "gpu_validation/distributed",
    "gpu_validation/engines",
    "gpu_validation/local_sgd",
    "gpu_validation/network",
    "gpu_validation/piloting",
    "gpu_validation/records",
    "gpu_validation/reporting",
    "gpu_validation/telemetry",
    "gpu_validation/timing",
    "gpu_validation/verdicts",
    "gpu_validation/workloads",
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
NAMED = re.compile(r"^\w+(?= : )", re.MULTILINE)  # a parameter's or field's own name is no word of the sentence


def files(places=REWRITTEN):
    """The Python files below the rewritten places."""
    return sorted(
        path for place in places for path in ([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py"))
    )


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


@pytest.mark.parametrize("place", REWRITTEN)
def test_first_lines_are_sentences(place):
    wrong = []
    for path in files((place,)):
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


@pytest.mark.parametrize("place", REWRITTEN)
def test_banned_words_are_not_used(place):
    wrong = []
    for path in files((place,)):
        texts = [(name, NAMED.sub("", text)) for name, _, text in documented(path)] + list(raised(path))
        wrong += [f"{name}: {match[0]}" for name, text in texts if (match := BANNED.search(text))]
    assert wrong == []


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
