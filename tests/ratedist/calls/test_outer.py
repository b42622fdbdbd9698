"""Advice on outer steps: the published check values, limits that are reached, and no word where nothing is known."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ratedist as rd
from bounds.dynamics.outer import OuterStep, Workers, best_outer, blended, eigenvalues, second_moments, worst_factor
from bounds.dynamics.outer.merge import RULES
from ratedist.interfaces.cli import main
from ratedist.records import to_json

POINT = {"eta": 1, "tau": 10, "L": 1, "mu": 0.001}


def row(advice, name):
    return next(entry for entry in advice.rows if entry["name"] == name)


def test_the_best_blocking_step_is_that_of_the_note():
    advice = rd.outer(**POINT, outer="0.7:0.9")
    best = advice.best
    assert (best["lr"], best["momentum"]) == (pytest.approx(1.3289, abs=1e-4), pytest.approx(0.7937, abs=1e-4))
    assert best["factor"] == pytest.approx(0.88498, abs=1e-5)
    assert row(advice, "asked")["factor"] == pytest.approx(0.94537, abs=1e-5)
    assert row(advice, "plain averaging")["factor"] == pytest.approx(0.99004, abs=1e-5)
    assert row(advice, "OpenDiLoCo")["factor"] == row(advice, "asked")["factor"]
    assert advice.limits[-1] == {"momentum": 0.9, "lr": pytest.approx(2 * 1.9 / 2.8, rel=1e-6)}


@pytest.mark.every(2)
@pytest.mark.parametrize("merge", RULES)
def test_a_step_just_below_the_limit_contracts_and_just_above_diverges(merge):
    round_ = {"eta": 0.3, "tau": 8, "L": 1, "mu": 0.05, "delay": 3, "merge": merge}
    limits = {entry["momentum"]: entry["lr"] for entry in rd.outer(**round_).limits}
    place = {"x": 0.3 * eigenvalues(1.0, 0.05), "tau": 8, "delay": 3, "m": 4}
    for momentum in (0.0, 0.5, 0.9):
        below, above = (OuterStep(share * limits[momentum], momentum) for share in (0.98, 1.02))
        assert worst_factor(merge, outer=below, **place) < 1 < worst_factor(merge, outer=above, **place)
    advice = rd.outer(**round_, outer=f"{1.02 * limits[0.5]!r}:0.5")
    assert (row(advice, "asked")["fate"], advice.diverges) == ("diverges", True)


def test_a_local_weight_is_the_blended_merge_and_zero_is_overwriting():
    late = POINT | {"delay": 4, "outer": "0.7:0.5"}
    asked = rd.outer(**late, local_weight=0.5)
    assert asked.merge == row(asked, "asked")["merge"] == "overwrite, local weight 0.5"
    curvatures = eigenvalues(1.0, 0.001)
    place = {"x": curvatures, "tau": 10, "delay": 4, "m": 4, "outer": OuterStep(0.7, 0.5)}
    assert row(asked, "asked")["factor"] == worst_factor(blended(0.5), **place)
    assert row(asked, "asked")["factor"] != worst_factor("overwrite", **place)
    limits = {entry["momentum"]: entry["lr"] for entry in asked.limits}
    below, above = (place | {"outer": OuterStep(share * limits[0.5], 0.5)} for share in (0.98, 1.02))
    assert worst_factor(blended(0.5), **below) < 1 < worst_factor(blended(0.5), **above)
    zero, overwrite = rd.outer(**late, local_weight=0), rd.outer(**late, merge="overwrite")
    assert (zero.rows, zero.limits, zero.best) == (overwrite.rows, overwrite.limits, overwrite.best)


def test_a_best_momentum_of_zero_has_no_sign():
    best = rd.outer(eta=1, tau=1, L=1, mu=1, local_weight=0.999).best
    assert str(best["momentum"]) == "0.0"


@pytest.mark.parametrize("asked", [{"merge": "corrected", "local_weight": 0.5}, {"local_weight": 1}])
def test_a_local_weight_outside_its_range_or_rule_is_refused(asked):
    with pytest.raises(
        ValueError, match=r"local_weight (belongs to merge = overwrite|must satisfy 0 <= local_weight < 1)"
    ):
        rd.outer(**POINT, **asked)


@settings(max_examples=6, deadline=None)
@given(
    merge=st.sampled_from(RULES),
    x=st.floats(0.01, 1.0),
    condition=st.floats(1.0, 100.0),
    tau=st.integers(2, 30),
    share=st.floats(0.0, 0.9),
)
def test_no_other_step_beats_the_best_by_more_than_the_grid(merge, x, condition, tau, share):
    place = {"tau": tau, "delay": int(share * tau)}
    best = best_outer(merge, eta=x, L=1.0, mu=1 / condition, m=4, **place)
    curvatures = x * eigenvalues(1.0, 1 / condition)
    others = [OuterStep(*step) for step in ((1.0, 0.0), (0.7, 0.9), (0.4, 0.9), (0.5, 0.5))]
    least = min(worst_factor(merge, x=curvatures, m=4, outer=step, **place) for step in others)
    assert best.factor <= least + 0.004
    assert best.factor < 1


def test_noise_is_that_of_very_many_rounds():
    advice = rd.outer(eta=0.2, tau=5, L=1, mu=1, delay=2, outer="0.5:0.5", sigma2=3, workers=4)
    workers = Workers(np.ones((4, 1)), np.zeros((4, 1)), np.full((4, 1), 3.0), np.zeros(1))
    step = OuterStep(0.5, 0.5)
    variance = second_moments(workers, "corrected", eta=0.2, tau=5, delay=2, rounds=200, outer=step)[-1, 0]
    assert row(advice, "asked")["loss"] == pytest.approx(variance / 2, rel=1e-9)
    assert row(rd.outer(eta=0.2, tau=5, L=1, mu=1), "plain averaging")["noise"] == pytest.approx(1)


def test_limits_are_stated_at_the_momenta_asked_for():
    advice = rd.outer(**POINT, momenta=[0.2, 0.4])
    limits = {row["momentum"]: row["lr"] for row in advice.limits}
    assert sorted(limits) == [0.2, 0.4, advice.best["momentum"]]
    for momentum in (0.2, 0.4):
        assert limits[momentum] == pytest.approx(2 * (1 + momentum) / (1 + 2 * momentum), rel=1e-6)
    with pytest.raises(ValueError, match=r"0 <= momentum < 1; got 1"):
        rd.outer(**POINT, momenta=1)
    with pytest.raises(ValueError, match="momenta must be at most 64 numbers; got 65: leave some out"):
        rd.outer(**POINT, momenta=[0.1] * 65)


def test_a_merge_rule_that_is_none_of_the_five_is_not_judged():
    late = rd.outer(**POINT, delay=4)
    assert late.merge == "corrected"
    streaming = row(late, "Streaming DiLoCo (the paper)")
    assert (streaming["fate"], streaming["factor"], streaming["noise"]) == ("not known", None, None)
    assert row(late, "torchft DiLoCo (its example)")["merge"] == "overwrite"
    assert row(late, "OpenDiLoCo")["merge"] == "blocking"
    assert row(rd.outer(**POINT, delay=10), "MaxText DiLoCo")["fate"] == "stands still"


def test_the_command_says_what_it_holds_for_and_never_that_all_is_well(capsys):
    line = "outer --eta 1 --tau 10 --L 1 --mu 0.001 --merge delayed --outer 0.7:0.9"
    assert main([*line.split(), "--explain"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    for words in ("diverges", "may still fail on a network", "as remembered, not looked up", "Adam or momentum inside"):
        assert words in text
    assert " ok" not in text.lower()
    assert main([*line.replace("delayed", "blocking").split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["best"]["factor"] == pytest.approx(0.88498, abs=1e-5)


def test_many_workers_cost_no_memory_and_the_record_is_plain():
    advice = rd.outer(**POINT, delay=3, merge="eager", workers=10**9)
    assert to_json(advice)["about"] == advice.about
    assert json.dumps(to_json(advice), allow_nan=False)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"eta": 2}, "needs mu <= L and eta L <= 1; got mu = 0.001, L = 1, eta = 2"),
        ({"mu": 2}, "needs mu <= L"),
        ({"delay": 11}, "delay <= tau <= 1000000; got tau = 10, delay = 11"),
        ({"merge": "later"}, "a merge rule is one of blocking"),
        ({"outer": "fast"}, "an outer step is rate:momentum, such as 0.7:0.9; got 'fast'"),
        ({"outer": "0.7:1"}, "outer momentum must satisfy 0 <= momentum < 1"),
        ({"merge": "overwrite", "delay": 10}, "overwrite throws all steps away"),
    ],
)
def test_what_is_no_round_is_refused(change, match):
    with pytest.raises(ValueError, match=match):
        rd.outer(**(POINT | change))
