"""Presets and workloads from outside the tree: run by real processes, listed with origin, refused in a sentence."""

import json
import sys

import pytest

from gpu_validation.cli import main
from gpu_validation.workloads import Quadratic, workload

MINE = """
from dataclasses import dataclass

from gpu_validation.studies import Cells, Preset
from gpu_validation.workloads import Quadratic
from operators import ScaledSign, parse


@dataclass(frozen=True)
class Gentle(Quadratic):
    name = "gentle"


@dataclass(frozen=True)
class Louder(ScaledSign):
    name = "louder"


PRESET = Preset(
    name="mine",
    description="an operator and a workload of my own",
    operators=(parse(f"{__name__}:Louder"),),
    cells=(Cells(Gentle(), taus=(4,), steps=8, seeds=(0, 1), step_s=0.0),),
    processes=2,
    probe_d=20,
    probe_messages=4,
    minutes=0.1,
)
SMOKE = Preset(name="smoke", description="takes a name", operators=(), cells=())
PATH = Preset(name="../mine", description="leaves its folder", operators=(), cells=())
NUMBER = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    name = f"mine_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield name
    sys.modules.pop(name, None)


@pytest.mark.timeout(120)
def test_a_preset_of_the_current_folder_runs_in_processes_of_its_own(mine, tmp_path):
    assert main(["run", "--preset", f"{mine}:PRESET", "--out", "out", "--seed", "0"]) == 0

    lines = [json.loads(line) for line in (tmp_path / "out/mine/measurements.jsonl").read_text().splitlines()]
    training = [line for line in lines if line["kind"] == "training"]
    assert [(line["workload"], line["operator"]) for line in training] == [("gentle", f"{mine}:Louder")]


def test_a_workload_of_the_current_folder_is_found(mine):
    found = workload(f"{mine}:Gentle", d=5)
    assert isinstance(found, Quadratic)
    assert (found.name, found.d) == ("gentle", 5)
    with pytest.raises(ValueError, match=r"must be a subclass of gpu_validation.workloads.Workload; got 3: derive it"):
        workload(f"{mine}:NUMBER")
    with pytest.raises(ValueError, match=r"no workload 'nonesuch'; choose one of quadratic, .*, or module:Class"):
        workload("nonesuch")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "{mine}:NUMBER",
            "must be a Preset of gpu_validation.studies or a Study of gpu_validation.studies.study; got 3",
        ),
        ("{mine}:SMOKE", "is called 'smoke', as one of the program's own is: give it another name"),
        ("{mine}:PATH", "is called '../mine', and its results need a folder of its name: give it another"),
        ("nowhere_at_all:PRESET", "no module nowhere_at_all for the preset 'nowhere_at_all:PRESET'"),
        ("nonesuch", "no preset 'nonesuch'; known: "),
    ],
)
def test_what_is_no_preset_is_one_sentence_and_status_2(mine, name, words, capsys):
    assert main(["run", name.format(mine=mine)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


def test_the_list_says_what_installed_packages_offer(mine, tmp_path, capsys):
    info = tmp_path / "pack-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pack\nVersion: 2.0\n")
    groups = {"presets": f"mine = {mine}:PRESET\nlost = nowhere_at_all:P", "workloads": f"gentle = {mine}:Gentle"}
    (info / "entry_points.txt").write_text("".join(f"[ratedist.{g}]\n{text}\n" for g, text in groups.items()))
    sys.path.insert(0, str(tmp_path))

    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "mine             0.1 min  an operator and a workload of my own (from pack 2.0)" in lines
    assert "gentle          workload (from pack 2.0)" in lines
    assert any(
        line.startswith("lost            cannot be used: lost of pack 2.0 cannot be loaded (Mod") for line in lines
    )
    assert workload("gentle").name == "gentle"
