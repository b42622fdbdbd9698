"""A unit is read from its text as what was written, whatever its words; texts of other kinds are refused."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_validation import studies
from gpu_validation.records.storage import read_lines
from gpu_validation.studies import Preset, all_presets
from gpu_validation.studies.unit import Unit, of_kind, read_unit

RECORDS = Path(__file__).parents[3] / "docs" / "data" / "studies"


@dataclass(frozen=True)
class Sweep(Unit, kind="sweep"):
    operator: str
    size: int


@dataclass(frozen=True)
class Run(Unit, kind="run"):
    network: str
    step: int
    operator: str


@dataclass(frozen=True)
class Bare(Unit):
    m: int
    topology: str


KINDS = (Sweep, Run, Bare)


def kinds_of(study):
    """The kinds of units that the module of a study has."""
    module = import_module(type(study).__module__)
    own = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
    return getattr(module, "KINDS", tuple(kind for kind in own if issubclass(kind, Unit)))


@given(st.text(min_size=1), st.integers(0, 10**6), st.text(min_size=1))
def test_a_unit_that_can_be_made_is_read_as_it_was_written(word, number, last):
    for kind, values in ((Sweep, (word, number)), (Run, (word, number, last)), (Bare, (number, word))):
        try:
            unit = kind(*values)
        except ValueError:
            assert ":" in word, "only words that hold colons may be read otherwise"
            continue
        assert kind.read(str(unit)) == unit


def test_the_words_of_operators_keep_their_colons():
    assert Sweep.read("sweep:ef(topk:0.01):64") == Sweep("ef(topk:0.01)", 64)
    assert Run.read("run:lenet:200:qsgd:16") == Run("lenet", 200, "qsgd:16")
    with pytest.raises(ValueError, match="choose other names"):
        Run("lenet:7", 200, "qsgd:16")
    with pytest.raises(ValueError, match="choose other names"):
        Sweep("qsgd", -1)


def test_a_text_of_no_kind_is_refused_in_one_sentence():
    assert [read_unit(text, KINDS) for text in ("sweep:a:1", "3:ring")] == [Sweep("a", 1), Bare(3, "ring")]
    with pytest.raises(ValueError, match=r"must be sweep:OPERATOR:SIZE, run:NETWORK:STEP:OPERATOR; got 'walk:1'"):
        read_unit("walk:1", (Sweep, Run))


def test_records_of_a_kind_come_with_their_units():
    records = [{"unit": "sweep:a:1", "x": 1}, {"unit": "run:b:2:c"}]
    assert of_kind(records, Sweep) == [(Sweep("a", 1), records[0])]


@pytest.mark.parametrize("name", [name for name, study in all_presets().items() if not isinstance(study, Preset)])
def test_every_unit_of_a_study_and_of_its_committed_records_is_one_record(name):
    study = all_presets()[name]
    kinds = kinds_of(study)
    committed = RECORDS / f"{name}.jsonl"
    lines = read_lines(committed) if committed.exists() else ()  # a study may be younger than its record
    texts = {*study.units(), *(line["unit"] for line in lines if "unit" in line)}
    for text in texts:
        units = [unit for kind in kinds if (unit := kind.read(text)) is not None]
        assert [str(unit) for unit in units] == [text], f"{text} is read as {units}"


def test_no_module_of_the_studies_takes_a_unit_apart_itself():
    for path in Path(studies.__file__).parent.rglob("*.py"):
        text = path.read_text()
        assert 'split(":"' not in text, path
        assert '["unit"].' not in text, path
