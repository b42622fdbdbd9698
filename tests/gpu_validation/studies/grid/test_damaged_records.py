"""A record that contradicts itself gives rows that say so: the judge of a run raises for none."""

import math
from dataclasses import replace

import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.compression import Compression, Declared, Sample
from gpu_validation.records.storage import plain
from gpu_validation.studies.grid.records import Probe
from gpu_validation.studies.grid.rows import compare
from gpu_validation.studies.quick import PRESET
from gpu_validation.telemetry.account import Account
from gpu_validation.telemetry.claims import judged
from operators import Identity
from tests.gpu_validation.mutations.bench import Bench
from tests.gpu_validation.telemetry.test_journal import HEADER, ROUNDS, STATE

NO_NUMBERS = (0.0, 1.0, 1.5, -1.0, math.inf, -math.inf, math.nan, 1e-300)
BENCH = Bench(steps=8, seeds=3)


@pytest.fixture(scope="module")
def cells():
    return [BENCH.trained(BENCH.cell(Identity(), tau)) for tau in (1, 4)]


def unmeasured(rows):
    return [row for row in rows if row.unmeasured]


def message(kind, constant):
    ratio = Sample.of([0.5, 0.75, 1.0])
    declared = Declared(kind, constant, None, 30.0, 40.0)
    return Compression("gaussian", 10, declared, Sample.of([20.0, 30.0, 25.0]), ratio, ratio)


@pytest.mark.parametrize("kind", ["Unbiased", "Contractive", "StrictlyContractive"])
@pytest.mark.parametrize("constant", NO_NUMBERS)
def test_a_constant_outside_its_range_gives_rows_in_a_study_and_in_a_report(kind, constant):
    study = compare([Probe("mine", message(kind, constant))], false_alarm=1e-4)
    state = replace(STATE, along=Sample.of([0.5, 1.0]), coordinate=STATE.ratio)
    header = replace(HEADER, declared=Declared(kind, constant, None, 30.5, math.inf))
    for rows in (study, judged([Account(header, state, tuple(ROUNDS))], false_alarm=1e-4)):
        assert rows
        assert not [row for row in rows if math.isnan(row.bound or 0.0) and row.verdict is not Verdict.OUT_OF_SCOPE]
    if math.isnan(constant):
        assert [row for row in unmeasured(study) if row.quantity.startswith("distortion")]


def test_a_contraction_with_alpha_of_one_is_judged_and_limits_no_bits():
    rows = {row.quantity: row for row in compare([Probe("mine", message("Contractive", 1.0))], false_alarm=1e-4)}
    assert rows["distortion, mean"].bound == 1.0
    limit = rows["codec bits against the limit"]
    assert limit.verdict is not Verdict.VIOLATED
    assert limit.accuses_at == 0.0


@pytest.mark.parametrize("tau", [3, 5, 7, 9, 0, -4, math.nan, math.inf, None])
def test_a_wrong_period_costs_the_exact_laws_of_its_cell_only(cells, tau):
    honest = compare(cells, false_alarm=1e-4)
    assert not unmeasured(honest)
    rows = compare([cells[0], replace(cells[1], tau=tau)], false_alarm=1e-4)
    assert "exact laws" in {row.quantity for row in unmeasured(rows)}
    law = "squared gradient norm, average over steps"
    first, before = ([(r.measured, r.verdict) for r in of if (r.tau, r.quantity) == (1, law)] for of in (rows, honest))
    assert first == before != []


@pytest.mark.parametrize(
    "change",
    [
        {"steps": 0},
        {"steps": -8},
        {"steps": math.inf},
        {"processes": 0},
        {"gradient_norm2": ()},
        {"gradient_norm2": (math.nan,) * 3},
        {"final_loss": ()},
        {"parameters": {}},
        {"parameters": {"d": math.nan}},
    ],
    ids=str,
)
def test_a_cell_without_its_numbers_is_not_measured_and_never_holds(cells, change):
    rows = compare([cells[0], replace(cells[1], **change)], false_alarm=1e-4)
    assert unmeasured(rows)
    for row in rows:
        assert row.verdict is not Verdict.HOLDS or not any(map(math.isnan, (row.measured, *row.interval)))


@pytest.mark.parametrize("field", ["operator", "tau", "compression", "kind"])
def test_a_record_without_a_field_is_one_row_beside_the_others(cells, field):
    records = [plain(cell) for cell in cells]
    del records[1][field]
    (row,) = unmeasured(PRESET.judge(records))
    assert row.quantity == "all of a record"
    assert len(PRESET.judge(records)) == 1 + len(compare(cells[:1], false_alarm=1e-4))


def test_lost_numbers_of_messages_are_no_exception():
    whole = message("Unbiased", 1.0)
    for name in ("low", "mean", "high", "n", "atoms"):
        for value in ((), None) if name == "atoms" else (-1.0, math.nan, None):
            damaged = replace(whole, bits=replace(whole.bits, **{name: value}))
            assert compare([Probe("mine", damaged)], false_alarm=1e-4)
