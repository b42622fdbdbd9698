"""Seconds, error and tau: hand values, agreement with the parts they are made of, and bad input."""

import pytest

import ratedist as rd
from bounds import Interval
from bounds.estimate import Estimate
from bounds.runtime import AutoregressiveLogNormal, Pareto, rounds_by
from bounds.tau import tau_third_order
from bounds.theorems import pasgd_compressed, pasgd_iterations, pasgd_runtime

CLUSTER = rd.Cluster(workers=4, bandwidth_bit_per_s=8e9, latency_s=0.0, step_s=1.0, compute="constant")
PROBLEM = {"L": 1, "sigma2": 1, "eta": 0.1, "gap": 1}


def test_error_by_hand():
    # a ring of 4 moves 1.5 messages of 4e9/3 bytes at 1e9 bytes/s: 2 s, hence 6 s a round at tau = 4; 25 rounds fit
    bits = 8 * 4e9 / 3
    found = rd.error_bound(**PROBLEM, tau=4, time_s=151, cluster=CLUSTER, bits=bits)
    assert found == pytest.approx(0.255, rel=1e-8)
    assert found.theorem == "pasgd_wall_clock"
    assert found.lo <= found <= found.hi
    assert found.certified
    assert any("rounds end as on 4 equal workers" in text for text in found.assumptions)


def test_a_round_under_way_does_not_count():
    one = rd.Cluster(workers=1, latency_s=0.0, step_s=1.0, compute="constant")
    at = {"L": 1, "sigma2": 0, "eta": 1, "gap": 0.5, "tau": 1, "cluster": one}
    assert rd.error_bound(**at, time_s=1.9, bits=0) == 1.0  # x^2/2 from 1: the gradient of the one step that was made
    assert rd.error_bound(**at, time_s=2, bits=0) == 0.5


@pytest.mark.parametrize(("time_s", "truth"), [(3, 0.4327), (10, 0.11301), (30, 0.034527)])
def test_random_times_count_by_the_mean_of_the_inverse(time_s, truth):
    # F = x^2/2 from 1, eta = 1: 1/N given that a round has ended, of N Poisson with mean time_s
    one = rd.Cluster(workers=1, latency_s=0.0, step_s=1.0)
    found = rd.error_bound(L=1, sigma2=0, eta=1, gap=0.5, tau=1, time_s=time_s, cluster=one, bits=0)
    assert truth <= found <= 1.1 * truth


@pytest.mark.parametrize("compute", ["constant", "exponential"])
def test_error_is_the_theorem_at_the_rounds_that_end(compute):
    cluster = rd.Cluster(workers=8, step_s=0.1, compute=compute)
    for omega, theorem, exchange in ((0, pasgd_iterations, "sum"), (2, pasgd_compressed, "gather")):
        rounds = rounds_by(cluster.model(exchange), time_s=600, tau=3, bits=1e8)
        found = rd.error_bound(**PROBLEM, tau=3, time_s=600, cluster=cluster, bits=1e8, omega=omega)
        at = {**PROBLEM, "tau": 3, "m": 8, "K": rounds.steps} | ({"omega": omega} if omega else {})
        assert found == pytest.approx(theorem(**at), rel=1e-9)


def test_any_law_of_independent_steps_has_an_error_bound():
    steps = Pareto(0.05, 2.0)
    cluster = rd.Cluster(workers=4, compute=steps)
    found = rd.error_bound(**PROBLEM, tau=5, time_s=60, cluster=cluster, bits=0)
    assert found == pytest.approx(
        pasgd_iterations(**PROBLEM, tau=5, m=4, K=60 / rd.runtime(cluster, tau=5, bits=0)), rel=0.1
    )
    slow = rd.Cluster(workers=4, compute=AutoregressiveLogNormal(0.1, 0.3, 0.9))
    with pytest.raises(ValueError, match="rounds must take independent times; got AutoregressiveLogNormal"):
        rd.error_bound(**PROBLEM, tau=5, time_s=60, cluster=slow, bits=0)


