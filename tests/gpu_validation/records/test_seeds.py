"""One number decides everything random: the same one gives the same records, another one others."""

from dataclasses import replace

import pytest

from gpu_validation.cli import main
from gpu_validation.records import seeds
from gpu_validation.records.exit_status import MEASUREMENTS, REPORT
from gpu_validation.records.storage import read_lines
from gpu_validation.studies import Preset, all_presets
from gpu_validation.studies.byzantine import PRESET as BYZANTINE
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.grid.study import typed
from gpu_validation.studies.gtopk import PRESET as GTOPK
from gpu_validation.studies.record_file import StaleResultsError, stored_seed
from gpu_validation.studies.smoke import PRESET as SMOKE
from gpu_validation.studies.study import Study
from operators import QSGD
from ratedist.interfaces.exit_status import UNFINISHED, USAGE

LIGHT = replace(GTOPK, seeds=(0, 1), d=200, rounds=3)


def named(preset):
    """Every seed that an experiment names."""
    if isinstance(preset, Preset):
        return [seed for cells in preset.cells for seed in cells.seeds]
    return [seed for name in ("seeds", "tuning") for seed in getattr(preset, name, ())]


def test_the_recorded_seed_leaves_every_experiment_as_it_is():
    for preset in all_presets().values():
        assert preset.seeded(0) == preset
        assert preset.seed == 0


def test_another_seed_changes_every_stream_of_every_experiment_and_the_same_one_none():
    for preset in all_presets().values():
        one, two = preset.seeded(7), preset.seeded(8)
        assert one == preset.seeded(7) != two
        assert len(set(named(preset)) | set(named(one)) | set(named(two))) == 3 * len(set(named(preset)))


@pytest.mark.parametrize("seed", [-1, 1 << 32])
def test_a_seed_out_of_range_is_refused(seed):
    for preset in (SMOKE, GTOPK):
        with pytest.raises(ValueError, match=rf"seed must satisfy 0 <= seed < 2\^32; got {seed}"):
            preset.seeded(seed)


def test_a_drawn_seed_is_never_the_recorded_one_and_hardly_ever_the_same(monkeypatch):
    assert len({seeds.draw() for _ in range(20)}) == 20
    monkeypatch.setattr("secrets.randbelow", lambda n: 0)
    assert seeds.draw() == 1


@pytest.mark.thorough
@pytest.mark.timeout(120)
def test_two_runs_of_one_seed_have_equal_records_and_another_seed_differs(tmp_path):
    preset = replace(
        SMOKE,
        operators=(QSGD(levels=16),),
        cells=tuple(replace(cells, taus=(4,), steps=8, step_s=0.0) for cells in SMOKE.cells),
    )
    runs = [typed(carry_out(preset.seeded(seed), tmp_path / str(i)).records) for i, seed in enumerate((5, 5, 6))]
    for same, also, other in zip(*runs, strict=True):
        assert same.compression == also.compression
        assert same.compression.ratio != other.compression.ratio or same.compression.source == "flat"
        if same.kind == "training":
            assert same.gradient_norm2 == also.gradient_norm2 != other.gradient_norm2
            assert same.final_loss == also.final_loss != other.final_loss


@pytest.mark.parametrize(("study", "unit"), [(LIGHT, "tree:conserving:4"), (BYZANTINE, "crowd:7")])
def test_units_that_name_no_seed_follow_the_run_s(study, unit):
    assert study.seeded(5).measure(unit) == study.seeded(5).measure(unit)
    assert study.seeded(5).measure(unit) != study.seeded(6).measure(unit)


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """The command line on a light study; returns (status, what it printed, what it complained of)."""
    monkeypatch.setattr("gpu_validation.studies.all_presets", lambda: {LIGHT.name: LIGHT})

    def called(*options):
        status = main(["run", LIGHT.name, "--out", str(tmp_path), "--minutes", "1e-9", *options])
        return status, *capsys.readouterr()

    return called


def test_a_run_draws_a_seed_prints_and_keeps_it_and_goes_on_with_it(run, tmp_path, monkeypatch):
    folder = tmp_path / LIGHT.name
    monkeypatch.setattr(seeds, "draw", lambda: 12345)
    status, said, _ = run()
    again = "ratedist run gtopk --seed 12345"
    assert status == UNFINISHED
    assert f"seed 12345; again: {again}" in said
    assert stored_seed(folder) == 12345
    assert again in (folder / REPORT).read_text()

    monkeypatch.setattr(seeds, "draw", lambda: 99999)
    status, said, _ = run()
    assert "seed 12345" in said
    records = list(read_lines(folder / MEASUREMENTS))
    assert {line["seed"] for line in records if "study" in line} == {12345}
    assert sum("unit" in line for line in records) == 2


def test_results_of_another_seed_are_not_gone_on_with(run, tmp_path):
    assert run("--seed", "3")[0] == UNFINISHED
    status, _, words = run("--seed", "4")

    assert status == USAGE
    assert "holds results of seed 3, and this is seed 4: choose another --out, or give no seed" in words
    with pytest.raises(StaleResultsError):
        carry_out(LIGHT, tmp_path)


def test_a_told_seed_out_of_range_is_one_line(run):
    status, _, words = run("--seed", "-1")
    assert status == USAGE
    assert words == "gpu-validation: --seed must satisfy 0 <= seed < 2^32; got -1\n"


def test_studies_keep_the_seed_when_they_are_informed(tmp_path):
    for preset in all_presets().values():
        if isinstance(preset, Study):
            assert preset.seeded(7).with_records([], tmp_path).seed == 7
