"""A whole run in small: files, verdicts, exit codes, and what happens to a false claim."""

import json
import multiprocessing
import sys
from dataclasses import dataclass, replace

import pytest

from bounds.claims import Unbiased
from gpu_validation.cli import main
from gpu_validation.records.exit_status import COMPARISONS, MEASUREMENTS, REPORT, SUMMARY
from gpu_validation.studies import Cells, Preset, all_presets
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.grid.study import typed
from gpu_validation.studies.smoke import PRESET as SMOKE
from gpu_validation.workloads import Quadratic
from operators import Identity, RandomisedSparseDithering, specification
from ratedist.interfaces.exit_status import INTERRUPTED, OK, USAGE, VIOLATED

pytestmark = pytest.mark.timeout(180)


@dataclass(frozen=True)
class Boaster(RandomisedSparseDithering):
    """Claims half of the omega that it reaches."""

    name = "boaster"

    def claim(self, d):
        return Unbiased(super().claim(d).omega / 2)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def small(*operators, **change):
    cells = (Cells(Quadratic(), taus=(4,), steps=16, seeds=(0, 1, 2), step_s=0.0),)
    preset = Preset("small", "for tests", operators, cells, processes=2, probe_d=64, probe_messages=20)
    return replace(preset, **change)


@pytest.mark.thorough
def test_smoke_preset_holds_and_leaves_its_files(smoke_run):
    folder = smoke_run.folder
    assert smoke_run.result.returncode == OK, smoke_run.result.stderr  # no row that decides is violated
    assert {p.name for p in folder.iterdir()} == {MEASUREMENTS, COMPARISONS, REPORT, SUMMARY}
    measured = lines(folder / MEASUREMENTS)
    assert [m["kind"] for m in measured].count("training") == 6
    assert measured[0]["kind"] == "environment"
    compared = lines(folder / COMPARISONS)
    assert {"operator", "quantity", "measured", "bound", "verdict"} <= set(compared[0])
    assert {c["verdict"] for c in compared} <= {"HOLDS", "VIOLATED", "INCONCLUSIVE", "OUT_OF_SCOPE"}
    for operator in SMOKE.operators:
        held = {c["quantity"] for c in compared if c["operator"] == specification(operator) and c["verdict"] == "HOLDS"}
        assert any(q.startswith("codec bits") for q in held)
        assert any(q.startswith("payload bytes") for q in held)
        assert any(q.startswith("distortion") for q in held)


def test_a_false_claim_is_convicted_with_operator_claim_and_measurement(tmp_path):
    titles, preset = [], small(Boaster(omega=1.0))
    outcome = carry_out(preset, tmp_path, progress=titles.append)

    assert titles == preset.units()
    assert outcome.exit_code == VIOLATED
    assert specification(Boaster(omega=1.0)) in outcome.message
    assert "Unbiased claim: distortion, mean measured" in outcome.message
    assert "bound 0.5" in outcome.message
    compared = lines(tmp_path / "small" / COMPARISONS)
    assert len(compared) == len(outcome.comparisons)
    accused = [c for c in compared if c["verdict"] == "VIOLATED"]
    assert {c["operator"] for c in accused} == {specification(Boaster(omega=1.0))}
    (training,) = (record for record in typed(outcome.records) if record.kind == "training")
    fall = f"{training.operator} {training.curve.loss[0]:.3g} to {training.curve.loss[-1]:.3g} (tau = 4)"
    assert preset.losses(outcome.records) == f"loss on quadratic, after the first and the last averaging: {fall}"
    assert preset.losses([{"kind": "training"}]) == ""  # damaged
    assert preset.losses(outcome.records * 7) == ""  # too many for the console, as in quick


@pytest.mark.thorough
def test_the_same_seeds_give_the_same_bits_and_losses(tmp_path):
    preset = small(RandomisedSparseDithering(omega=1.0))
    runs = [typed(carry_out(preset, tmp_path / name).records) for name in ("a", "b")]

    for one, two in zip(*runs, strict=True):
        assert one.compression == two.compression
        if one.kind == "training":
            assert one.gradient_norm2 == two.gradient_norm2
            assert one.final_loss == two.final_loss
            assert one.curve.codec_bits == two.curve.codec_bits
            assert one.curve.loss == two.curve.loss


