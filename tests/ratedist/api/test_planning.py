"""The plan: every operator appears, the numbers are those of the theorems, the order is that of the criterion."""

import math

import pytest

import ratedist as rd
from bounds.theorems import diana
from operators import parse

CLUSTER = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
ASKED = ["topk:0.01", "tcdq:omega=1", "qsgd:4", "identity", "signsgd"]
SMOOTH = {"L": 1, "sigma2": 1, "gap": 1}


def test_every_operator_appears_and_the_unjudged_come_last_with_the_reason():
    found = rd.plan(d=25_600_000, cluster=CLUSTER, operators=ASKED, target=0.1)
    names = [choice.operator for choice in found.ranking]

    assert sorted(names) == ["identity", "qsgd:levels=4", "signsgd", "tcdq:omega=1", "topk:fraction=0.01"]
    assert [choice.feasible for choice in found.ranking] == [True] * 3 + [False] * 2
    assert "unbiased" in found.ranking[3].reason
    assert math.isinf(found.ranking[4].seconds)
    costs = [choice.seconds for choice in found.ranking if choice.feasible]
    assert costs == sorted(costs)
    assert found.best.relative_cost == 1
    assert found.explain().startswith(f"Use {names[0]}")
    assert "<table>" in found._repr_html_()
    assert "condition number 100" in found.assumptions[0]


def test_without_constants_the_cost_is_iterations_times_seconds_per_round():
    (choice,) = rd.plan(d=10**6, cluster=CLUSTER, operators="randomk:0.1", target=0.01, condition=10).ranking
    operator = parse("randomk:0.1")
    steps = math.ceil(diana(kappa=10, m=16, epsilon=0.01, omega=operator.claim(10**6).omega))
    seconds = rd.runtime(CLUSTER, tau=1, bits=operator.bits(10**6).exact, exchange="gather")

    assert choice.rounds == steps
    assert choice.theorem == "diana"
    assert choice.seconds == pytest.approx(steps * seconds, rel=1e-12)
    assert choice.bits == steps * operator.bits(10**6).exact


def test_with_constants_tau_and_eta_are_chosen_and_the_error_is_certified():
    found = rd.plan(d=10**6, cluster=CLUSTER, operators=ASKED, target=0.1, **SMOOTH)
    for choice in (c for c in found.ranking if c.feasible):
        assert choice.error <= 0.1
        assert choice.tau >= 1
        assert choice.eta > 0
        assert choice.status == "proved"
    biased = rd.plan(d=10**6, cluster=CLUSTER, operators="topk:0.5", target=0.5, G=1.5, **SMOOTH)
    assert biased.best.theorem == "qsparse"


def test_a_time_budget_ranks_by_error():
    found = rd.plan(d=10**6, cluster=CLUSTER, operators=["identity", "qsgd:100"], time_s=600, **SMOOTH)
    errors = [choice.error for choice in found.ranking]
    assert errors == sorted(errors)


def test_dense_messages_are_summed_and_others_gathered():
    found = rd.plan(d=10**6, cluster=CLUSTER, operators=["identity", "natural"], target=0.1)
    reasons = {choice.operator.partition(":")[0]: choice.reason for choice in found.ranking}
    assert "summed on its way" in reasons["identity"]
    assert "gathered" in reasons["natural"]


@pytest.mark.parametrize("d", [1, 10**9, 1_300_000_000, 10**12])
def test_a_sign_of_a_huge_model_is_planned_or_refused_in_words(d):
    cluster = rd.Cluster(workers=64)
    found = rd.plan(d=d, cluster=cluster, operators=["scaled_sign"], target=0.1, G=10, **SMOOTH)
    assert found.best.error <= 0.1


def test_nothing_feasible_is_a_ranking_too():
    found = rd.plan(d=10, cluster=CLUSTER, operators=["signsgd"], target=0.1)
    assert found.explain().startswith("No operator is covered: signsgd")
    with pytest.raises(ValueError, match="no operator is feasible"):
        _ = found.best


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"operators": []}, "operators must name 1 to 64"),
        ({"operators": ["warp"]}, "unknown operator 'warp'; it must be "),
        ({"operators": [3]}, "must be a specification"),
        ({"operators": ["topk"]}, "exactly one of fraction and k"),
        ({"operators": ["qsgd:levels=x"]}, "wrong kind"),
        ({"target": None}, "target must satisfy 0 < target < 1"),
        ({"target": 1}, "target must satisfy 0 < target < 1"),
        ({"L": 1}, "missing: sigma2, gap"),
        ({"d": -3}, "d must satisfy"),
        ({"eta": 0.1}, "the plan takes target only"),
        (SMOOTH | {"condition": 3}, "condition goes without"),
        (SMOOTH | {"time_s": 3}, "either target or time_s"),
    ],
)
def test_bad_input_is_one_sentence(keywords, words):
    with pytest.raises(ValueError, match=words) as caught:
        rd.plan(**{"d": 100, "cluster": CLUSTER, "operators": ["identity"], "target": 0.1} | keywords)
    assert "\n" not in str(caught.value)