ESTIMATES = {"L": "1:0.5:2", "sigma2": Estimate(1.0, Interval(0.5, 3.0), 0.95, "low by deflation"), "gap": None}


def test_uncertain_constants_give_an_estimate_between_its_corners():
    at = {"eta": 0.02, "tau": 4, "time_s": 600, "cluster": CLUSTER}
    found = rd.error_bound(**at, **ESTIMATES, bits=0)
    assert found == rd.error_bound(**at, L=1, sigma2=1, gap=1, bits=0)
    assert found.lo == pytest.approx(rd.error_bound(**at, L=0.5, sigma2=0.5, gap=0.1, bits=0), rel=1e-9)
    assert found.hi == pytest.approx(rd.error_bound(**at, L=2, sigma2=3, gap=10, bits=0), rel=1e-9)
    assert not found.certified
    for word in ("about", "not certified", "for true constants", "over L, sigma2, gap"):
        assert word in found.explain()
    for words in ("L = 1 is estimated, 0.5 to 2 at level 0.95", "low by deflation", "gap = 1 is assumed"):
        assert any(words in text for text in found.assumptions)
    curve = rd.error_bound(**at | {"tau": [1, 4]}, **ESTIMATES, bits=0)
    assert curve[1].hi == found.hi


def test_tau_star_of_uncertain_constants_is_never_exact():
    at = {"eta": 0.02, "time_s": 4000, "cluster": rd.Cluster(workers=4, latency_s=1.0, step_s=1.0, compute="constant")}
    found = rd.tau_star(**at, **ESTIMATES, bits=0)
    corners = [
        rd.tau_star(**at, L=L, sigma2=s, gap=g, bits=0).tau
        for L in (0.5, 1, 2)
        for s in (0.5, 1, 3)
        for g in (0.1, 1, 10)
    ]
    assert (found.lo, found.hi) == (min(corners), max(corners))
    assert found.tau == rd.tau_star(**at, L=1, sigma2=1, gap=1, bits=0).tau
    assert not found.certified
    assert "exactly" not in found.explain()
    assert "about" in found.explain()
    nothing = rd.tau_star(**at, L=1, gap=1, sigma2=Estimate(1.0, Interval(-1.0, float("inf")), 0.95), bits=0)
    assert (nothing.lo, nothing.hi) == (1.0, float("inf"))
    assert rd.tau_star(**at, L=1, sigma2=1, gap=1, bits=0).certified


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1:2", "an estimate of L must read value:low:high"),
        ("1:2:3", "low <= value <= high"),
        ("1:0.5:2:7", "0 < level < 1"),
        ("1:a:2", "L must satisfy 0 < L"),
    ],
)
def test_a_text_that_is_no_estimate_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        rd.tau_star(eta=0.01, time_s=600, cluster=CLUSTER, L=text, bits=0)


def test_arrays_of_tau_give_the_curve():
    found = rd.error_bound(**PROBLEM, tau=[1, 2, 3], time_s=600, cluster=CLUSTER, bits=0)
    for i, tau in enumerate((1, 2, 3)):
        assert found.values[i] == rd.error_bound(**PROBLEM, tau=tau, time_s=600, cluster=CLUSTER, bits=0)
    assert rd.runtime(CLUSTER, tau=[[1], [2]], bits=[0, 1e9]).shape == (2, 2)


def test_tau_star_minimises_the_error_bound_of_constant_steps():
    cluster = rd.Cluster(workers=4, latency_s=1.0, step_s=1.0, compute="constant")
    problem = {"L": 1, "sigma2": 1, "eta": 0.02, "gap": 1, "time_s": 4000}
    best = rd.tau_star(**problem, cluster=cluster, bits=0)
    delay_s, at = 6.0, {"m": 4, "step_s": 1.0}
    errors = {tau: pasgd_runtime(**problem, **at, delay_s=delay_s, tau=tau) for tau in range(1, 40)}
    assert min(errors, key=errors.get) == best.tau == best.safe == best.sharp == float(best)
    ended = {tau: float(rd.error_bound(**problem, tau=tau, cluster=cluster, bits=0)) for tau in range(1, 40)}
    rounds = problem["time_s"] / (best.tau + delay_s)
    assert all(errors[tau] <= ended[tau] * (1 + 1e-12) for tau in errors)
    assert ended[best.tau] <= min(ended.values()) * (1 + 2 / rounds)
    assert any("only rounds ended by time_s" in text for text in best.assumptions)
    assert abs(best.tau - best.tau_real) < 1


