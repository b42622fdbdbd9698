"""The byzantine study: exact laws hold, colluders break the published one, elections follow their criterion."""

import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.studies.byzantine import HORIZON, PRESET, RULES, Byzantine, Negate, Rescale, train, tuned, votes
from gpu_validation.studies.carry_out import carry_out

SMALL = Byzantine(faulty=(0, 11), coordinates=20_000, crowd=(3,), steps=10, seeds=(0, 1), tuning_seeds=(1000,))
UNITS = ("vote:negate:11", "vote:collude:11", "wide:collude", "crowd:3", "election:5:1", "train:majority_vote:negate")


@pytest.fixture(scope="module")
def records():
    return [{"unit": unit, **SMALL.measure(unit)} for unit in UNITS]


def test_every_kind_of_row_is_judged(records):
    rows = SMALL.judge(records)
    assert {str(r.verdict) for r in rows} == {"HOLDS", "INCONCLUSIVE", "OUT_OF_SCOPE"}
    exact = [r for r in rows if "exact law" in r.quantity]
    assert len(exact) == 3
    assert {r.verdict for r in exact} == {Verdict.HOLDS, Verdict.INCONCLUSIVE}  # few trials show no equality


def test_colluders_exceed_the_bound_for_independent_faults(records):
    row = next(r for r in SMALL.judge(records) if "501" in r.operator and "published" in r.quantity)
    assert row.interval[0] > row.bound
    assert "do not collude" in row.reason


def test_false_law_would_be_found(records):
    """The honest law in place of the negated one."""
    wrong = {**records[0], "unit": "vote:rescale:11"}
    assert any(r.verdict is Verdict.VIOLATED for r in SMALL.judge([wrong]))


def test_bits_of_a_vote_are_one_a_coordinate_and_worker():
    assert votes(27, 5, 1.0, 1003, Negate())["bits"] == 27 * 1003


def test_vote_ignores_lengths_and_the_mean_does_not():
    honest, _, _ = train(RULES["majority_vote"], None, 9, 4, 20, 0, rate=0.002)
    rescaled, _, _ = train(RULES["majority_vote"], Rescale(), 9, 4, 20, 0, rate=0.002)
    ruined, _, _ = train(RULES["mean"], Rescale(), 9, 4, 20, 0, rate=0.5)
    assert rescaled == honest
    assert ruined > 3 * honest


def test_tuned_rate_beats_its_neighbours_and_a_diverged_run_is_recorded():
    rule = RULES["mean"]
    rate = tuned(rule, None, 3, 1, 10, [7])
    losses = [train(rule, None, 3, 1, 10, 7, rate * factor)[0] for factor in (10**-0.5, 1, 10**0.5)]
    assert min(losses) == losses[1]
    loss, _, curve = train(rule, Rescale(), 3, 1, 50, 7, 1e30)
    assert loss == HORIZON
    assert len(curve) == 5


def test_units_are_named_once_and_the_report_draws_what_is_there(tmp_path):
    assert len(set(PRESET.units())) == len(PRESET.units())
    assert len(carry_out(SMALL, tmp_path, seconds=0).records) == 1
    assert "<svg" in (tmp_path / "byzantine" / "report.html").read_text()
