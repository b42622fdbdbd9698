"""The plan: every operator appears, the numbers are those of the theorems, the order is that of the criterion."""

import math

import pytest

import ratedist as rd
from bounds import Interval, all_bounds
from bounds.estimate import Estimate
from bounds.theorems import diana_distance
from operators import parse, parse_summed, specification
from ratedist.cluster.cluster import TOPOLOGIES

CLUSTER = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
ASKED = ["topk:0.01", "tcdq:omega=1", "qsgd:4", "identity", "signsgd"]
SMOOTH = {"L": 1, "sigma2": 1, "gap": 1}
SLOW = rd.Codec(encode_s_per_coordinate=8.5e-9, decode_s_per_coordinate=4.3e-9)


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
    assert found.explain().startswith("Use uncompressed")
    assert "<table>" in found._repr_html_()
    assert "condition number L/mu = 100" in found.assumptions[0]
    assert f"diana_distance: {diana_distance.setting.text()}" in found.assumptions


def test_without_constants_the_cost_is_rounds_times_seconds_and_a_dense_start():
    d = 10**6
    (choice,) = rd.plan(d=d, cluster=CLUSTER, operators="randomk:0.1", target=0.01, condition=10, codec=SLOW).ranking
    operator = parse("randomk:0.1")
    omega, bits = operator.claim(d).omega, operator.bits(d).exact
    rounds = math.ceil(diana_distance(kappa=10, m=16, epsilon=0.01, omega=omega))
    gathered = float(rd.runtime(CLUSTER, tau=1, bits=bits, exchange="gather"))
    dense = float(rd.runtime(CLUSTER, tau=1, bits=32 * d))
    coding = d * (8.5e-9 + 16 * 4.3e-9)

    assert choice.rounds == rounds
    assert choice.theorem == "diana_distance"
    assert choice.seconds == pytest.approx((rounds - 1) * (gathered + coding) + dense, rel=1e-12)
    assert choice.bits == (rounds - 1) * bits + 32 * d
    assert "the first averages uncompressed gradients" in choice.reason


@pytest.mark.parametrize("goal", [{"target": 0.1}, {"target": 0.1, **SMOOTH}, {"time_s": 300, **SMOOTH}])
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_the_parts_of_a_round_make_the_seconds(goal, topology):
    cluster = rd.Cluster(workers=16, step_s=0.08, topology=topology)
    asked = ["identity", "tcdq:omega=1", "cast:bf16,rounding=stochastic"]
    for choice in rd.plan(d=10**6, cluster=cluster, operators=asked, codec=SLOW, **goal).ranking:
        averaging_s = choice.encode_s + choice.communicate_s + choice.decode_s
        start_s = averaging_s if choice.start_s is None else choice.start_s
        total = choice.rounds * choice.compute_s + (choice.rounds - 1) * averaging_s + start_s
        assert choice.seconds == pytest.approx(total, rel=1e-9)
        assert all(part > 0 for part in (choice.encode_s, choice.decode_s)) == (choice.operator != "identity")


def test_codecs_decide_between_dense_and_compressed():
    asked = ["tcdq:omega=0.1", "identity"]
    rest = {"d": 25_600_000, "cluster": CLUSTER, "target": 0.1, "exchange": "gather"}
    slow, free = (rd.plan(operators=asked, codec=codec, **rest) for codec in (SLOW, "free"))
    assert slow.best.operator == "identity"
    assert slow.ranking[1].relative_cost == pytest.approx(5.706, abs=1e-3)
    assert slow.ranking[1].seconds == pytest.approx(560.9, abs=0.1)
    assert free.best.operator == "tcdq:omega=0.1"
    assert "codec free, as asked for" in free.explain()
    assert "codec given: 8.5 ns a coordinate to encode" in slow.ranking[1].reason


def test_a_plan_times_the_codecs_of_this_machine_unless_told_otherwise():
    rest = {"d": 1000, "cluster": CLUSTER, "target": 0.1, "exchange": "gather"}
    (timed,) = rd.plan(operators="qsgd:4", **rest).ranking
    (again,) = rd.plan(operators="qsgd:4", codec="measured", **rest).ranking
    (other,) = rd.plan(operators="qsgd:4", codec={"natural": SLOW}, **rest).ranking
    assert timed.encode_s > 0
    assert "codec measured on this machine (cpu, " in timed.reason
    assert timed == again == other
    given = {"qsgd:levels=4": {"encode_s_per_coordinate": "1e-9", "decode_s_per_coordinate": 0}}
    (named,) = rd.plan(operators="qsgd:4", codec=given, **rest).ranking
    assert (named.encode_s, named.decode_s) == (pytest.approx(1e-6), 0)


