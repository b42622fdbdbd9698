"""AdaComm on images: pieces make the run that is not cut, checkpoints come and go, captions say what is synthetic."""

from dataclasses import replace

import numpy as np
import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.processes.launch import RunFailed
from gpu_validation.records.exit_status import MEASUREMENTS
from gpu_validation.studies.adacomm_cifar import ARCHIVE, AdaCommCifar, Track, preset, tracks
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.workloads import Cifar, ResNet20, SmallNetwork, SyntheticImages
from ratedist.interfaces.exit_status import FAILED, OK, UNFINISHED

pytestmark = pytest.mark.timeout(120)

QUICK = Track(SmallNetwork(batch=4, eta=0.05), 4.0, 120.0, ((8, 0.1),), interval=30.0, pieces=3)
STUDY = AdaCommCifar(
    (("network", QUICK),), m=2, taus=(1, 3), tau_0=4, rates=("constant", "decayed"), points=3, seeds=(10,)
)
NORMALISED = Track(ResNet20(source=SyntheticImages(samples=20, held_out=10), batch=2), 2.0, 10.0, (), 5.0, pieces=2)


def measured(study, folder):
    """The records of all units, each measured by a study that knows those before it alone."""
    records = []
    for unit in study.units():
        records.append({"unit": unit, **study.with_records(records, folder).measure(unit)})
    return records


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    found = carry_out(STUDY, tmp_path_factory.mktemp("pieces"))
    assert found.exit_code == OK, found.message
    return found


@pytest.mark.parametrize(
    "track", [QUICK, pytest.param(NORMALISED, marks=pytest.mark.slow)], ids=["network", "resnet20 with BatchNorm"]
)
def test_pieces_make_the_run_that_is_not_cut(tmp_path, track):
    study = AdaCommCifar((("it", track),), m=2, taus=(1,), tau_0=3, points=track.pieces)
    cut = study.whole(measured(study, tmp_path / "cut"))[0][1]["races"]
    uncut = replace(study, tracks=(("it", replace(track, pieces=1)),))
    whole = uncut.whole(measured(uncut, tmp_path / "whole"))[0][1]["races"]

    for one, other in zip(cut, whole, strict=True):
        for name in ("seconds", "step", "taus", "losses", "accuracies"):
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)
        assert sum(tau * n for tau, n in one["rounds"]) == sum(tau * n for tau, n in other["rounds"])


@pytest.mark.thorough
def test_simulated_time_is_that_of_the_model(outcome):
    races = {race["name"]: race for race in STUDY.whole(outcome.records)[0][1]["races"]}

    assert list(races) == ["tau = 1", "tau = 3", "gamma"]
    steps = [race["step"][-1] for race in races.values()]
    assert steps[0] == pytest.approx(120 / (4 + 1.1), rel=0.1)  # E max of two steps is .8 + .2 * 1.5 = 1.1
    assert steps[1] == pytest.approx(120 / (4 / 3 + 1.05), rel=0.1)
    assert races["gamma"]["taus"][0] == races["gamma"]["rounds"][0][0] == 4


def test_only_the_last_two_checkpoints_of_a_run_are_kept(outcome):
    folders = sorted((outcome.folder / "checkpoints").iterdir())

    assert len(folders) == 2 * 3  # rates, schedules
    for folder in folders:
        assert sorted(path.name for path in folder.iterdir()) == ["1.pt", "2.pt"]


def test_rows_and_captions_say_what_was_simulated_and_what_was_synthetic(outcome):
    rows, drawn = STUDY.judge(outcome.records), STUDY.figures(outcome.records)

    assert {row.verdict for row in rows} == {Verdict.OUT_OF_SCOPE}
    assert all(row.reason for row in rows)
    assert any(row.quantity == "seconds of a worker's step" and "CPU" in row.workload for row in rows)
    assert len(drawn) == 4
    for figure in drawn:
        figure.draw()
        assert "CIFAR from an archive" in figure.caption  # the digits of this test are not synthetic
        assert "time by the runtime model" in figure.caption
    made_up = [{**record, "images": "Synthetic images of CIFAR's form"} for record in outcome.records]
    assert all("Synthetic images" in figure.caption for figure in STUDY.figures(made_up))


def test_records_say_whether_images_are_synthetic(tmp_path):
    study = AdaCommCifar((("resnet20", replace(NORMALISED, pieces=1, budget=3.0)),), m=2, taus=(1,), points=1)

    record = study.with_records([], tmp_path).measure("run:resnet20:constant:10:tau = 1:0")

    assert record["images"].startswith("Synthetic")
    assert record["data"]["synthetic"]
    assert record["data"]["shape"] == (3, 32, 32)


def test_a_study_in_calls_of_any_length_and_without_its_checkpoint(tmp_path):
    study = replace(STUDY, rates=("constant",))
    first = carry_out(study, tmp_path, seconds=0)
    assert (first.exit_code, len(first.records), first.comparisons[0].n) == (UNFINISHED, 1, 1)
    assert study.figures(first.records) == []
    (path,) = (tmp_path / "adacomm-cifar" / "checkpoints").rglob("*.pt")
    kept = path.read_bytes()
    path.unlink()
    lost = carry_out(study, tmp_path)
    assert lost.exit_code == FAILED
    assert "is missing" in lost.message
    path.write_bytes(kept)
    assert carry_out(study, tmp_path).exit_code == OK
    assert len((tmp_path / "adacomm-cifar" / MEASUREMENTS).read_text().splitlines()) >= len(study.units())


def test_the_published_networks_are_raced_on_a_gpu_and_a_small_one_without(monkeypatch):
    monkeypatch.delenv(ARCHIVE, raising=False)
    small, large = preset(gpu=False), preset(gpu=True)

    assert [name for name, _ in small.tracks] == ["resnet20"]
    assert [name for name, _ in large.tracks] == ["vgg16", "resnet50"]
    assert [(track.workload.batch, track.workload.precision) for _, track in large.tracks] == [(128, "bfloat16")] * 2
    assert (large.m, large.device, small.device) == (4, "cuda", "cpu")
    assert all(isinstance(track.workload.source, SyntheticImages) for _, track in (*small.tracks, *large.tracks))
    for study in (small, large):
        assert len(set(study.units())) == len(study.units())
        assert all(study.points % track.pieces == 0 for _, track in study.tracks)


def test_an_archive_is_taken_from_the_environment(monkeypatch):
    monkeypatch.setenv(ARCHIVE, "cifar-10-binary.tar.gz")

    assert dict(tracks(gpu=False))["resnet20"].workload.source == Cifar("cifar-10-binary.tar.gz")
    assert "cifar-10-binary" in repr(preset(gpu=False))


def test_a_missing_checkpoint_is_named(tmp_path):
    with pytest.raises(RunFailed, match=r"0\.pt is missing"):
        STUDY.with_records([], tmp_path).measure("run:network:constant:10:tau = 1:1")
    assert "folder" not in repr(STUDY.with_records([], tmp_path))
