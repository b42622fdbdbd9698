"""The certified seconds of a step against published table values, the float model, and Monte-Carlo-free oracles."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ratedist as rd
from bounds import Interval
from bounds.runtime import LogNormal
from ratedist.cluster.cluster import MOST_TAU


def harmonic(m):
    return sum((Fraction(1, k) for k in range(1, m + 1)), Fraction(0))


@given(m=st.integers(1, 200), step_ms=st.integers(1, 1000))
def test_single_exponential_steps_take_the_harmonic_number(m, step_ms):
    cluster = rd.Cluster(workers=m, step_s=step_ms / 1000)
    found = cluster.slowest_s(1)
    assert Fraction(found.lo) <= harmonic(m) * Fraction(step_ms, 1000) <= Fraction(found.hi)
    assert found.relative_width < 1e-14


@pytest.mark.parametrize(("tau", "value"), [(1, "3.3807"), (4, "2.0626"), (10, "1.6337"), (50, "1.2654")])
def test_published_means_of_sixteen_exponential_workers(tau, value):
    found = rd.Cluster(workers=16, step_s=1).slowest_s(tau)
    assert abs(found.midpoint - float(value)) <= 5e-5
    assert found.relative_width < 1e-13


def slowest_of_two(tau):
    """Two workers by exact rationals: the mean of the larger of two Erlang sums over tau."""
    total = Fraction(0)
    for k in range(tau):  # int_0^inf 2 Q - Q^2, Q = e^-t sum t^k/k!
        for j in range(tau):
            total -= Fraction(math.comb(k + j, k), 2 ** (k + j + 1))
    return (2 * tau + total) / tau


@pytest.mark.parametrize("tau", [1, 2, 3, 7, 20])
def test_two_workers_equal_the_exact_rational(tau):
    found = rd.Cluster(workers=2, step_s=1).slowest_s(tau)
    assert Fraction(found.lo) <= slowest_of_two(tau) <= Fraction(found.hi)


@pytest.mark.parametrize("compute", ["constant", "exponential", "half_exponential"])
@pytest.mark.parametrize("exchange", ["sum", "gather"])
@pytest.mark.parametrize("topology", ["ring", "tree", "parameter_server"])
def test_enclosures_contain_what_the_runtime_model_computes(compute, exchange, topology):
    cluster = rd.Cluster(workers=5, step_s=0.08, compute=compute, topology=topology)
    for tau in (1, 3, MOST_TAU + 1):
        found = cluster.step_seconds(tau, 1e9, exchange)
        model = cluster.model(exchange).seconds_per_iteration(tau=tau, bits=1e9)
        assert found.lo * (1 - 1e-12) <= model <= found.hi * (1 + 1e-12)


def test_any_law_of_step_times_gets_its_mean_and_a_wide_interval():
    law = LogNormal(-0.125, 0.5)
    found = rd.runtime(rd.Cluster(workers=16, compute=law), tau=4, bits=0)
    assert found.lo <= found <= found.hi
    assert found == pytest.approx(law.expected_max(m=16, tau=4) + 30 * 50e-6 / 4)


def test_one_worker_waits_for_nobody():
    assert rd.Cluster(workers=1, step_s=0.5).step_seconds(3, 1e9) == Interval(0.5, 0.5)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"workers": 0}, "workers must satisfy 1 <= workers, an integer; got workers = 0: give"),
        ({"workers": 1e7}, "workers <= 1000000"),
        ({"workers": 2, "bandwidth_bit_per_s": 0}, "bandwidth_bit_per_s must satisfy 0 < bandwidth_bit_per_s"),
        ({"workers": 2, "latency_s": -1}, "latency_s must satisfy 0 <= latency_s"),
        ({"workers": 2, "step_s": 0}, "where compute is random"),
        (
            {"workers": 2, "compute": "fast"},
            "compute must be one of constant, exponential, half_exponential; got 'fast'",
        ),
        ({"workers": 2, "topology": "torus"}, "topology must be one of ring"),
    ],
)
def test_bad_clusters_are_refused(keywords, words):
    with pytest.raises(ValueError, match=words):
        rd.Cluster(**keywords)
