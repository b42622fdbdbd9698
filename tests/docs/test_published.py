"""The record of published implementations: complete, every finding confirmed without the kit, and shown on its page."""

import implementations
import pytest
from pages import DOCS
from records import lines_of

from .. import scripts

ROWS = lines_of(implementations.RECORD)
PAGE = DOCS / "results" / "published_implementations.md"
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def study():
    """docs/studies/published.py, which imports no package before it judges."""
    return scripts.load("studies", "published")


def agrees(computed):
    """Whether the number found is the claimed one, up to rounding or within its interval."""
    value, claimed = computed["value"], computed["claimed"]
    low, high = computed["interval"] or (value, value)
    slack = TOLERANCE * max(abs(claimed), abs(value) if abs(value) < 1e30 else 0.0)
    return low - slack <= claimed <= high + slack


def test_at_least_eight_implementations_of_five_projects_are_judged():
    assert len(ROWS) >= 20
    assert len({row["package"] for row in ROWS}) >= 8


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_accusation_has_a_finding_and_a_number_that_contradicts_the_claim(row):
    if row["fail"]:
        assert row["finding"]
        assert any(not agrees(computed) for computed in row["computed"])
    else:
        assert agrees(row["computed"][0])
        assert row["power"] or row["inconclusive"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_record_says_what_was_judged(row):
    assert len(row["sha256"]) == 64
    assert row["version"] or "/" in row["package"]
    assert row["license"]
    assert row["commit"]
    for computed in row["computed"]:
        assert computed["interval"] or computed["method"] != "Monte Carlo"


def test_record_holds_every_subject_of_the_study_in_its_words(study):
    written = {row["name"]: row for row in ROWS}
    assert list(written) == [subject.name for subject in study.SUBJECTS]
    for subject in study.SUBJECTS:
        assert study.words(subject) == {word: written[subject.name][word] for word in study.words(subject)}


def test_page_shows_every_row():
    assert "{{ published_table() }}" in PAGE.read_text()
    lines = implementations.published_table().splitlines()
    assert len(lines) == 2 + len(ROWS)
    for row, line in zip(ROWS, lines[2:], strict=True):
        assert ("accused by" in line) == bool(row["fail"])


def test_study_names_what_is_missing_and_goes_on(study, tmp_path):
    missing = study.Published(
        "x", "no-such-package", "MIT", study.grace.attribute("no_such_module", "x"), *[""] * 2, None, None
    )

    (line,) = study.study([missing], tmp_path / "out.jsonl", seed=1)

    assert line["name"] == "x"
    assert "needs no-such-package" in line["left_out"]


def test_study_continues_an_interrupted_record_and_corrects_its_words(study, tmp_path, monkeypatch):
    subject = study.torch_hooks.FP16
    row = {"name": subject.name, "seed": 1, "judged": subject.judged, "says": "something else", "ok": True}
    study.write([row | {"sha256": study.digest(subject.source())}], tmp_path / "out.jsonl")
    monkeypatch.setattr(study, "row_of", lambda *a: pytest.fail("judged again"))

    assert list(study.study([subject], tmp_path / "out.jsonl", seed=1)) == []

    assert f'"says": "{subject.says}"' in (tmp_path / "out.jsonl").read_text()
