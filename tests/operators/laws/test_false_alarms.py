"""The false-alarm study in small, and its record."""

import json
from pathlib import Path

import pytest
from scipy.stats import binom

from ... import scripts

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "docs" / "data" / "false_alarms.json"
CAPITALS = ROOT / "docs" / "data" / "capitals.json"


@pytest.fixture(scope="module")
def study():
    return scripts.load("studies", "false_alarms")


def alarms(study, runs):
    return [record for record in study.study(range(runs), seed=10**6, processes=1) if record["alarms"]]


def test_no_alarm_in_a_few_runs_over_the_honest_operators(study):
    """n = 4 runs, level 1e-6 each."""
    assert alarms(study, 4) == []


def test_every_subject_meets_every_law_in_turn_and_functions_are_among_them(study):
    """A few records without their draws."""
    laws = {law for turn in study.IN_TURN for law in turn} | set(study.SHARED) | {"exact-marginals"}

    assert laws == set(study.STATISTICAL)
    assert len([name for name in study.honest() if "function" in name or "GRACE" in name]) == 4


def test_a_law_that_wins_too_often_is_seen_long_before_it_accuses(study):
    """Ten runs that each reach a capital of 10; a valid law reaches it in one of ten."""
    runs = [
        {"run": i, "subject": "s", "laws": ["distortion"], "alarms": [], "seconds": 1.0, "commit": "c"}
        | {"log10_capital": {"distortion": 1.0}}
        for i in range(10)
    ]

    seen = study.summary(runs, seed=1)["largest_capitals"]["distortion"][">= 10"]

    assert seen["seen"] > seen["allowed_at_99.9_percent"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_alarm_in_many_runs_over_the_honest_operators(study):
    """n = 400 runs, level 1e-6 each."""
    assert len(alarms(study, 400)) <= binom.ppf(0.999, 400, 1e-6)


def test_recorded_study_has_no_more_alarms_or_large_capitals_than_a_correct_kit_may_have(study):
    record = json.loads(RECORD.read_text())

    assert record["runs"] >= 10_000
    assert record["level_per_run"] == study.BUDGET.false_alarm
    assert sum(record["runs_by_subject"].values()) == record["runs"]
    assert record["alarms"] <= binom.ppf(study.QUANTILE, record["runs"], record["level_per_run"])
    assert "false_alarms.py" in record["command"]
    for capitals in record["largest_capitals"].values():
        for capital, seen in capitals.items():
            assert seen["seen"] <= binom.ppf(study.QUANTILE, seen["runs"], 1 / float(capital.removeprefix(">= ")))


def test_study_goes_on_where_it_stopped(study, tmp_path, monkeypatch):
    out = tmp_path / "runs.jsonl"
    monkeypatch.setattr(
        study,
        "one",
        lambda run, seed: {
            "run": run,
            "subject": "x",
            "laws": [],
            "alarms": [],
            "log10_capital": {},
            "seconds": 0.5,
            "commit": "c",
        },
    )
    for runs in (3, 5):
        (totals,) = study.main(runs=runs, out=str(out))

    assert [json.loads(line)["run"] for line in out.read_text().splitlines()] == [0, 1, 2, 3, 4]
    assert totals["runs"] == 5
    assert json.loads(out.with_suffix(".json").read_text()) == totals


@pytest.fixture(scope="module")
def capitals():
    return scripts.load("studies", "capitals")


def test_bets_of_honest_compressors_seldom_win(capitals):
    """n = 60 checks."""
    laws = capitals.summary([capitals.block(0, size=10, seed=9)])["laws"]

    assert laws["unbiasedness"]["checks"] == 60
    for law in laws.values():
        assert all(c["seen"] <= c["allowed_at_99.9_percent"] for name, c in law.items() if name != "checks")


def test_bets_that_win_twice_too_often_are_noticed(capitals):
    """A capital of 10 in 200 of 1000 checks."""
    record = {"counts": {law: [1000, 500, 200, 0, 0, 0] for law in capitals.LAWS}, "commit": "c"}

    seen = capitals.summary([record])["laws"]["distortion"][">= 10"]

    assert seen["seen"] > seen["allowed_at_99.9_percent"]


def test_recorded_capitals_are_no_larger_than_those_of_valid_laws(capitals):
    record = json.loads(CAPITALS.read_text())

    for law in capitals.LAWS:
        assert record["laws"][law]["checks"] >= 4000
        for name, seen in record["laws"][law].items():
            assert name == "checks" or seen["seen"] <= seen["allowed_at_99.9_percent"]