def test_with_constants_tau_and_eta_are_chosen_and_the_error_is_certified():
    found = rd.plan(d=10**6, cluster=CLUSTER, operators=ASKED, target=0.1, **SMOOTH)
    for choice in (c for c in found.ranking if c.feasible):
        assert choice.error <= 0.1
        assert choice.tau >= 1
        assert choice.eta > 0
        assert choice.status == "proved"
    biased = rd.plan(d=10**6, cluster=CLUSTER, operators="topk:0.5", target=0.5, G=1.5, **SMOOTH)
    assert biased.best.theorem == "qsparse"


def test_estimates_are_planned_at_their_values_and_no_theorem_is_said_to_speak_for_them():
    rest = {"d": 100, "cluster": CLUSTER, "operators": ["identity", "signsgd"], "target": 0.1, "codec": "free"}
    known = rd.plan(**rest, **SMOOTH)
    found = rd.plan(**rest, **SMOOTH | {"L": "1:0.5:2", "gap": Estimate(1.0, Interval(0.5, 2), 0.9)})
    assert (found.best.seconds, found.best.tau) == (known.best.seconds, known.best.tau)
    assert found.best.status == "proved for true constants, not for assumed or estimated ones"
    assert found.best.status in found.best.reason
    assert "L = 1 is estimated, 0.5 to 2 at level 0.95" in found.assumptions[0]
    assert "gap = 1 is estimated, 0.5 to 2 at level 0.9" in found.assumptions[0]
    assert known.best.status == "proved"
    assert known.best.cost_between is None


@pytest.mark.parametrize("goal", [{"target": 0.1}, {"time_s": 1e5}])
def test_the_cost_of_estimates_lies_between_those_at_their_ends(goal):
    rest = {"d": 100, "cluster": CLUSTER, "operators": ["identity"], "codec": "free", **goal}
    found = rd.plan(**rest, L="1:0.5:2", sigma2=1, gap=Estimate(1.0, Interval(0.5, 2), 0.9))
    ends = [rd.plan(**rest, L=end, sigma2=1, gap=end).best for end in (0.5, 2)]
    costs = tuple(end.seconds if found.by == "seconds" else end.error for end in ends)
    assert found.best.cost_between == costs
    assert costs[0] < (found.best.seconds if found.by == "seconds" else found.best.error) < costs[1]
    words = f"{found.by} from {costs[0]:.4g} to {costs[1]:.4g} over L, gap, not known exactly"
    assert words in found.explain()


def test_an_estimate_that_reaches_zero_leaves_a_cost_from_zero():
    rest = {"d": 100, "cluster": CLUSTER, "operators": ["identity"], "codec": "free", "target": 0.1}
    sigma2, gap = Estimate(1.0, Interval(-1, 2), 0.9), Estimate(1.0, Interval(0, 2), 0.9)
    found = rd.plan(**rest, L=1, sigma2=sigma2, gap=gap)
    assert found.best.cost_between[0] == 0
    assert found.best.seconds < found.best.cost_between[1] < float("inf")


def test_a_time_budget_ranks_by_error():
    found = rd.plan(d=10**6, cluster=CLUSTER, operators=["identity", "qsgd:100"], time_s=600, **SMOOTH)
    errors = [choice.error for choice in found.ranking]
    assert errors == sorted(errors)
    assert found.by == "error"
    assert f"error at most {errors[0]:.4g}, {errors[1] / errors[0]:.3g} times lower than with" in found.explain()
    assert "on average at least" in found.explain()


def test_dense_messages_are_summed_and_others_gathered():
    found = rd.plan(d=10**6, cluster=CLUSTER, operators=["identity", "natural"], target=0.1, exchange="gather")
    reasons = {choice.operator.partition(":")[0]: choice.reason for choice in found.ranking}
    assert "summed on its way" in reasons["identity"]
    assert "gathered" in reasons["natural"]


@pytest.mark.parametrize("d", [1, 10**9, 1_300_000_000, 10**12])
def test_a_sign_of_a_huge_model_is_planned_or_refused_in_words(d):
    cluster = rd.Cluster(workers=64)
    found = rd.plan(d=d, cluster=cluster, operators=["scaled_sign"], target=0.1, G=10, **SMOOTH)
    assert found.best.error <= 0.1


