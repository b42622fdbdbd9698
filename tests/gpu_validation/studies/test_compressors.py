"""The compressors study: every method obeys its theorem, a false constant would be found, the report draws."""

import math

import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.compressors import FAMILIES, PROBLEMS, Compressors, operators_by_name
from operators import all_operators, specification

PROBLEM = "logistic, breast cancer"
SMALL = Compressors(steps=20, seeds=tuple(range(24)), problems=(PROBLEM,), epsilon=0.1, runs=2)
UNITS = (
    f"path:{PROBLEM}:dcgd:natural:rounding=stochastic",
    f"path:{PROBLEM}:diana:natural:rounding=stochastic",
    f"path:{PROBLEM}:ef21:topk:fraction=0.01",
    f"path:{PROBLEM}:ef21:scaled_randomk:fraction=0.1",
    f"path:{PROBLEM}:plain:signsgd",
    f"total:{PROBLEM}:qsgd:qsgd:levels=16",
    f"total:{PROBLEM}:randomk:randomk:fraction=0.25",
)


@pytest.fixture(scope="module")
def records():
    return [{"unit": unit, **SMALL.measure(unit)} for unit in UNITS]


def test_units_are_named_once_and_cover_every_operator():
    units = SMALL.units()

    assert len(set(units)) == len(units)
    assert set(UNITS) <= set(units)
    for kind in all_operators().values():
        spec = specification(kind.examples()[0])
        assert any(unit.startswith("path:") and unit.endswith(f":{spec}") for unit in units)
        assert operators_by_name()[spec] == kind.examples()[0]
    assert sum(unit.startswith("total:") for unit in units) == sum(map(len, FAMILIES.values()))


@pytest.mark.thorough
def test_every_method_obeys_its_theorem(records):
    rows = SMALL.judge(records)
    verdicts = {(row.quantity.split(",")[-1].strip(), row.operator): row.verdict for row in rows[:5]}

    assert [row.verdict for row in rows[:3]] == 3 * [Verdict.HOLDS], verdicts
    assert rows[3].verdict is Verdict.INCONCLUSIVE  # 24 runs do not show a mean within a third of its bound
    assert rows[3].measured < rows[3].bound
    assert rows[4].verdict is Verdict.OUT_OF_SCOPE
    assert "makes no claim" in rows[4].reason
    assert all(row.side == "upper" for row in rows)


@pytest.mark.parametrize("unit", UNITS[:4])
def test_a_run_above_its_theorem_would_be_found(records, unit):
    (record,) = (r for r in records if r["unit"] == unit)
    name = "gradient2" if "ef21" in unit else "potential"
    (row,) = SMALL.judge([record])
    factor = 10 * row.bound / min(record[name])

    assert SMALL.judge([{**record, name: [factor * v for v in record[name]]}])[0].verdict is Verdict.VIOLATED


def test_steps_to_the_accuracy_stay_below_the_theorem_and_follow_it(records):
    rows = SMALL.judge(records[5:])
    certain, bits = rows[::2], rows[1::2]

    assert all(row.verdict is Verdict.HOLDS for row in certain)
    assert all(row.verdict is Verdict.OUT_OF_SCOPE for row in bits)
    # the theorem is loose by a factor that hardly depends on the compressor
    assert bits[0].looseness == pytest.approx(bits[1].looseness, rel=0.25)
    assert all(3 < row.looseness < 12 for row in bits)
    late = {**records[5], "arrived": [True, False]}
    assert SMALL.judge([late])[0].verdict is Verdict.VIOLATED


def test_bits_are_those_of_the_messages(records):
    dense = records[0]["bits"]

    # natural compression sends nine bits per coordinate
    assert dense == [9 * 31 * k for k in range(0, 21, 5)]
    assert records[2]["bits"][0] == 32 * 31


def test_suboptimality_falls_and_never_below_zero(records):
    for record in records[:4]:
        gaps = record["gaps"]
        assert gaps[0] == pytest.approx(record["gap"])
        assert all(gap > -1e-12 and math.isfinite(gap) for gap in gaps)
    assert records[1]["gaps"][-1] < 0.2 * records[1]["gap"]


def test_records_name_their_data(records):
    assert {(r["data"], r["synthetic"]) for r in records} == {("breast_cancer", False)}


def test_the_report_draws_what_is_there_and_a_second_call_goes_on(tmp_path):
    first = carry_out(SMALL, tmp_path, seconds=0.2)
    second = carry_out(SMALL, tmp_path, seconds=0.2)

    assert len(second.records) > len(first.records) >= 1
    page = (tmp_path / "compressors" / "report.html").read_text()
    assert "<svg" in page
    assert second.counts["VIOLATED"] == 0


def test_dots_and_totals_are_shown_and_the_curves_are_folded(records):
    figures = SMALL.figures(records)

    assert [bool(figure.folded) for figure in figures] == [False, False, True]
    for figure in figures:
        assert figure.draw().axes
        assert "easured" in figure.caption


@pytest.mark.slow
def test_every_unit_can_be_measured_on_every_problem():
    study = Compressors(steps=2, seeds=(0, 1), every=1, epsilon=0.9, runs=1, problems=tuple(PROBLEMS))
    records = [{"unit": unit, **study.measure(unit)} for unit in study.units()]

    assert not any(row.verdict is Verdict.VIOLATED for row in study.judge(records))