def test_sharp_tau_is_at_least_as_good_with_stragglers():
    cluster = rd.Cluster(workers=16, latency_s=1e-3, step_s=0.1)
    problem = {"L": 1, "sigma2": 1, "eta": 0.01, "gap": 1, "time_s": 600}
    best = rd.tau_star(**problem, cluster=cluster, bits=0)
    sharp, safe = (rd.error_bound(**problem, tau=tau, cluster=cluster, bits=0) for tau in (best.sharp, best.safe))
    assert sharp <= safe
    assert best.sharp > best.safe


def test_tau_star_tells_the_cap_the_proof_and_the_smooth_value():
    best = rd.tau_star(**PROBLEM, time_s=1e4, cluster=rd.Cluster(workers=4, latency_s=5), third_derivative=0.5, bits=0)
    assert best.cap == 10
    assert best.safe == min(best.tau, 10)
    assert best.smooth is not None
    assert best.derivation().minimiser is not None
    assert "\\tau^*" in best.latex()
    assert best.to_dict()["safe"] == best.safe
    assert "Average every" in best.explain()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rd.runtime("ring", tau=1, bits=0), "cluster must be a ratedist.Cluster"),
        (lambda: rd.runtime(CLUSTER, tau=0, bits=0), "tau must satisfy 1 <= tau, an integer; got tau = 0: give"),
        (lambda: rd.runtime(CLUSTER, tau=1, exchange="shout", bits=0), "exchange must be sum or gather"),
        (lambda: rd.runtime(CLUSTER, tau=range(1, 20_001), bits=0), "at most 10000 points"),
        (
            lambda: rd.error_bound(**PROBLEM, tau=1, time_s=0.5, cluster=CLUSTER, bits=0),
            "time_s must hold at least one round",
        ),
        (
            lambda: rd.error_bound(**PROBLEM, tau=99, time_s=500, cluster=CLUSTER, bits=0),
            "needs .* <= 1; got .* nothing there",
        ),
        (
            lambda: rd.tau_star(**PROBLEM | {"sigma2": 0}, time_s=1, cluster=rd.Cluster(workers=2), bits=0),
            "sigma2 must be > 0",
        ),
        (lambda: rd.tau_star(**PROBLEM | {"eta": -1}, time_s=1, cluster=CLUSTER, bits=0), "eta must satisfy 0 < eta"),
        (
            lambda: rd.tau_star(**PROBLEM | {"eta": [1, 2]}, time_s=1, cluster=CLUSTER, bits=0),
            "eta must be one number here",
        ),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_convex_problem_has_a_smaller_error_and_a_longer_period():
    slow = rd.Cluster(workers=4, latency_s=10 / 6, step_s=1.0, compute="constant")  # a ring of four takes six hops
    at = {"L": 1, "sigma2": 1, "eta": 0.05, "gap": 1, "tau": 13, "time_s": 1e4, "cluster": slow}
    known, unknown = rd.error_bound(**at, curvature="convex", bits=0), rd.error_bound(**at, bits=0)
    assert known == pytest.approx(2 / (0.05 * 13 * 434) + 0.0125 + 0.75 * 0.0025 * 12 / 8, rel=1e-9)
    assert (known.theorem, unknown.theorem) == ("pasgd_convex_sharp_wall_clock", "pasgd_wall_clock")
    assert unknown > 2 * known
    coded = rd.error_bound(**at | {"eta": 0.01}, omega=1, bits=8, curvature=0)
    assert coded.theorem == "pasgd_compressed_convex_wall_clock"
    assert "F is convex" in known.explain()
    assert "F is convex" not in unknown.explain()


