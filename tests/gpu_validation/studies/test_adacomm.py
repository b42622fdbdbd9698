"""The adacomm study: tuning feeds the reported runs, ratios and verdicts on records made by hand, a tiny real run."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bounds.runtime import Constant, ShiftedExponential
from bounds.schedules import AdaComm
from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.exit_status import REPORT
from gpu_validation.records.settings import settings
from gpu_validation.studies.adacomm import PRESET, AdaCommStudy, Course, Proof, predicted_seconds, times_to_target
from gpu_validation.studies.carry_out import carry_out
from gpu_validation.workloads import SmallNetwork
from ratedist.interfaces.exit_status import OK

pytestmark = pytest.mark.timeout(120)

Y, D, BUDGET = 0.01, 0.04, 10.0
BY_HAND = Course(SmallNetwork(), Constant(Y), None, BUDGET, ())
STUDY = AdaCommStudy(courses=(("network", BY_HAND),), crowded=BY_HAND, taus=(1, 20), seeds=(10, 11, 12, 13, 14))
TINY = replace(
    STUDY,
    courses=(("network", Course(SmallNetwork(), ShiftedExponential(5e-4, 5e-4), None, 0.2, ((20, 0.1),))),),
    crowded=Course(SmallNetwork(), Constant(1e-3), None, 0.2, ()),
    m=2,
    crowds=(2,),
    crowd_taus=(1, 4),
    taus=(1, 4),
    tau_0s=(4, 8),
    intervals=(0.25,),
    tuning=(0,),
    seeds=(10,),
    points=10,
    proof=Proof(steps=8, tau_0=4, interval_s=0.01),
)


def race(name, rounds, *, rate=1.0, slower=1.0, gradient2=()):
    """A run whose loss falls as exp(-rate t) and whose rounds take as long as the model says, or a multiple."""
    took = slower * sum(n * (tau * Y + D) for tau, n in rounds)
    seconds = np.linspace(0, took, 400)
    return {
        "name": name,
        "seconds": seconds.tolist(),
        "losses": np.exp(-rate * seconds).tolist(),
        "accuracies": np.linspace(0, 1, 400).tolist(),
        "taus": [rounds[0][0]] * 400,
        "rounds": rounds,
        "steps_done": sum(tau * n for tau, n in rounds),
        "took_s": took,
        "fenced_s": [0.9 * D, 1.1 * D],
        "gradient2": list(gradient2),
        "method": "by hand",
        "scheduling": "normal",
    }


def unit(seed, *, rule_rate=0.6, slower=1.0):
    races = [
        race("tau = 1", [[1, 200]], rate=0.2),
        race("tau = 20", [[20, 42]], rate=0.8),
        race("gamma", [[20, 20], [4, 60]], rate=rule_rate, slower=slower),
    ]
    return {"unit": f"race:network:constant:{seed}", "m": 4, "races": races}


def rows_of(records, quantity):
    return {row.operator: row for row in STUDY.judge(records) if row.quantity.startswith(quantity)}


def test_everything_is_fixed_beforehand():
    assert (PRESET.m, PRESET.tuning, PRESET.seeds) == (4, (0, 1, 2), (10, 11, 12, 13, 14))
    assert PRESET.taus == (1, 5, 20, 100)
    assert [course.workload.description().synthetic for _, course in PRESET.courses] == [False, False]
    units = PRESET.units()
    assert len(set(units)) == len(units)
    assert units[:6] == [f"tune:{name}:{seed}" for name in ("network", "lenet") for seed in (0, 1, 2)]
    assert not any(int(unit.rsplit(":", 1)[1]) in PRESET.tuning for unit in units[6:])


def test_ratio_is_that_of_the_times_to_the_synchronous_loss():
    records = [unit(seed, rule_rate=rate) for seed, rate in zip(STUDY.seeds, (0.5, 0.6, 0.7, 0.8, 0.25), strict=True)]

    rows = rows_of(records, "time to the synchronous run's last loss")

    assert rows["tau = 20"].measured == pytest.approx(4.0, rel=0.1)
    assert rows["gamma"].measured == pytest.approx(3.0, rel=0.1)
    np.testing.assert_allclose(rows["gamma"].interval, (1.25, 4.0), rtol=0.1)
    assert all(row.verdict is Verdict.OUT_OF_SCOPE and not row.decides for row in rows.values())
    assert "goal of 3" in rows["gamma"].reason
    assert "best fixed: tau = 20, 3.8" in rows["gamma"].reason
    assert "level 0.9375" in rows["gamma"].reason
    against = rows_of(records, "the same against the best fixed tau")
    assert against["gamma"].measured == pytest.approx(0.75, rel=0.1)


def test_a_run_that_never_arrives_has_speed_up_zero():
    (found,) = STUDY.groups([unit(10, rule_rate=1e-3)])
    (hit,) = found.times_to_target["gamma"]
    assert (hit.seconds, hit.ratio, hit.accuracy) == (math.inf, 0.0, 1.0)


def test_the_synchronous_run_arrives_at_its_budget_at_the_latest():
    wavering = race("tau = 1", [[1, 240]])
    wavering["seconds"], wavering["losses"] = [0.0, 9.0, 9.9, 10.1, 12.0], [4.0, 3.0, 1.0, 5.0, 5.0]
    quick = {**wavering, "name": "quick", "seconds": [0.0, 1.0, 2.0], "losses": [4.0, 1.0, 1.0]}
    (first, second) = times_to_target(
        {"unit": "race:network:constant:10", "m": 4, "races": [wavering, quick]}, BUDGET, 1 / 40
    )

    assert (first.seconds, first.ratio) == (BUDGET, 1.0)
    assert second.ratio == pytest.approx(BUDGET / 1.2, rel=0.1)


def test_where_the_synchronous_run_learns_nothing_none_is_faster():
    races = [race("tau = 1", [[1, 200]], rate=-0.1), race("tau = 20", [[20, 42]], rate=0.8)]
    assert [hit.ratio for hit in times_to_target({"races": races}, BUDGET, 1 / 40)] == [1.0, 1.0]


def test_seconds_agree_with_the_model_or_are_inconclusive():
    predicted = predicted_seconds(unit(10)["races"][2], Constant(Y), 4)
    assert predicted == pytest.approx((80 * D + 640 * Y) / 640)
    close = rows_of([unit(10, slower=1.09)], "seconds per iteration")["gamma"]
    far = rows_of([unit(10, slower=1.2)], "seconds per iteration")["gamma"]
    assert (close.verdict, far.verdict) == (Verdict.HOLDS, Verdict.INCONCLUSIVE)
    assert close.bound == pytest.approx(predicted)


def proof(seed, gradient2):
    values = [gradient2 * (1 + 1e-4 * seed)] * 40
    races = [race("tau = 1", [[1, 40]], gradient2=values), race("tau = 20", [[20, 2]], gradient2=values)]
    races.append(race("capped", [[5, 4], [2, 10]], gradient2=values))
    return {"unit": f"proof:{seed}", "m": 4, "races": races}


def verdicts(gradient2):
    rows = STUDY.judge([proof(seed, gradient2) for seed in range(40)])
    return {(row.operator, row.theorem): row.verdict for row in rows}


def test_theorems_hold_where_their_assumptions_do():
    found = verdicts(0.2)
    holding = {("tau = 1", "pasgd_iterations"), ("tau = 1", "pasgd_convex"), ("tau = 20", "pasgd_convex")}
    assert {key for key, verdict in found.items() if verdict is Verdict.HOLDS} == holding
    assert found["capped", "pasgd_variable"] is Verdict.OUT_OF_SCOPE  # differences have no declared range
    assert found["tau = 20", "pasgd_iterations"] is Verdict.OUT_OF_SCOPE


def test_too_large_gradients_would_be_found():
    found = verdicts(20.0)
    assert [verdict for verdict in found.values() if verdict is not Verdict.OUT_OF_SCOPE] == [Verdict.VIOLATED] * 3


def test_tuning_chooses_the_smallest_median_and_nothing_else():
    names = [f"candidate {i}" for i in range(len(STUDY.candidates))]
    rates = np.array([[0.3, 0.4, 0.5, 0.9, 0.2, 0.1], [0.3, 0.4, 0.5, 0.2, 0.2, 0.1], [0.3, 0.4, 0.6, 0.2, 0.2, 0.1]])
    tuned = [
        {
            "unit": f"tune:network:{seed}",
            "m": 4,
            "races": [
                race("tau = 1", [[1, 200]], rate=0.2),
                *(race(n, [[20, 20]], rate=r) for n, r in zip(names, row, strict=True)),
            ],
        }
        for seed, row in zip(STUDY.tuning, rates, strict=True)
    ]
    study = STUDY.with_records([*tuned, unit(10, rule_rate=9.0)], None)

    assert study.chosen["network"] == STUDY.candidates[2]
    tau_0, share = STUDY.candidates[2]
    assert study.rules("network", 8.0)["basic"] == AdaComm(tau_0, 8.0 * share)
    assert settings(study) == settings(STUDY)  # resumed runs find their records


@pytest.fixture(scope="module")
def records():
    """One tuning unit, one reported one and one convex one, on real processes."""
    found = []
    for name in ("tune:network:0", "race:network:decayed:10", "proof:10"):
        found.append({"unit": name, **TINY.with_records(found, None).measure(name)})
    return found


def test_a_tiny_run_holds_every_schedule(records):
    assert [r["name"] for r in records[1]["races"]] == ["tau = 1", "tau = 4", "published", "derived"]
    assert all(r["took_s"] >= 0.2 and r["m"] == 2 for r in records[1]["races"])
    chosen, _ = TINY.with_records(records, None).chosen["network"]
    assert records[1]["races"][2]["rounds"][0][0] == min(chosen, max(TINY.taus))  # capped, whichever was first
    assert len(times_to_target(records[0], 0.2, TINY.window)) == 1 + len(TINY.candidates)


def test_its_rows_and_figures_are_made(records):
    rows = TINY.judge(records)
    assert not [row for row in rows if row.verdict is Verdict.VIOLATED]
    assert {row.theorem for row in rows if row.workload.startswith("logistic")} == {
        *("pasgd_iterations", "pasgd_convex", "pasgd_variable")
    }
    for figure in TINY.figures(records):
        figure.draw()
    chosen, share = TINY.with_records(records, None).chosen["network"]
    caption = TINY.figures(records)[0].caption
    assert "bundled digits" in caption
    assert f"Chosen on seeds 0: network: tau_0 = {chosen}, T_0 = {0.2 * share:.3g} s." in caption


@pytest.mark.slow
def test_a_whole_tiny_study_in_pieces(tmp_path):
    assert len(carry_out(TINY, tmp_path, seconds=0).records) == 1
    outcome = carry_out(TINY, tmp_path)
    assert outcome.exit_code == OK, outcome.message
    assert [r["unit"] for r in outcome.records] == list(TINY.units())
    assert (tmp_path / "adacomm" / REPORT).read_text().count("<figure>") == 5