def test_short_floats_are_summed_where_the_theorem_allows_it():
    cluster = rd.Cluster(workers=64, bandwidth_bit_per_s=4e11, latency_s=0)
    asked = ["cast:bf16,rounding=stochastic", "cast:bf16", "identity"]
    found = rd.plan(d=1.3e9, cluster=cluster, operators=asked, target=0.1, codec="free", **SMOOTH)
    by_name = {choice.operator: choice for choice in found.ranking}
    assert by_name["cast:format=bf16,rounding=stochastic"].communicate_s == pytest.approx(0.1024, rel=1e-3)
    assert by_name["identity"].communicate_s == pytest.approx(0.2048, rel=1e-3)
    nearest = by_name["cast:format=bf16"]
    assert not nearest.feasible
    assert "give G" in nearest.reason
    assert nearest.communicate_s == pytest.approx(0.1536, rel=1e-3)
    covered = rd.plan(d=1.3e9, cluster=cluster, operators=asked[1], target=0.1, G=1, codec="free", **SMOOTH).best
    assert covered.theorem == "qsparse"


def test_what_a_plan_needs_comes_from_its_theorem_and_gates_it():
    rest = {
        "d": 100,
        "cluster": CLUSTER,
        "operators": ["identity", "qsgd:4"],
        "target": 0.1,
        "codec": "free",
        "exchange": "gather",
    }
    found = rd.plan(**rest, **SMOOTH)
    for name in ("pasgd_iterations", "pasgd_compressed"):
        assert f"{name}: {all_bounds()[name].setting.text()}" in found.assumptions
    known = ["same_f", "unbiased_gradients", "independent_noise"]
    assert rd.plan(**rest, **SMOOTH, setting=known).best.operator == found.best.operator
    refused = rd.plan(**rest, **SMOOTH, setting=known[1:])
    assert not any(choice.feasible for choice in refused.ranking)
    assert "not covered: pasgd_iterations needs: all workers sample the same F" in refused.explain()
    assert not rd.plan(**rest, setting="every_convex").ranking[0].feasible  # gradients may be noisy
    assert rd.plan(**rest, setting=["every_convex", "every_smooth", "full_gradients"]).best.feasible
    with pytest.raises(ValueError, match="named properties; got 'convx'"):
        rd.plan(**rest, setting=["convx"])


def test_an_exact_sparsifier_is_covered_and_equal_costs_are_no_lead():
    cluster = rd.Cluster(workers=1)
    found = rd.plan(d=1, cluster=cluster, operators=["topk:0.01", "identity"], target=0.1, codec="free")
    assert [choice.feasible for choice in found.ranking] == [True, True]
    assert "with little or no lead over" in found.explain()


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
        ({"operators": ["qsgd:levels=x"]}, "levels of qsgd must be a whole number"),
        ({"target": None}, "target must satisfy 0 < target < 1"),
        ({"target": 1}, "target must satisfy 0 < target < 1"),
        ({"L": 1}, "missing: sigma2, gap"),
        ({"d": -3}, "d must satisfy"),
        ({"eta": 0.1}, "the plan takes target only"),
        (SMOOTH | {"condition": 3}, "condition goes without"),
        (SMOOTH | {"time_s": 3}, "either target or time_s"),
        ({"codec": "banana"}, 'codec must be "measured", "free"'),
        ({"codec": {"encode_s_per_coordinate": 1}}, "a codec has encode_s_per_coordinate and decode_s_per_coordinate"),
        ({"codec": {"warp": rd.Codec(0, 0)}}, "unknown operator 'warp'"),
        ({"codec": {"qsgd:4": "slow"}}, "got 'slow'"),
    ],
)
def test_bad_input_is_one_sentence(keywords, words):
    with pytest.raises(ValueError, match=words) as caught:
        rd.plan(**{"d": 100, "cluster": CLUSTER, "operators": ["identity"], "target": 0.1} | keywords)
    assert "\n" not in str(caught.value)


CRITERION = {"d": 25_600_000, "target": 0.1, "codec": "free"}
STEADY = {"bandwidth_bit_per_s": 1e10, "latency_s": 50e-6, "step_s": 0.08, "compute": "constant"}


@pytest.mark.parametrize(
    ("m", "share"), [(2, 1.0), (4, 1.0), (16, 1.0), (64, 0.45), (256, 0.45), (1024, 0.6), (4096, 0.8)]
)
def test_the_plan_chooses_exchange_and_rates(m, share):
    cluster = rd.Cluster(workers=m, **STEADY)
    gathered = rd.plan(cluster=cluster, operators=["identity", "tcdq:omega=1"], exchange="gather", **CRITERION)
    chosen = rd.plan(cluster=cluster, **CRITERION).best

    assert chosen.seconds <= share * gathered.best.seconds
    assert m < 64 or (chosen.exchange == "two_shot" and chosen.theorem == "two_shot_diana_distance")