def test_tau_must_divide_the_steps():
    with pytest.raises(ValueError, match="multiple of every tau; got steps = 10, tau = 4"):
        Cells(Quadratic(), taus=(2, 4), steps=10, seeds=(0,), step_s=0.0)


def test_an_operator_that_raises_ends_the_run_with_what_was_measured(tmp_path):
    @dataclass(frozen=True)
    class Fragile(Identity):
        name = "fragile"

        def _encode(self, x, key):
            if x.size == 10:  # the quadratic's dimension: the probes pass, training fails
                raise RuntimeError("too small for me")
            return super()._encode(x, key)

    outcome = carry_out(small(Fragile()), tmp_path)

    assert outcome.exit_code == 3
    assert "too small for me" in outcome.message
    assert "2 of 3 units were measured and kept" in outcome.message
    assert len(lines(tmp_path / "small" / MEASUREMENTS)) == 1 + 2
    assert (tmp_path / "small" / REPORT).exists()


def test_ctrl_c_while_a_record_is_written_still_ends_the_processes(tmp_path):
    def impatient(title):
        raise KeyboardInterrupt

    outcome = carry_out(small(Identity()), tmp_path, progress=impatient)

    assert outcome.exit_code == INTERRUPTED
    assert "1 of 3 units were measured and kept" in outcome.message
    assert not multiprocessing.active_children()


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The name of a module of the current folder."""
    lines = (
        *("from bounds.claims import StrictlyContractive", "from operators import own"),
        *("def f(x):", "    return x / 2", "f.bits, f.claim = 16, StrictlyContractive(0.25)"),
        *("boast = own(f, claim=StrictlyContractive(0.2))", "silent = abs", ""),
    )
    (tmp_path / "mine_on_the_grid.py").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_on_the_grid", raising=False)  # another test's file
    return "mine_on_the_grid"


def test_a_function_takes_the_place_of_the_operators(mine):
    preset = all_presets()["quick"].with_operators([f"{mine}:f"])
    assert [specification(operator) for operator in preset.operators] == ["identity", f"{mine}:f"]
    assert [cells.workload.name for cells in preset.cells] == ["quadratic", "logistic", "network"]
    assert preset.command == f"quick --operator {mine}:f"
    assert repr(preset.seeded(0)) == repr(preset), "the record does not depend on where the function lies in memory"
    with pytest.raises(ValueError, match="silent does not say how many bits it sends"):
        preset.with_operators([f"{mine}:silent"])


def test_operators_are_for_a_grid(mine, capsys):
    assert main(["run", "wire", "--operator", f"{mine}:f"]) == USAGE
    assert "--operator is for quick and smoke; wire chooses its own" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_function_is_measured_at_the_bits_that_it_states(mine, tmp_path):
    """x / 2 errs by x / 4 squared, for 16 bits; its message carries 32 more, which the transport counts alone."""
    preset = small(Identity()).with_operators([f"{mine}:f", f"{mine}:boast"])
    outcome = carry_out(preset, tmp_path)
    for record in typed(outcome.records):
        if record.operator == "identity":
            continue
        assert (record.compression.bits.low, record.compression.bits.high) == (16 * record.compression.d,) * 2
        assert record.compression.ratio.mean == pytest.approx(0.25, rel=1e-6)
        if record.kind == "training":
            messages = 3 * 4 * 2  # seeds, rounds, ranks
            assert record.traffic.codec_bits == messages * 16 * record.compression.d
            assert 8 * record.traffic.payload_bytes > messages * 48 * record.compression.d
    judged = {(c.operator, c.quantity): str(c.verdict) for c in outcome.comparisons if c.workload == "gaussian"}
    assert judged[f"{mine}:f", "codec bits, every message"] == "HOLDS"
    assert judged[f"{mine}:f", "distortion, worst message"] == "HOLDS"
    assert judged[f"{mine}:boast", "distortion, worst message"] == "VIOLATED"
