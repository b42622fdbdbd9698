"""Every bound can be cited: its key is in the bibliography that is shipped, and the entry is whole BibTeX."""

import re
from importlib.resources import files

import pytest

from bounds import all_bounds
from bounds.bibliography import bibtex, cited, entries
from bounds.provenance import Reference
from tests.pooled import pooled


@pooled("name", all_bounds())
def test_every_bound_can_be_cited(name):
    bound = all_bounds()[name]
    entry = bound.bibtex()
    assert entry.startswith("@")
    assert f"{{{bound.reference.key},\n" in entry
    assert entry.count("{") == entry.count("}")
    assert entry.endswith(",\n}")
    note = re.search(r"note = {(.*)}", entry)
    assert note is None or bound.reference.where.startswith(note[1])


def test_no_entry_of_the_file_is_lost():
    text = (files("bounds") / "references.bib").read_text(encoding="utf-8")
    assert len(entries()) == text.count("\n@")
    for key, entry in entries().items():
        assert "title = {" in entry, key
        assert "author = {" in entry, key


def test_what_is_used_twice_is_cited_once_and_the_package_last():
    published, other = Reference("wang2018", "Theorem 2"), Reference("wang2018", "Theorem 1; constants derived here")
    text = cited([("first", published), ("second", other), ("third", published), ("own_bound", Reference("ratedist"))])
    assert text.count("@") == 2
    assert text.rindex("@software{ratedist,") > text.index("{wang2018,")
    assert re.findall(r"note = {(.*)}", text) == ["Theorem 1; Theorem 2", r"own\_bound"]


def test_a_work_that_a_place_names_is_cited_too():
    text = cited([("own", Reference("ratedist", "smooth form of wang2018, Theorem 1, by trial; order of stich2019"))])
    assert re.findall(r"^@[a-z]+{(\w+)", text, re.M) == ["wang2018", "stich2019", "ratedist"]
    assert re.findall(r"note = {(.*)}", text) == ["Theorem 1", "own"]


def test_an_unknown_key_is_said():
    with pytest.raises(ValueError, match="got 'wong2018': add it, or take one such as wang2018"):
        bibtex(Reference("wong2018"))
