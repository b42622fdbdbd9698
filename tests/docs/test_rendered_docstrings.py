"""Docstrings lose nothing on their way to the pages: every word arrives in order, every parameter as an item."""

import inspect
import re
import sys
from functools import cache
from importlib import import_module

import docutils.core
import docutils.nodes
import pytest
from docutils.parsers.rst import roles
from house_docstrings import to_rst
from test_docstrings import modules, own_text, public

from bounds import all_bounds

WORD = re.compile(r"[^\W_][\w']*|[|^*+/<>=]")
NOT_TEXT = re.compile(r"``|^\s*(\d+\.|[*-])\s|(?<!\w)\*(?=[A-Z][^*]*\*\s)|(?<=\.)\*(?=\s)", re.MULTILINE)
DESCRIBED = r"(?<![\w.*]){}(?:(?:, | or | and )\w+)* : "


def parsed(text):
    """The document that a docstring becomes; works that it cites leave no text."""
    roles.register_local_role("cite:p", lambda *_, **__: ([], []))
    settings = {"report_level": 2, "halt_level": 2}  # warnings are errors
    return docutils.core.publish_doctree("\n".join(to_rst(text)), settings_overrides=settings)


@cache
def docstrings():
    """name -> docstring of every public name, and of every module that is described or makes a Bound."""
    found = {name: inspect.cleandoc(own_text(value)) for name, value, _ in public()}
    described = [import_module(name) for name in modules()]
    making = [sys.modules[name] for name in sorted(sys.modules) if name.startswith("bounds.")]
    return found | {module.__name__: inspect.cleandoc(module.__doc__ or "") for module in described + making}


def words(text):
    return WORD.findall(text.replace("\\", " "))


@pytest.mark.parametrize("package", ["bounds", "operators", "ratedist", "gpu_validation"])
def test_every_word_arrives_in_order(package):
    assert all_bounds()
    lost = {}
    for name, text in docstrings().items():
        if name.partition(".")[0] == package:
            before, after = words(NOT_TEXT.sub(" ", text)), words(parsed(text).astext())
            if before != after:
                at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(after))
                lost[name] = (" ".join(before[at - 3 : at + 6]), " ".join(after[at - 3 : at + 6]))
    assert lost == {}


@pytest.mark.parametrize("package", ["bounds", "operators", "ratedist", "gpu_validation"])
def test_every_parameter_that_is_described_is_an_item(package):
    chopped = []
    for name, value, _ in public():
        text = own_text(value)
        if name.partition(".")[0] != package or not callable(value) or " : " not in text:
            continue
        terms = parsed(inspect.cleandoc(text)).findall(docutils.nodes.term)
        items = {word for term in terms for word in re.findall(r"\w+", term.astext())}
        described = {p for p in signature(value) if re.search(DESCRIBED.format(p), text)}
        chopped += [f"{name}: {parameter}" for parameter in sorted(described - items)]
    assert chopped == []


def signature(value):
    try:
        return set(inspect.signature(value).parameters)
    except (TypeError, ValueError):  # an exception class
        return set()


def test_items_lists_and_formulas_keep_their_form():
    text = """Say it.

    a : one of n, or b :
    two of them.  c, d : n.
    e : three

    They follow:

    1. *First.*  x |a| <= b, e.g.
       E_i = 0.
    2. Then.

        y = x_1 *
            2
    """
    document = parsed(inspect.cleandoc(text))
    assert [t.astext() for t in document.findall(docutils.nodes.term)] == ["a", "or b", "c, d", "e"]
    assert [d.astext() for d in document.findall(docutils.nodes.definition)] == [
        "one of n,",
        "two of them.",
        "n.",
        "three",
    ]
    (listed,) = document.findall(docutils.nodes.enumerated_list)
    assert [item.astext() for item in listed] == ["First.  x |a| <= b, e.g. E_i = 0.", "Then."]
    (code,) = document.findall(docutils.nodes.literal_block)
    assert code.astext().split() == ["y", "=", "x_1", "*", "2"]
