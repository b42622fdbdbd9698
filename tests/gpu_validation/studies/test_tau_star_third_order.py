"""The bound of third order on a problem of known Q: its record, wrong claims, and the derivations in its module."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.storage import read_lines
from gpu_validation.studies import tau_star_third_order as third_order
from gpu_validation.studies.required import listed, not_measured
from gpu_validation.studies.tau_star import PRESET
from gpu_validation.studies.tau_star_third_order import AWAY, STILL, Bent, around, claimed, measure_third, third_rows

DOCS = Path(__file__).parents[3] / "docs"
RECORD = DOCS / "data/studies/tau-star.jsonl"
LEVEL = 1e-6
JUDGED = 4  # the bound still and away, and two other taus


@pytest.fixture(scope="module")
def recorded():
    return [record for record in read_lines(RECORD) if str(record.get("unit", "")).startswith("third:")]


def verdicts(rows):
    return [row.verdict for row in rows if row.verdict is not Verdict.OUT_OF_SCOPE]


def test_the_record_holds_at_the_claimed_tau_and_worse_ones_are_worse(recorded):
    rows = third_rows(recorded, LEVEL)
    assert verdicts(rows) == [Verdict.HOLDS] * JUDGED
    ratios = {row.tau: row.measured for row in rows if row.theorem == "tau_third_order"}
    assert all(ratio > 1 for ratio in ratios.values()), ratios
    assert set(ratios) == set(around(claimed()).values()) - {claimed()}


def test_the_page_states_the_record(recorded):
    page = (DOCS / "results/time.md").read_text()
    rows = third_rows(recorded, 0.05)
    for row in rows:
        if row.theorem == "tau_third_order":
            low, high = row.interval
            assert f"| {row.tau} | {row.measured:.2f} | {low:.2f} to {high:.2f} |" in page
    below, half = STILL.bound(claimed(), 900), replace(STILL, Q=STILL.Q / 2).bound(claimed(), 900)
    stated = (
        f"the measured value is {rows[0].measured / below:.2f} of the bound, and {rows[0].measured / half:.2f} times"
    )
    assert stated in " ".join(page.split())


def test_a_bound_of_half_of_q_is_violated(recorded, monkeypatch):
    monkeypatch.setattr(third_order, "STILL", replace(STILL, Q=STILL.Q / 2))
    assert verdicts(third_rows(recorded, LEVEL))[0] is Verdict.VIOLATED


def test_a_record_of_half_of_q_claims_a_tau_that_was_not_measured(recorded, monkeypatch):
    monkeypatch.setattr(third_order, "AWAY", replace(AWAY, Q=AWAY.Q / 2))
    wrong = claimed()
    assert wrong > 1.4 * recorded[0]["claimed"]
    rows = PRESET.judge([{**record, "claimed": wrong} for record in recorded])
    missing = not_measured(listed("tau-star"), rows)
    assert any("third-order bound" in row.quantity for row in missing)
    assert len(third_rows([{**record, "claimed": wrong} for record in recorded], LEVEL)) == 1


def test_values_that_are_wrong_are_seen(recorded):
    """A bound that is exceeded, and another tau that is better than the claimed one."""
    above = [{**record, "still": [4 * value for value in record["still"]]} for record in recorded]
    assert verdicts(third_rows(above, LEVEL))[0] is Verdict.VIOLATED
    tau, other = (str(around(recorded[0]["claimed"])[factor]) for factor in (1, 4))
    better = [{**r, "away": {**r["away"], other: [value / 4 for value in r["away"][tau]]}} for r in recorded]
    assert verdicts(third_rows(better, LEVEL))[-1] is Verdict.VIOLATED


def test_the_hessian_has_the_stated_constants():
    bent = Bent()
    x = np.linspace(-1, 1, 4001)
    middle = (x[1:] + x[:-1]) / 2
    hessian = np.diff(bent.gradient(x)) / np.diff(x)
    assert hessian.min() == pytest.approx(bent.h - bent.w)
    assert hessian.max() == pytest.approx(bent.h + bent.w)
    assert np.abs(np.diff(hessian) / np.diff(middle)).max() == pytest.approx(bent.Q, rel=1e-6)


def test_the_variance_of_a_value_is_below_its_bound():
    small = Bent(start=0.05, m=64)
    values = [small.value(4, 80, seed) for seed in range(60)]
    assert np.var(values) < small.variance(4, 80)
    assert np.mean(values) < small.bound(4, 80)


def test_a_unit_is_measured_at_every_tau(monkeypatch):
    monkeypatch.setattr(third_order, "STILL", replace(STILL, m=8))
    monkeypatch.setattr(third_order, "AWAY", replace(AWAY, m=8))
    monkeypatch.setattr(third_order, "SEEDS", 1)
    monkeypatch.setattr(third_order, "TIME_STEPS", 150)
    monkeypatch.setattr(third_order, "STILL_STEPS", 90)
    measured = measure_third(0)
    assert set(measured["away"]) == {str(tau) for tau in around(measured["claimed"]).values()}
    assert PRESET.units().count("third:bent:0") == 1
    assert third_rows([], LEVEL) == []
