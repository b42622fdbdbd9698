"""The generated pages show every bound and operator, and every source that the code names is in the bibliography."""

import ast
import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import api
import catalogue
import citations
import entries
import pytest
import records
from markdown_text import escape, number

from bounds import all_bounds
from operators import all_aggregates, all_feedbacks, all_operators, all_summed

ROOT = Path(__file__).parents[2]
PACKAGES = ("bounds", "operators", "ratedist", "gpu_validation")
OWN = "ratedist"  # the key of statements that are derived here


def test_every_bound_is_on_exactly_one_page():
    shown = [bound.name for package in ("bounds.limits", "bounds.theorems") for bound in catalogue.bounds_of(package)]
    assert sorted(shown) == list(all_bounds())


def test_every_entry_has_a_page_with_its_label_and_a_link_in_an_index():
    indices = {
        "bound": catalogue.bound_overview("bounds.limits") + catalogue.bound_overview("bounds.theorems"),
        "operator": catalogue.operator_overview(),
        "feedback": catalogue.family_overview("feedback"),
        "aggregate": catalogue.family_overview("aggregate"),
        "class": "".join(api.module_section(*section) for section in api.sections()),
    }
    families = {"operator": all_operators(), "feedback": all_feedbacks(), "aggregate": all_aggregates()}
    assert {kind for kind, _ in catalogue.entries()} == set(indices)
    for kind, name in catalogue.entries():
        page = catalogue.entry(kind, name)
        assert page.startswith(f"({kind}-{name})=\n# `{name.rpartition('.')[2] if kind == 'class' else name}`\n")
        assert f"(/reference/entries/{kind}-{name}.md)" in indices[kind]
        if kind in families:
            assert f"autoclass:: operators.{families[kind][name].__name__}\n" in page


def test_pages_of_entries_that_are_gone_are_removed(tmp_path):
    folder = tmp_path / entries.FOLDER
    folder.mkdir(parents=True)
    (folder / "bound-nothing.md").write_text("old")
    entries.write(SimpleNamespace(srcdir=tmp_path))
    assert {path.stem for path in folder.iterdir()} == {f"{kind}-{name}" for kind, name in catalogue.entries()}


@pytest.mark.parametrize("name", list(all_bounds()))
def test_source_of_a_bound_is_in_the_bibliography_with_the_same_arxiv_number(name):
    reference = all_bounds()[name].reference
    if reference.key == OWN:
        return
    entry = citations.bibliography()[reference.key]
    assert reference.arxiv in (None, entry.fields.get("eprint"))
    assert entry.fields["year"] in reference.key


def docstrings():
    """(package, text) of every docstring, and of every text below an assignment."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                    text = ast.get_docstring(node)
                    if text:
                        yield package, path, text
                elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    yield package, path, str(node.value.value)


def test_every_work_named_in_a_docstring_is_in_the_bibliography_and_every_entry_is_named():
    cited = {bound.reference.key for bound in all_bounds().values()} - {OWN}
    for package, path, text in docstrings():
        for match in citations.WORK.finditer(text):
            key = citations.key_of(match["first"], match["year"], package)
            assert key is not None, f"{path}: {match[0]} is not in bounds/references.bib"
            cited.add(key)
        cited |= set(re.findall(r"\b[a-z]+(?:19|20)\d\d\b", text)) & set(citations.bibliography())
    assert set(citations.bibliography()) - {OWN} == cited


def test_sources_of_a_method_are_the_works_that_its_docstring_names():
    for family in (all_operators(), all_feedbacks(), all_aggregates(), all_summed()):
        for name, cls in family.items():
            text = f"{inspect.getmodule(cls).__doc__}\n{cls.__doc__}"
            works = citations.WORK.finditer(text)
            assert set(cls.sources) == {citations.key_of(m["first"], m["year"], "operators") for m in works}, name


def test_arxiv_number_in_a_docstring_is_that_of_the_work_before_it():
    found = 0
    for package, path, text in docstrings():
        for match in re.finditer(citations.WORK.pattern + r"\)?, arXiv:(?P<number>[\d.]+\d)", text):
            key = citations.key_of(match["first"], match["year"], package)
            assert citations.bibliography()[key].fields.get("eprint") == match["number"], f"{path}: {match[0]}"
            found += 1
    assert found >= 3


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.25, "0.25"), (16.0, "16"), (1660964.047, "1.661e6"), (0.00001234, "1.234e-5")]
)
def test_numbers_keep_four_digits(value, text):
    assert number(value) == text


def test_markdown_of_plain_text_keeps_quoted_code():
    assert escape("|x_i| in ``a_b``") == r"\|x\_i\| in ``a_b``"


def test_tables_name_commit_and_machine_of_their_record():
    for text in (
        records.operators_table(10**6),
        records.peers_table(),
        records.codec_table(),
        records.trellis_table(),
        records.rate_table("gauss"),
    ):
        assert "commit" in text.splitlines()[-1]
        assert len(text.splitlines()) > 5


def test_looseness_of_a_bound_spans_its_comparisons(monkeypatch):
    monkeypatch.setattr(
        records, "factors", lambda: {"ef21": [("quick", 2.0), ("gtopk", 31.4)], "diana": [("quick", 3.0)]}
    )
    assert (
        records.looseness("ef21")
        == "2 to 31.4 times looser than what was measured, in 2 comparisons (`gtopk`, `quick`)"
    )
    assert records.looseness("diana").startswith("3 times looser")
    assert records.looseness("marina") == ""


def test_every_bound_has_a_derivation_or_a_source_of_its_own():
    texts = catalogue.derivations()
    assert set(texts) == set(all_bounds())
    assert all(len(text.split()) >= 10 for text in texts.values()), texts
