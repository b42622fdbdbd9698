"""An upper bound that is no better than what holds anyway says nothing and has no rank."""

import pytest

import ratedist as rd
from bounds import Conclusion, all_bounds
from bounds.provenance import Side
from ratedist.interfaces.cli import main
from ratedist.plans.problem import GAPS, trivial_limit
from tests.pooled import pooled

CLUSTER = rd.Cluster(workers=4, step_s=0.1, compute="constant")
SMOOTH = {"L": 1, "sigma2": 1, "gap": 1}


@pytest.mark.parametrize("G", [0.5, 1, 1.2, 30])
def test_a_plan_ranks_no_error_that_the_start_has(G):
    asked = {"d": 10**6, "cluster": CLUSTER, "codec": "free", "time_s": 600, "G": G}
    found = rd.plan(**asked, operators=["topk:0.01", "identity"], **SMOOTH)
    limit = min(G**2, 2.0)
    for choice in found.ranking:
        assert choice.feasible == (not choice.vacuous)
        assert ("says nothing" in choice.reason) == choice.vacuous
        assert choice.feasible is False or choice.error < limit
    assert found.ranking[0].operator == "identity"


def test_a_target_that_the_start_meets_needs_no_plan(capsys):
    asked = {"d": 1000, "cluster": CLUSTER, "codec": "free", "operators": ["identity"]}
    assert rd.plan(**asked, target=1.9, **SMOOTH).ranking[0].feasible
    (choice,) = rd.plan(**asked, target=2, **SMOOTH).ranking
    assert choice.vacuous
    line = "plan --d 1000 --workers 4 --codec free --operators identity --target 2 --L 1 --sigma2 1 --gap 1"
    assert main(line.split()) == 1
    assert "says nothing" in capsys.readouterr().out


@pytest.mark.parametrize(("omega", "says_nothing"), [(0.1, False), (0.99, False), (1, True), (80, True)])
def test_a_mean_that_zeros_estimate_as_well(omega, says_nothing, capsys):
    found = rd.allreduce(d=1000, m=8, operator=f"tcdq:omega={omega}", exchange="gather")
    assert (found.nmse >= 1) == found.is_vacuous == found.to_dict()["vacuous"] == says_nothing
    assert main(f"allreduce --d 1000 --m 8 --operator tcdq:omega={omega} --exchange gather".split()) == 0
    assert ("says nothing" in capsys.readouterr().out) == says_nothing


@pytest.mark.parametrize("time_s", [1, 3, 10, 100, 1000])
def test_an_error_above_that_of_the_start(time_s):
    found = rd.error_bound(**SMOOTH, eta=0.1, tau=2, time_s=time_s, cluster=CLUSTER, bits=0)
    assert ("says nothing" in found.statement.advice) == (found >= 2)
    assert ("says nothing" in found.explain()) == (found >= 2)


def test_a_certified_worst_case_above_the_start():
    asked = {"time_s": 1e4, "delay_s": 10, "gap": 1, "sigma2": 1, "curvature": 1, "eta": 0.5, "workers": 16}
    found = rd.certify_tau(**asked, taus=(1, 2, 8))
    said = {(row["tau"], row["value"]) for row in found.missing if row["why"].startswith("says nothing")}
    values = [(row["tau"], name, row[name] or 0) for row in found.rows for name in ("published", "sharp", "certified")]
    assert said == {(tau, name) for tau, name, value in values if value >= 2}
    assert (8, "certified") in said
    assert found.tau == 2 or (found.tau, "certified") not in said


def test_no_tau_leads_where_every_bound_is_above_the_start():
    asked = {"delay_s": 10, "gap": 1, "sigma2": 1e6, "eta": 0.05, "workers": 4, "taus": (4, 8)}
    verdict = rd.certify_tau(**asked, time_s=1e4).answer().verdict
    assert "No tau has a rank" in verdict
    asked["sigma2"] = 1
    assert rd.certify_tau(**asked, time_s=1e4).answer().verdict.startswith("Average every")


@pytest.mark.parametrize("d", ["4611686018427387905", "1e19", "1e100"])
@pytest.mark.parametrize("operator", ["qsgd:4", "identity", "tcdq:omega=1"])
def test_a_length_beyond_64_bits_is_refused_where_operators_are_asked(d, operator):
    with pytest.raises(ValueError, match=r"d must satisfy d <= "):
        rd.allreduce(d=d, m=8, operator=operator)
    with pytest.raises(ValueError, match=r"d must satisfy d <= "):
        rd.plan(d=d, cluster=CLUSTER, operators=[operator], codec="free", target=0.1)


UNCERTIFIED = "gaussian_block_miss"  # evaluated in float64 only
NO_BETTER = {  # the value that holds without the method, at points where the bound is larger
    "pasgd_iterations": ({"K": 1, "L": 1, "eta": "0.5", "gap": 1, "m": 1, "sigma2": 10, "tau": 1}, "2 = 2 L gap"),
    "pasgd_gap": ({"K": 1, "L": 1, "R0": 1, "eta": "0.1", "m": 1, "sigma2": 1, "tau": 1}, "0.5 = L R0^2/2"),
    "dcgd": ({"K": 9, "L": 1, "R0": 2, "eta": "0.1", "m": 1, "mu": 1, "omega": 1, "sigma2_opt": 99}, "4 = R0^2"),
    "tree_error": (
        {"m": 8, "mean_square": 1, "omega1": 10, "omega2": 1, "square_of_mean": "0.1", "tree_depth": 3},
        "0.1 = the error of an answer of zeros",
    ),
    "ef_sgd": ({"G": 1, "K": 1, "L": 1, "alpha": "0.9", "eta": "0.5", "gap": 9}, "1 = G^2"),
}


@pytest.mark.parametrize("name", NO_BETTER)
def test_an_upper_bound_that_is_no_better_than_the_start_says_nothing(name):
    at, words = NO_BETTER[name]
    assert words in rd.certify(name, **at).answer().facts["guarantee"]


def test_every_upper_bound_of_a_distance_or_a_gap_has_a_trivial_limit():
    """Also one that is added later: what a bound concludes decides, not its name."""
    kinds = GAPS | {Conclusion.DISTANCE, Conclusion.VOTE_ERROR}
    found = [bound for bound in all_bounds().values() if bound.side is Side.UPPER and bound.setting.concludes in kinds]
    assert {bound.setting.concludes for bound in found} == kinds
    for bound in found:
        example = {key: str(value) for key, value in bound.examples[0].at.items()}
        assert (trivial_limit(bound, example) is None) == bool(bound.setting.known_up_to), bound.name


@pooled(
    "name", sorted(name for name, bound in all_bounds().items() if bound.side is Side.UPPER and name != UNCERTIFIED)
)
def test_an_example_says_nothing_only_where_it_is_no_better(name):
    bound = all_bounds()[name]
    example = {key: str(value) for key, value in bound.examples[0].at.items()}
    found, limit = rd.certify(name, **example), trivial_limit(bound, example)
    assert ("guarantee" in found.statement.facts) == (limit is not None and float(found) >= limit[0])
