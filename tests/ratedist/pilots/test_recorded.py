"""The pilots that ratedist carries: whole, read by name, and never a source of seconds of the user's machine."""

import json
from dataclasses import replace

import pytest

import ratedist as rd
from gpu_validation.piloting.recorded import RECIPES
from ratedist.interfaces.cli import main
from ratedist.pilots.pilot import Pilot, recorded_pilot, recorded_pilots

NAMES = ("resnet20", "transformer")
CLUSTER = {"workers": 64, "bandwidth_bit_per_s": 1e11, "latency_s": 1e-5, "compute": "constant"}


def cluster(**changes):
    return rd.Cluster(**{**CLUSTER, "step_s": 0.05, **changes})


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_pilot_is_whole_and_of_its_recipe(name):
    pilot, recipe = rd.Pilot.read(name), RECIPES[name]
    assert Pilot.from_dict(json.loads(json.dumps(pilot.to_dict()))) == pilot
    assert pilot.recorded == recipe.about
    assert pilot.d == sum(parameter.numel() for parameter in recipe.workload.model().parameters())
    assert pilot.passes <= 0.1 * pilot.steps == 0.1 * recipe.steps
    assert pilot.rounds.workers == 4


def test_the_recipes_are_those_of_the_files():
    assert tuple(recorded_pilots()) == tuple(sorted(RECIPES)) == NAMES


def test_a_recipe_is_recorded_anew():
    short = replace(RECIPES["transformer"], before=1).record(moments=2, rounds=0, taus=(1,))
    long = rd.Pilot.read("transformer")
    assert (short.d, short.recorded) == (long.d, long.recorded)
    assert [trial.operator for trial in short.operators] == [trial.operator for trial in long.operators]


@pytest.mark.parametrize("name", NAMES)
def test_steps_are_those_of_the_cluster(name):
    slow = [rd.predict(name, cluster(step_s=step_s), tau=4).seconds_per_step.value for step_s in (1.0, 2.0)]
    assert slow[1] - slow[0] == pytest.approx(1.0)
    assert main(["predict", name, "--workers", "4", "--step-s", "1"]) == 0


def test_steps_beside_a_pilot_of_a_file_are_refused(tmp_path, capsys):
    stated = rd.Pilot.read("transformer").to_dict() | {"recorded": ""}
    (tmp_path / "own.json").write_text(json.dumps(stated))
    assert main(["predict", str(tmp_path / "own.json"), "--workers", "4", "--step-s", "1"]) == 2
    assert "step_s comes from the pilot" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_says_whose_gradients_they_are(name):
    words = RECIPES[name].about
    plan, prediction = rd.plan(pilot=name, cluster=cluster()).answer(), rd.predict(name, cluster(), tau=2).answer()
    assert words in plan.facts["pilot"]
    assert any(words in assumed for assumed in prediction.assumed)
    assert plan.left_out == prediction.left_out == "changes of the learning rate after the pilot"


def test_a_model_of_another_size_sends_as_many_bits_a_parameter():
    pilot = rd.Pilot.read("transformer")
    larger = rd.plan(pilot=pilot, d="1.3B", cluster=cluster())
    assert larger.ranking == rd.plan(pilot=replace(pilot, d=1_300_000_000), cluster=cluster()).ranking
    alone = rd.predict("transformer", cluster(), tau=4, d="1.3B")
    assert alone.to_dict() == replace(pilot, d=1_300_000_000).predict(cluster(), tau=4).to_dict()
    for call in (rd.plan, rd.predict):
        with pytest.raises(ValueError, match="d beside a pilot of your own must be the pilot"):
            call(pilot=replace(pilot, recorded=""), d=10, cluster=cluster())


def test_a_plan_says_what_is_best_if_all_steps_take_equally_long_unless_their_law_was_stated():
    """With random steps a worker waits, and long rounds gain more than they do with equal ones."""
    asked = {"workers": 64, "bandwidth_bit_per_s": 1e11, "step_s": 0.5}
    random = rd.plan(pilot="transformer", d="1.3B", cluster=rd.Cluster(**asked))
    equal = rd.plan(pilot="transformer", d="1.3B", cluster=rd.Cluster(**asked, compute="constant"))
    assert random.best != equal.best
    words = random.answer().facts["equal steps"]
    assert equal.best.name in words
    assert f"time {equal.best.ratio:.3g}" in words
    assert equal.answer().facts["equal steps"] == ""
    stated = rd.plan(pilot="transformer", d="1.3B", cluster=rd.Cluster(**asked, compute="exponential"))
    assert stated.answer().facts["equal steps"] == ""


def test_another_name_is_refused_and_a_path_is_no_name(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere.json is no file: .* or resnet20 or transformer"):
        rd.Pilot.read("nowhere.json")
    (tmp_path / "own.json").write_text(json.dumps(rd.Pilot.read("transformer").to_dict()))
    with pytest.raises(ValueError, match="pilot must be a record or one of resnet20, transformer"):
        recorded_pilot(str(tmp_path / "own.json"))
