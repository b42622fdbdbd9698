"""Rows from records made up by hand, the laws' means, and one small real run."""

from dataclasses import replace

import numpy as np
import pytest

from bounds.runtime import Exponential
from gpu_validation.judging.plotting import figure_html
from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.exit_status import REPORT
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.studies.straggler import PRESET, STEP_S, cases, laws
from ratedist.interfaces.exit_status import OK

pytestmark = pytest.mark.timeout(120)

SMALL = replace(PRESET, cases={2: ("exponential",)}, taus=(1, 2), steps=12, repeats=2, delays=2)


def drawn(case, *, measured, m=4, predicted=0.01):
    """A unit of drawn steps alone, at tau = 4: 64 batches whose mean is ``measured``."""
    scatter = 1e-4 * np.linspace(-1, 1, 64)
    taus = [{"tau": 4, "slowest_s": (measured + scatter).tolist(), "predicted_s": predicted}]
    return {"unit": f"drawn:{m}:{case}", "m": m, "law": case, "taus": taus}


def paced(tau, *, m=4, slower=1.0):
    """Twenty rounds of a machine that is exactly as slow as the model says, or slower by a factor."""
    compute_s, delay_s = Exponential(STEP_S).expected_max(m=m, tau=tau), 0.004
    rounds = slower * (tau * compute_s + delay_s) * (1 + 0.01 * np.linspace(-1, 1, 20))
    record = {
        "workload": "quadratic",
        "operator": "identity",
        "m": m,
        "tau": tau,
        "law": "Constant(seconds=0.008)",
        "mean_step_s": STEP_S,
        "predicted_compute_s": compute_s,
        "round_s": [rounds.tolist()],
        "step_s": [[np.full(20 * tau, compute_s).tolist()]] * m,
        "delay_s": [delay_s, delay_s],
        "scheduling": "normal",
        "method": "by hand",
    }
    return {"unit": f"pace:{m}:exponential", "records": [record]}


def test_laws_have_one_mean_so_that_only_their_spread_differs():
    assert {name: law.mean_s for name, law in laws().items()} == pytest.approx(dict.fromkeys(laws(), STEP_S))


def test_units_name_every_case_and_every_law_is_also_drawn_alone():
    units = PRESET.units()
    assert {unit.split(":")[2] for unit in units if unit.startswith("pace:4")} == set(cases())
    assert {unit.split(":")[2] for unit in units if unit.startswith("drawn:4")} == set(laws())
    assert not any(unit.startswith("drawn") and "logistic" in unit for unit in units)


@pytest.mark.parametrize(
    ("case", "measured", "verdict"),
    [
        ("exponential", 0.01, Verdict.HOLDS),
        ("exponential", 0.0108, Verdict.VIOLATED),
        ("exponential", 0.0092, Verdict.VIOLATED),
        ("autoregressive", 0.01005, Verdict.INCONCLUSIVE),  # steps that hang together have no declared variance
        ("autoregressive", 0.02, Verdict.VIOLATED),
        ("heavy", 0.02, Verdict.OUT_OF_SCOPE),
    ],
)
def test_order_statistics_of_drawn_steps_decide(case, measured, verdict):
    (row,) = PRESET.judge([drawn(case, measured=measured)])
    assert row.verdict is verdict
    assert row.decides
    assert ("variance" in row.reason) == (verdict is Verdict.OUT_OF_SCOPE)


def test_drawn_steps_agree_with_the_laws():
    record = {"unit": "drawn:2:exponential", **SMALL.measure("drawn:2:exponential")}
    assert [at["tau"] for at in record["taus"]] == [1, 2]
    assert [row.verdict for row in SMALL.judge([record])] == [Verdict.HOLDS] * 2


@pytest.mark.parametrize(("slower", "verdict"), [(1.0, Verdict.HOLDS), (1.3, Verdict.INCONCLUSIVE)])
def test_seconds_are_compared_with_the_model_and_decide_nothing(slower, verdict):
    rows = PRESET.judge([paced(4, slower=slower)])
    (row,) = (row for row in rows if row.quantity.startswith("seconds per iteration"))
    assert row.verdict is verdict
    assert not row.decides
    assert row.bound == pytest.approx(Exponential(STEP_S).expected_max(m=4, tau=4) + 0.001)


def test_figures_show_both_tau_and_m():
    figures = PRESET.figures([paced(tau, m=m) for m in (2, 4) for tau in (1, 4)])
    assert len(figures) == 2
    for figure in figures:
        assert "Theory (lines)" in figure.caption
        assert "<svg" in figure_html(figure.draw(), figure.caption)


@pytest.mark.slow
def test_a_small_run_leaves_a_report(tmp_path):
    outcome = carry_out(SMALL, tmp_path)
    assert outcome.exit_code == OK, outcome.message
    assert "drawn steps" in (tmp_path / "straggler" / REPORT).read_text()
