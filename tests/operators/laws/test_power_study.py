"""The study of the stated power in small, and its record."""

import json
from pathlib import Path

import pytest
from scipy.stats import binom

from ... import scripts

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "docs" / "data" / "power.json"
LEAST_RUNS = 850


@pytest.fixture(scope="module")
def study():
    return scripts.load("studies", "power")


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("compressor", "fault"),
    [
        ("keep half", "less a share of x"),
        ("spread errors", "more by a share of x"),
        ("small errors", "first coordinate of the weakest vector"),
        ("rare and small errors", "error larger"),
        ("keep half", "wrong probability"),
    ],
)
def test_least_fault_that_is_stated_is_found(study, compressor, fault):
    """n = 40 runs (20 of each of two honest ones), .98 asked for, quantile .001."""
    records = [study.record(("quick", compressor, fault), honest, wrong=20, seed=5) for honest in range(2)]

    assert sum(r["runs"] for r in records) == 40
    assert sum(r["accused"] for r in records) >= binom.ppf(0.001, 40, study.ASKED)


def test_fault_far_below_the_stated_one_is_not_found(study):
    """Else the statement would be idle: a third of the least bias, n = 20."""
    stated = study.FAULTS["less a share of x"].stated
    study.FAULTS["a third"] = study.Fault(
        "unbiasedness", lambda b: (stated(b)[0] / 3, None), lambda y, x, b, _: y - b * x
    )
    try:
        found = study.record(("quick", "spread errors", "a third"), 0, wrong=20)
    finally:
        del study.FAULTS["a third"]

    assert found["accused"] <= 10


def test_recorded_study_keeps_what_was_stated_in_every_case(study):
    """As many runs as the record says; .98 asked for, quantile .001."""
    record = json.loads(RECORD.read_text())

    assert {(c["budget"], c["compressor"], c["fault"]) for c in record["cases"]} == set(study.cases())
    assert all(c["runs"] >= LEAST_RUNS for c in record["cases"])
    for case in record["cases"]:
        assert case.get("accused", 0) >= binom.ppf(0.001, case["runs"], study.ASKED), case


def test_study_goes_on_where_it_stopped(study, tmp_path, monkeypatch):
    out = tmp_path / "power.jsonl"

    def record(case, honest):
        key = dict(zip(("budget", "compressor", "fault"), case, strict=True))
        return {**key, "honest": honest, "stated": 0.1, "runs": 5, "accused": 5}

    monkeypatch.setattr(study, "record", record)
    for honest in (1, 2):
        (totals,) = study.main("stated", honest=honest, out=str(out))

    assert len(out.read_text().splitlines()) == 2 * len(study.cases())
    assert totals["cases"][0]["runs"] == 10


def test_the_totals_of_larger_faults_are_those_of_the_record(study):
    path = RECORD.with_name("stated_powers.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]

    totals = study.summary_beyond(rows)

    recorded = json.loads(path.with_suffix(".json").read_text())
    assert totals == {name: recorded[name] for name in totals}
    assert {study.case_of(row) for row in rows} == set(study.cases_beyond())


@pytest.mark.parametrize("fault", ["in a drawn direction", "along one coordinate of every vector"])
def test_a_fault_in_a_direction_that_nobody_knows_is_found(study, fault):
    """One run of 1.2 times the stated one."""
    found = study.record_beyond(("quick", "keep half", fault), seed=1)

    assert found["refuted"] is True
