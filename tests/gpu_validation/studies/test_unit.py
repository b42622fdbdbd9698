"""A unit is read from its text as what was written, whatever its words; texts of other kinds are refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation import studies
from gpu_validation.records.storage import read_lines
from gpu_validation.studies import Preset, all_presets
from gpu_validation.studies.study import Study

RECORDS = Path(__file__).parents[3] / "docs" / "data" / "studies"


class Walks(Study):
    """Three kinds of units, one of them without a word before its axes."""

    name = "walks"

    def measure_sweep(self, operator: str, size: int): ...

    def measure_run(self, network: str, step: int, operator: str): ...

    def measure_each(self, m: int, topology: str): ...

    def figures(self, records):
        return []


KINDS = Walks.kinds()
STUDY = Walks()


@given(st.text(min_size=1), st.integers(0, 10**6), st.text(min_size=1))
def test_a_unit_that_can_be_made_is_read_as_it_was_written(word, number, last):
    for kind, values in (("sweep", (word, number)), ("run", (word, number, last)), ("each", (number, word))):
        try:
            text = KINDS[kind].text(*values)
        except ValueError:
            assert ":" in word, "only words that hold colons may be read otherwise"
            continue
        assert KINDS[kind].read(text) == values


def test_the_words_of_operators_keep_their_colons():
    assert KINDS["sweep"].read("sweep:ef(topk:0.01):64") == ("ef(topk:0.01)", 64)
    assert KINDS["run"].read("run:lenet:200:qsgd:16") == ("lenet", 200, "qsgd:16")
    with pytest.raises(ValueError, match="choose other names"):
        KINDS["run"].text("lenet:7", 200, "qsgd:16")
    with pytest.raises(ValueError, match="choose other names"):
        KINDS["sweep"].text("qsgd", -1)


def test_a_text_of_no_kind_is_refused_in_one_sentence():
    assert [STUDY.read(text) for text in ("sweep:a:1", "3:ring")] == [("sweep", ("a", 1)), ("each", (3, "ring"))]
    with pytest.raises(
        ValueError, match=r"must be M:TOPOLOGY, run:NETWORK:STEP:OPERATOR, sweep:OPERATOR:SIZE; got 'walk:1'"
    ):
        STUDY.read("walk:1")


def test_records_of_a_kind_come_with_their_units():
    records = [{"unit": "sweep:a:1", "x": 1}, {"unit": "run:b:2:c"}, {"unit": "sweep:b:1", "x": 2}]
    (first, second) = STUDY.table(records, "sweep")
    assert first == (("a", 1), records[0])
    assert second[0].operator == "b"
    assert STUDY.table(records, "sweep", operator="b", size=1) == [second]
    assert STUDY.table(records, "run", step=3) == []


@pytest.mark.parametrize("name", [name for name, study in all_presets().items() if not isinstance(study, Preset)])
def test_every_unit_of_a_study_and_of_its_committed_records_is_one_record(name):
    study = all_presets()[name]
    kinds = study.kinds()
    committed = RECORDS / f"{name}.jsonl"
    lines = read_lines(committed) if committed.exists() else ()  # a study may be younger than its record
    texts = {*study.units(), *(line["unit"] for line in lines if "unit" in line)}
    for text in texts:
        units = {name: unit for name, kind in kinds.items() if (unit := kind.read(text)) is not None}
        assert [kinds[name].text(*unit) for name, unit in units.items()] == [text], f"{text} is read as {units}"


def test_no_module_of_the_studies_takes_a_unit_apart_itself():
    for path in Path(studies.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert 'split(":"' not in text, path
        assert '["unit"].' not in text, path
