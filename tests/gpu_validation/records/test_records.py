import json
from pathlib import Path

import pytest
import torch

from bounds.claims import Contractive, NoClaim, StrictlyContractive, Unbiased
from gpu_validation.judging.verdict import Comparison, Verdict
from gpu_validation.records.compression import Declared, Sample
from gpu_validation.records.environment import Environment, environment, source_digest
from gpu_validation.records.storage import JsonLines, plain, read_lines, write_atomically
from operators import Size

ROOT = Path(__file__).parents[3]


def test_sample_by_hand():
    atoms = ((1.0, 1.0, 1), (3.0, 3.0, 1))
    assert Sample.of([1.0, 3.0]) == Sample(n=2, mean=2.0, sd=2**0.5, low=1.0, high=3.0, atoms=atoms)
    assert Sample.of([5.0]).sd == 0.0


@pytest.mark.parametrize(
    ("claim", "kind", "constant"),
    [
        (Unbiased(0.5), "Unbiased", 0.5),
        (Contractive(0.5), "Contractive", 0.5),
        (StrictlyContractive(0.25), "StrictlyContractive", 0.25),
        (NoClaim("no scale"), "NoClaim", None),
    ],
)
def test_declared_keeps_the_class_and_the_constant_of_a_claim(claim, kind, constant):
    declared = Declared.of(claim, Size(expected_upper=3.5))

    assert (declared.kind, declared.constant, declared.expected_upper_bits) == (kind, constant, 3.5)


def test_every_line_is_readable_while_the_file_is_still_open(tmp_path):
    path = tmp_path / "lines.jsonl"
    with JsonLines(path) as file:
        file.write(Sample.of([1.0, 2.0]))
        assert [line["mean"] for line in read_lines(path)] == [1.5]
        with path.open("a") as other:
            other.write('{"cut off by a cra')
        assert len(list(read_lines(path))) == 1


def test_infinities_survive_json():
    assert json.loads(json.dumps(plain({"a": float("inf"), "b": [float("nan")]}), allow_nan=False)) == {
        "a": "inf",
        "b": ["nan"],
    }


def test_writing_outside_the_with_statement_is_refused(tmp_path):
    with pytest.raises(ValueError, match="with statement"):
        JsonLines(tmp_path / "x").write(1)


def test_atomic_write_leaves_only_the_file(tmp_path):
    path = tmp_path / "page.html"
    write_atomically(path, "old")
    write_atomically(path, "new")

    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_script_records_what_its_numbers_depend_on():
    head = environment("scipy")
    assert list(head) == [
        *("command", "commit", "python", "numpy", "torch", "scipy", "machine", "cpus", "load", "threads")
    ]
    assert head["threads"] == torch.get_num_threads()
    assert json.loads(json.dumps(head)) == head


def test_scripts_of_the_documentation_ask_one_function_for_it():
    folders = [ROOT / "docs" / name for name in ("benchmarks", "studies", "figures")]
    scripts = {path.name: path.read_text() for folder in folders for path in folder.rglob("*.py")}
    assert {"all.py", "hook.py", "power.py", "grace.py", "common.py", "looseness.py"} <= scripts.keys()
    assert [name for name, text in scripts.items() if "rev-parse" in text] == ["all.py"]  # it asks what is done
    assert [name for name, text in scripts.items() if "python_version" in text] == []


def test_environment_names_versions_and_device():
    environment = Environment.here("quick", 4, "gloo")

    assert {"python", "torch", "ratedist"} <= set(environment.versions)
    assert environment.commit
    assert environment.code == source_digest()
    assert "cores" in environment.device


def test_looseness_is_at_least_one_for_a_bound_that_holds():
    def row(**change):
        values = {"operator": "a", "quantity": "q", "measured": 2.0, "interval": (2.0, 2.0), "verdict": Verdict.HOLDS}
        return Comparison(**{**values, **change})

    assert row(bound=6.0, side="upper").looseness == 3.0
    assert row(bound=0.5, side="lower").looseness == 4.0
    assert row(bound=None, side="lower").looseness is None
    assert row(bound=0.0, side="upper", measured=0.0).looseness is None