def test_the_winner_says_how_fast_its_codec_has_to_be():
    cluster = rd.Cluster(workers=64, **STEADY)
    best = rd.plan(cluster=cluster, **CRITERION).best
    pace = best.break_even_coordinates_per_s

    dense = rd.plan(cluster=cluster, operators="identity", **CRITERION).best
    slowed = best.seconds + best.rounds * best.coded * CRITERION["d"] / pace
    assert slowed == pytest.approx(dense.seconds, rel=1e-9)
    assert f"above {pace:.3g} coordinates/s ({4e-9 * pace:.3g} GB/s of binary32" in best.reason
    assert "ns each) it leads identity" in best.reason


def test_the_winner_says_which_codec_keeps_its_lead():
    """At .45 of float32's seconds: 9.9e9 coordinates/s, three vectors a round; float32 needs none."""
    cluster = rd.Cluster(workers=64, **STEADY)
    best = rd.plan(cluster=cluster, **CRITERION).best
    dense = rd.plan(cluster=cluster, operators="identity", **CRITERION).best
    pace = best.lead_coordinates_per_s

    assert pace == pytest.approx(9.9e9, rel=0.02)
    each = best.coded * CRITERION["d"] / pace  # seconds of coding in a round
    assert best.seconds + best.rounds * each == pytest.approx(0.45 * dense.seconds, rel=1e-9)
    assert "it takes at most 45% of its seconds" in best.reason
    with_codec = rd.plan(cluster=cluster, operators=["identity"], **CRITERION).ranking[0]
    assert with_codec.lead_coordinates_per_s is None


def test_a_codec_of_that_pace_keeps_the_lead_in_a_plan_of_its_own():
    cluster = rd.Cluster(workers=64, **STEADY)
    free = rd.plan(cluster=cluster, **CRITERION).best
    dense = rd.plan(cluster=cluster, operators="identity", **CRITERION).best

    def best_at(pace):
        codec = rd.Codec(1 / pace, 1 / pace)
        return rd.plan(cluster=cluster, **CRITERION | {"codec": codec}).best

    assert best_at(free.lead_coordinates_per_s).seconds <= 0.45 * dense.seconds * (1 + 1e-9)
    assert best_at(1.001 * free.break_even_coordinates_per_s).seconds <= dense.seconds
    assert best_at(free.break_even_coordinates_per_s / 4).operator == "identity"


@pytest.mark.parametrize("m", [16, 1024, 4096])
def test_plans_of_many_workers_are_never_worse_and_name_no_lead_that_is_none(m):
    cluster = rd.Cluster(workers=m, **STEADY)
    best = rd.plan(cluster=cluster, **CRITERION).best
    rivals = rd.plan(cluster=cluster, operators=["identity", "tcdq:omega=1"], exchange="gather", **CRITERION)

    assert best.seconds <= rivals.best.seconds
    dense = next(choice for choice in rivals.ranking if choice.operator == "identity")
    assert (best.lead_coordinates_per_s is not None) == (best.seconds < 0.45 * dense.seconds)


def test_two_shots_need_unbiased_operators_and_gather_serves_the_others():
    asked = {"d": 10**4, "cluster": CLUSTER, "operators": ["topk:0.01"], "codec": "free", **SMOOTH, "target": 0.1}

    shots = rd.plan(**asked, exchange="two_shot", G=2).ranking[0]
    either = rd.plan(**asked, G=2).ranking[0]

    assert not shots.feasible
    assert "unbiased operators at both stages" in shots.reason
    assert either.exchange == "gather"


def test_local_updates_in_two_shots_use_their_theorem():
    asked = {"d": 10**6, "cluster": rd.Cluster(workers=64), "codec": "free", "exchange": "two_shot", **SMOOTH}

    (choice,) = rd.plan(operators="tcdq:omega=0.1", **asked | {"target": 0.1}).ranking
    (timed,) = rd.plan(
        operators="tcdq:omega=0.1", **{k: v for k, v in asked.items() if k != "target"}, time_s=60
    ).ranking

    assert (choice.theorem, timed.theorem) == ("pasgd_two_shot", "pasgd_two_shot_wall_clock")