def test_hessians_above_minus_rho_lie_between_convex_and_nothing_known():
    slow = rd.Cluster(workers=4, latency_s=10 / 6, step_s=1.0, compute="constant")
    at = {"L": 1, "sigma2": 1, "eta": 0.05, "gap": 1, "tau": 13, "time_s": 1e4, "cluster": slow}
    values = [rd.error_bound(**at, curvature=c, bits=0) for c in ("convex", 0.001, 0.1, None)]
    assert values == sorted(values)
    assert values[2].theorem == "pasgd_smooth_sharp_wall_clock"
    growth = [(1 + 0.005 * 2.005) ** k - 1 for k in range(13)]  # MeanGrowth is their mean over y
    price = 0.75 * 0.0025 * 1.1**2 / 4 * sum(growth) / 13 / (0.005 * 2.005)
    assert values[2] == pytest.approx(2 / (0.05 * 13 * 434) + 0.0125 + price, rel=1e-9)
    assert values[2] in rd.error_bound(**at | {"tau": [1, 13]}, curvature=0.1, bits=0)
    with pytest.raises(ValueError, match="rho"):
        rd.error_bound(**at, curvature=2, bits=0)


@pytest.mark.parametrize("curvature", ["concave", -1, [0, 1], float("nan")])
def test_another_curvature_is_refused_in_one_sentence(curvature):
    with pytest.raises(ValueError, match=r"curvature .*convex"):
        rd.error_bound(**PROBLEM, tau=4, time_s=151, cluster=CLUSTER, curvature=curvature, bits=0)


def test_saddles_with_a_compressor_have_no_theorem():
    with pytest.raises(ValueError, match=r"curvature .*convex"):
        rd.error_bound(**PROBLEM, tau=4, time_s=151, cluster=CLUSTER, curvature=0.5, omega=1, bits=0)


def test_the_advice_spells_the_ends_as_the_interval_does():
    cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
    guess = rd.tau_star(eta=0.01, time_s=600, cluster=cluster, bits=32 * 25_600_000)

    assert (guess.lo, guess.hi) == (1, 2274)
    assert guess.statement.advice.startswith("From 1 to 2,274 over L, sigma2, gap")
    assert "from 1 to 2,274" in guess.explain()


LIPSCHITZ = {"eta": "0.05", "L": 1, "sigma2": 1, "gap": 1, "time_s": 10_000, "bits": 0}


@pytest.mark.parametrize(("curvature", "rho"), [("convex", 0), (None, 1), ("0.1", "0.1")])
@pytest.mark.parametrize("compute", ["constant", "exponential"])
def test_a_lipschitz_hessian_allows_the_steps_of_the_third_order_bound(curvature, rho, compute):
    cluster = rd.Cluster(workers=4, step_s=1, latency_s=2, compute=compute)
    delay_s = cluster.model().seconds_per_averaging(bits=0)
    given = {name: value for name, value in LIPSCHITZ.items() if name != "bits"}
    for constants in ({"hessian_lipschitz": "0.5"}, {"hessian_lipschitz": 2, "kurtosis": 9}):
        best = rd.tau_star(**LIPSCHITZ, cluster=cluster, curvature=curvature, **constants)
        expected = tau_third_order(**given, delay_s=delay_s, m=4, rho=rho, **constants).integer
        assert best.recommended == best.tau == expected
        assert ("kurtosis = 3" in best.statement.assumed) == ("kurtosis" not in constants)
        assert ("not counted" in best.verdict) == (compute == "exponential")
        assert best.explain()
    plain = rd.tau_star(**LIPSCHITZ, cluster=cluster, curvature=curvature)
    assert plain.third_order == {}


def test_a_kurtosis_alone_is_refused():
    with pytest.raises(ValueError, match="kurtosis must come with hessian_lipschitz; got kurtosis = 9 alone"):
        rd.tau_star(**LIPSCHITZ, cluster=rd.Cluster(workers=4), kurtosis=9)
