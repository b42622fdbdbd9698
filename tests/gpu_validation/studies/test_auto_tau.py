"""Rows from records made up by hand, what was fixed beforehand, and one small real run."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gpu_validation.judging.plotting import figure_html
from gpu_validation.judging.verdict import Verdict
from gpu_validation.records.exit_status import REPORT
from gpu_validation.studies.auto_tau import (
    CHARGED,
    COURSES,
    DEFAULT,
    DESIGN,
    HELD_OUT,
    PRESET,
    PROBLEMS,
    TUNED,
    cells,
    loss_after,
    theorem_2,
)
from gpu_validation.studies.carry_out import carry_out
from ratedist.interfaces.exit_status import OK

pytestmark = pytest.mark.timeout(170)

MLP = "mlp"
STUDY = replace(PRESET, problems=(MLP,), seeds=(0, 1, 2), targets=(100,), window=1e-4)


def race(name, seconds_a_step, *, slower=1.0, rule=None):
    """A loss of exp(-k/100) after k local steps, as if progress were made at every one of them, or more slowly."""
    steps = np.arange(0, 1001)
    return {
        "name": name,
        "seconds": (steps * seconds_a_step).tolist(),
        "step": steps.tolist(),
        "losses": np.exp(-steps / (100 * slower)).tolist(),
        "taus": [1] * steps.size,
        "rule": rule or {},
        "probes": 4,
        "mean_step_s": 0.004,
        "fenced_s": [0.016],
        "took_s": 1.0,
        "scheduling": "normal",
        "method": "by hand",
    }


def known(lost):
    return {"delays_s": [0.016], "steps_s": [0.004], "lost": lost, "fresh": 1.0, "loss_jump": 0.2}


def records(*, auto=1.0, adacomm=(2.0, 3.0, 1.5), courses=(0, 1), seeds=STUDY.seeds):
    """Milliseconds a step: 5 for tau = 1, 2 for the second tau, 3 for tau*, the given ones for the rules."""
    found = []
    for seed in seeds:
        for i in courses:
            names = [f"tau = {tau}" for tau in COURSES[i].taus]
            times = dict(zip(names, [5.0, 2.0, *[4.0] * 9], strict=False))
            fixed = [race(name, 1e-3 * times[name]) for name in names]
            rules = [race(f"AdaComm, tau_0 = {t}", 1e-3 * s) for t, s in zip(STUDY.tau_0s, adacomm, strict=True)]
            found.append({"unit": f"fixed:{MLP}:{i}:{seed}", "races": [*fixed, race("tau*", 3e-3)]})
            mine = race("auto", 1e-3 * auto, rule=known(0.01 * seed))
            found.append({"unit": f"rules:{MLP}:{i}:{seed}", "races": [mine, *rules]})
    return found


def test_halves_are_stated_and_every_kind_of_problem_is_in_them():
    assert len(PROBLEMS) >= 8
    assert {p.half for p in PROBLEMS.values()} == {DESIGN, HELD_OUT}
    held_out = [name for name, p in PROBLEMS.items() if p.half == HELD_OUT]
    assert len(held_out) == 5
    assert any(p.decay for p in PROBLEMS.values())
    assert {p.optimizer for p in PROBLEMS.values()} == {"sgd", "momentum", "adam"}
    assert {"kink", "lenet", "logistic, Dirichlet(.2)"} <= set(held_out)
    assert [course.ratio for course in COURSES] == [0.5, 4.0, 20.0]


def test_units_cover_everything_once_and_take_less_than_a_minute_of_racing():
    units = PRESET.units()
    assert len(units) == len(set(units)) == 2 * 3 * len(PROBLEMS) * len(PRESET.seeds)
    seconds = []
    for unit in units:
        kind, name, i, _ = unit.split(":")
        problem, course = PROBLEMS[name], COURSES[int(i)]
        races = PRESET.fixed(problem, course) if kind == "fixed" else PRESET.rules(problem, course)
        step_s = PRESET.step_s(problem, course)
        assert PRESET.budget_s(problem, course) == pytest.approx(course.budget * step_s)
        seconds.append(len(races) * PRESET.budget_s(problem, course) / problem.step_factor)
    assert max(seconds) < 45
    assert sum(seconds) / 60 < PRESET.minutes
    halves = [PROBLEMS[unit.split(":")[1]].half for unit in units]
    assert halves == sorted(halves)  # design before held-out


def test_regrets_and_ratios_are_those_of_the_crossing_times():
    (first, second) = cells(STUDY, records())

    assert first.best_fixed == f"tau = {COURSES[0].taus[1]}"
    assert second.regret("auto") == pytest.approx(0.5, rel=0.03)  # 1 ms a step against 2
    assert second.regret("tau = 1") == pytest.approx(2.5, rel=0.03)
    assert second.ratio("tau*") == pytest.approx(1 / 3, rel=0.03)
    assert second.regret(DEFAULT) == pytest.approx(1.5, rel=0.03)  # tau_0 = 16
    assert second.regret(TUNED) == pytest.approx(0.75, rel=0.03)  # tau_0 = 64
    assert second.regret(CHARGED) == pytest.approx(0.75 + (2.0 + 3.0 + 1.5) / 2, rel=0.03)


def test_a_target_is_the_loss_of_the_synchronous_run_after_so_many_steps():
    own = race("tau = 1", 1e-3)  # just before step 100 one has the model of step 99
    assert loss_after(own, 100, 1e-4) == pytest.approx(math.exp(-0.99))


def test_a_method_that_does_not_arrive_counts_as_its_budget_in_ratios_and_as_infinite_in_regrets():
    slow = records()
    for unit in slow:
        for own in unit["races"]:
            if own["name"] == "tau*":
                own["losses"] = [1.0] * len(own["losses"])
    cell = cells(STUDY, slow)[1]
    assert cell.regret("tau*") == math.inf
    assert cell.ratio("tau*") == pytest.approx(0.1 / cell.budget_s, rel=0.1)


def test_runs_without_both_units_or_without_their_target_are_left_out():
    assert cells(STUDY, records()[:1]) == []
    assert cells(STUDY, [r for r in records() if ":1:" in r["unit"]]) == []


@pytest.mark.parametrize(("auto", "word"), [(1.0, "met"), (9.0, "missed")])
def test_goals_are_reported_and_decide_nothing(auto, word):
    rows = PRESET.judge(records(auto=auto))

    assert all(row.verdict is Verdict.OUT_OF_SCOPE for row in rows)
    goal = next(row for row in rows if row.operator == "auto" and row.quantity.startswith("regret: "))
    assert f"goal: at most 1.25, {word}" in goal.reason
    assert goal.workload == f"{PROBLEMS[MLP].half} half"
    jump = next(row for row in rows if row.quantity.startswith("loss jump"))
    assert jump.measured == pytest.approx(0.2)
    share = next(row for row in rows if "probes" in row.quantity)
    assert share.measured == pytest.approx(4 * 0.004)
    measured = next(row for row in rows if row.quantity.startswith("D/Y"))
    assert measured.measured == pytest.approx(1.0)


def test_tau_star_is_theorem_2_within_range():
    course = COURSES[1]
    found = {name: theorem_2(PROBLEMS[name].workload, 4e-3, course) for name in ("quadratic", "mlp, Adam")}
    assert found["quadratic"] == 4
    assert 1 <= min(found.values()) <= max(found.values()) <= 512


def test_figures_are_drawn_from_records():
    assert PRESET.figures([]) == []
    for figure in PRESET.figures(records()):
        assert "<svg" in figure_html(figure.draw(), figure.caption)


@pytest.mark.slow
def test_a_small_run_on_real_processes(tmp_path):
    courses = tuple(replace(course, budget=60, taus=course.taus[:2]) for course in COURSES[:2])
    study = replace(PRESET, problems=(MLP,), courses=courses, seeds=(0, 1), targets=(10,), tau_0s=(16,), points=20)

    outcome = carry_out(study, tmp_path)

    assert outcome.exit_code == OK, outcome.message
    assert len(outcome.records) == len(study.units()) == 8
    auto = [race for record in outcome.records for race in record["races"] if race["name"] == "auto"]
    assert len(auto) == 4
    assert all(race["rule"]["started"] for race in auto)
    assert "regret" in (tmp_path / study.name / REPORT).read_text()
