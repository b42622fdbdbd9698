"""Seconds, error and tau: hand values, agreement with the parts they are made of, and bad input."""

import pytest

import ratedist as rd
from bounds.theorems import pasgd_compressed, pasgd_iterations

CLUSTER = rd.Cluster(workers=4, bandwidth_bit_per_s=8e9, latency_s=0.0, step_s=1.0, compute="constant")
PROBLEM = {"L": 1, "sigma2": 1, "eta": 0.1, "gap": 1}


def test_error_by_hand():
    # a ring of 4 moves 1.5 messages of 4e9/3 bytes at 1e9 bytes/s: 2 s, hence 1.5 s a step at tau = 4; 100 steps fit
    bits = 8 * 4e9 / 3
    found = rd.error_bound(**PROBLEM, tau=4, time_s=150, cluster=CLUSTER, bits=bits)
    assert found == pytest.approx(0.255, rel=1e-8)  # whole bytes
    assert found.theorem == "pasgd_iterations"
    assert found.lo <= found <= found.hi
    assert any("K = time_s/c(tau)" in text for text in found.assumptions)


@pytest.mark.parametrize("compute", ["constant", "exponential"])
def test_error_is_the_theorem_at_the_steps_that_fit(compute):
    cluster = rd.Cluster(workers=8, step_s=0.1, compute=compute)
    steps = 600 / rd.runtime(cluster, tau=3, bits=1e8)
    plain = rd.error_bound(**PROBLEM, tau=3, time_s=600, cluster=cluster, bits=1e8)
    assert plain == pytest.approx(pasgd_iterations(**PROBLEM, tau=3, m=8, K=steps), rel=1e-12)
    steps = 600 / rd.runtime(cluster, tau=3, bits=1e8, exchange="gather")
    compressed = rd.error_bound(**PROBLEM, tau=3, time_s=600, cluster=cluster, bits=1e8, omega=2)
    assert compressed == pytest.approx(pasgd_compressed(**PROBLEM, tau=3, m=8, K=steps, omega=2), rel=1e-12)
    assert compressed.theorem == "pasgd_compressed"


def test_arrays_of_tau_give_the_curve():
    found = rd.error_bound(**PROBLEM, tau=[1, 2, 3], time_s=600, cluster=CLUSTER)
    for i, tau in enumerate((1, 2, 3)):
        assert found.values[i] == rd.error_bound(**PROBLEM, tau=tau, time_s=600, cluster=CLUSTER)
    assert rd.runtime(CLUSTER, tau=[[1], [2]], bits=[0, 1e9]).shape == (2, 2)


def test_tau_star_minimises_the_error_bound_of_constant_steps():
    cluster = rd.Cluster(workers=4, latency_s=1.0, step_s=1.0, compute="constant")
    problem = {"L": 1, "sigma2": 1, "eta": 0.02, "gap": 1, "time_s": 4000}
    best = rd.tau_star(**problem, cluster=cluster)
    errors = {tau: float(rd.error_bound(**problem, tau=tau, cluster=cluster)) for tau in range(1, 40)}
    assert min(errors, key=errors.get) == best.tau == best.safe == best.sharp == float(best)
    assert abs(best.tau - best.tau_real) < 1


def test_sharp_tau_is_at_least_as_good_with_stragglers():
    cluster = rd.Cluster(workers=16, latency_s=1e-3, step_s=0.1)
    problem = {"L": 1, "sigma2": 1, "eta": 0.01, "gap": 1, "time_s": 600}
    best = rd.tau_star(**problem, cluster=cluster)
    sharp, safe = (rd.error_bound(**problem, tau=tau, cluster=cluster) for tau in (best.sharp, best.safe))
    assert sharp <= safe
    assert best.sharp > best.safe


def test_tau_star_tells_the_cap_the_proof_and_the_smooth_value():
    best = rd.tau_star(**PROBLEM, time_s=1e4, cluster=rd.Cluster(workers=4, latency_s=5), third_derivative=0.5)
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
        (lambda: rd.runtime("ring", tau=1), "cluster must be a ratedist.Cluster"),
        (lambda: rd.runtime(CLUSTER, tau=0), "tau must satisfy 1 <= tau, an integer; got tau = 0: give"),
        (lambda: rd.runtime(CLUSTER, tau=1, exchange="shout"), "exchange must be sum or gather"),
        (lambda: rd.runtime(CLUSTER, tau=range(1, 20_001)), "at most 10000 points"),
        (
            lambda: rd.error_bound(**PROBLEM, tau=1, time_s=0.5, cluster=CLUSTER),
            "time_s must hold at least one local step",
        ),
        (lambda: rd.error_bound(**PROBLEM, tau=99, time_s=500, cluster=CLUSTER), "needs .* <= 1; got .* nothing there"),
        (lambda: rd.tau_star(**PROBLEM | {"sigma2": 0}, time_s=1, cluster=rd.Cluster(workers=2)), "sigma2 must be > 0"),
        (lambda: rd.tau_star(**PROBLEM | {"eta": -1}, time_s=1, cluster=CLUSTER), "eta must satisfy 0 < eta"),
        (lambda: rd.tau_star(**PROBLEM | {"eta": [1, 2]}, time_s=1, cluster=CLUSTER), "eta must be one number here"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