def test_an_unknown_exchange_is_refused():
    with pytest.raises(ValueError, match="exchange must be one of auto, gather, two_shot"):
        rd.plan(d=10, cluster=CLUSTER, target=0.1, exchange="ring")


def test_a_convex_problem_is_planned_by_the_sharper_bounds():
    cluster = rd.Cluster(workers=4, bandwidth_bit_per_s=1e10, latency_s=1.0, step_s=1.0, compute="constant")
    at = {"d": 10**6, "cluster": cluster, "operators": ["identity", "tcdq:omega=1"], "codec": "free", "target": 0.05}
    known, unknown = (rd.plan(**at, L=1, sigma2=1, gap=1, curvature=curvature) for curvature in ("convex", None))
    assert [choice.theorem for choice in known.ranking] == ["pasgd_convex_sharp", "pasgd_compressed_convex"]
    assert known.ranking[0].seconds < 0.6 * unknown.ranking[0].seconds
    assert any("F is convex" in text for text in known.assumptions)
    assert not any("F is convex" in text for text in unknown.assumptions)


def test_a_strongly_convex_plan_takes_no_curvature():
    cluster = rd.Cluster(workers=4, bandwidth_bit_per_s=1e10)
    with pytest.raises(ValueError, match="curvature goes with L, sigma2 and gap"):
        rd.plan(d=100, cluster=cluster, operators=["identity"], codec="free", target=0.05, curvature="convex")


SUMS = ["shared_scale:12,block=256", "sign_vote", "summed_powersgd:2"]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("exchange", ["auto", "gather", "two_shot"])
def test_what_is_summed_on_the_way_is_planned_by_its_own_rounds(topology, exchange):
    d, m = 10**6, 16
    cluster = rd.Cluster(workers=m, step_s=0.08, latency_s=1e-3, topology=topology)
    method = parse_summed(SUMS[0])
    omega, rounds_bits = method.claim(d, m).omega, method.bits_of_rounds(d, m)

    ranking = rd.plan(d=d, cluster=cluster, operators=SUMS, target=0.01, codec=SLOW, exchange=exchange).ranking
    integers, *others = ranking

    rounds = math.ceil(diana_distance(kappa=100, m=m, epsilon=0.01, omega=omega))
    sums_s = sum(cluster.averaging_s(bits).midpoint for bits in rounds_bits)
    messages = m if topology == "parameter_server" else 1
    assert (integers.operator, integers.exchange, integers.rounds) == (specification(method), "sum", rounds)
    assert integers.communicate_s == pytest.approx(sums_s, rel=1e-9)
    assert integers.communicate_s > sum(rounds_bits) / 1e10 + 1.9 * cluster.averaging_s(0).midpoint  # hops, twice
    assert integers.encode_s == pytest.approx(d * 8.5e-9)
    assert integers.decode_s == pytest.approx(messages * d * 4.3e-9)
    assert integers.message_bits == sum(rounds_bits)
    assert "summed on its way in 2 rounds, its omega one of all ranks' messages together" in integers.reason
    assert [choice.feasible for choice in others] == [False, False]
    assert all("needs a claim" in choice.reason for choice in others)


def test_sums_are_planned_on_smooth_problems_too():
    d, m = 10**6, 16
    found = rd.plan(d=d, cluster=CLUSTER, operators=SUMS, target=0.1, codec="free", **SMOOTH)
    omega = parse_summed(SUMS[0]).claim(d, m).omega

    assert found.best.theorem == "pasgd_compressed"
    at = {"gap": 1, "L": 1, "sigma2": 1, "m": m, "eta": found.best.eta, "tau": found.best.tau}
    steps = found.best.rounds * found.best.tau
    assert found.best.error == pytest.approx(all_bounds()["pasgd_compressed"](**at, omega=omega, K=steps))
    assert "signs say nothing about lengths" in found.ranking[1].reason + found.ranking[2].reason


def test_words_that_cannot_hold_the_sum_are_not_planned():
    (choice,) = rd.plan(d=1000, cluster=CLUSTER, operators="shared_scale:5", target=0.1).ranking

    assert not choice.feasible
    assert "not for 16 workers: word_bits must satisfy 2^(word_bits - 1) > m; got word_bits = 5" in choice.reason


def test_codecs_of_sums_are_given_by_name():
    named = {"shared_scale:12,block=256": SLOW, "identity": rd.Codec(0, 0)}
    found = rd.plan(
        d=10**6, cluster=CLUSTER, operators=["shared_scale:block=256,word_bits=12"], target=0.1, codec=named
    )

    assert found.best.encode_s == pytest.approx(10**6 * 8.5e-9)
