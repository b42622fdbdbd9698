"""Sentences that depend on numbers are computed from them, and calls that are recommended can be made."""

import json
import math
import re
from contextlib import suppress

import numpy as np
import pytest

import ratedist as rd
from ratedist.calls import all_calls
from ratedist.cluster.compressors import limit_rate
from ratedist.interfaces.cli import main

PROBLEM = {"L": 1, "sigma2": 1, "gap": 1, "eta": 0.05}
CLUSTER = rd.Cluster(workers=4, step_s=1, latency_s=1, compute="constant")


def shown(line, capsys):
    main(line.split())
    streams = capsys.readouterr()
    return " ".join((streams.out + streams.err).split())


# -- the length of a message -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["tau", "runtime", "error"])
def test_the_length_of_a_message_is_asked_for(name, capsys):
    rest = {"tau": "", "runtime": " --tau 8", "error": " --tau 8"}[name]
    problem = "" if name == "runtime" else " --L 1 --sigma2 1 --gap 1 --eta 0.05 --time_s 600"
    line = f"{name} --workers 16{problem}{rest}"
    assert "give bits, or d for the parameters sent in binary32" in shown(line, capsys)
    assert "give bits or d, not both" in shown(f"{line} --bits 3 --d 4", capsys)
    by_d, by_bits = (json.loads(shown(f"{line} {each} --json", capsys)) for each in ("--d 1e6", "--bits 32e6"))
    said = set(by_d.pop("assumed")) - set(by_bits.pop("assumed"))
    assert said == {"32 bits per parameter"}
    stated = json.dumps(by_bits).replace('"32e6"', '"32000000"')
    assert by_d == json.loads(stated)
    assert '"value"' in shown(line.replace("--workers 16", "--workers 1") + " --json", capsys)
    route = all_calls()[name].route
    request = dict(route.example)
    del request["bits"]
    with pytest.raises(ValueError, match="bits, the length of one message, must be given"):
        route.answer(request)


# -- tau ---------------------------------------------------------------------------------------------------------------
def test_only_published_bounds_are_called_published():
    asked = {"eta": 0.01, "time_s": 600, "L": 1, "sigma2": 1, "gap": 1, "bits": 1e9, "cluster": CLUSTER}
    assert "minimise the published error bound" in rd.tau_star(**asked).explain()
    for curvature, bound in (("convex", "pasgd_convex_sharp"), (0.1, "pasgd_smooth_sharp")):
        text = rd.tau_star(**asked, curvature=curvature).explain()
        assert "published" not in text
        assert f"minimise the bound {bound} in seconds" in text


def test_one_worker_is_not_told_that_its_rate_is_too_large(capsys):
    text = shown("tau --workers 1 --eta 0.01 --time_s 600 --L 1 --sigma2 1 --gap 1 --curvature convex", capsys)
    assert "eta L > 1" not in text
    assert "tau changes nothing" in text


def test_no_cap_is_said_to_be_none(capsys):
    text = shown("tau --workers 4 --bits 0 --eta 2 --time_s 600 --L 1 --sigma2 1 --gap 1 --explain", capsys)
    assert "None" not in text
    assert "holds at no tau: eta*L = 2" in text


@pytest.mark.parametrize("time_s", [1e-3, 0.5, 6.9])
def test_a_budget_without_a_round_has_no_tau(time_s):
    with pytest.raises(ValueError, match="at least one round of 1 steps and an averaging, 7 s > 0"):
        rd.tau_star(**PROBLEM, time_s=time_s, cluster=CLUSTER, bits=0)


@pytest.mark.parametrize("time_s", [7, 8, 20, 60, 600, 1e5])
@pytest.mark.parametrize("curvature", [None, "convex", 0.5])
def test_the_advised_period_fits_or_is_said_not_to(time_s, curvature):
    best = rd.tau_star(**PROBLEM, time_s=time_s, cluster=CLUSTER, bits=0, curvature=curvature)
    try:
        rd.error_bound(**PROBLEM, tau=best.safe, time_s=time_s, cluster=CLUSTER, bits=0, curvature=curvature)
    except ValueError:
        assert "longer than the budget" in best.statement.advice
        assert best.recommended != best.safe or "longer than the budget" in best.verdict
    else:
        assert best.statement.advice.startswith("Average every")


@pytest.mark.parametrize(("eta", "why"), [(0.01, "waiting for stragglers is counted"), (0.5, "allows no more")])
def test_the_interval_names_both_numbers_of_steps_where_they_differ(eta, why):
    """The number itself is that of Theorem 2, for steps of equal length and without the cap of the learning rate."""
    cluster = rd.Cluster(workers=16, step_s=0.08, compute="exponential" if eta < 0.1 else "constant")
    best = rd.tau_star(L=1, sigma2=1e-4 if eta == 0.5 else 1, gap=1, eta=eta, time_s=600, cluster=cluster, bits=8e8)
    assert best.recommended != best.tau
    interval = best.answer().evidence["interval"]
    assert f"gives {best.tau} exactly, for steps of equal length; the answer is {best.recommended} because" in interval
    assert why in interval


POWERS = [2**k for k in range(7)]  # the next is outside the condition


@pytest.mark.parametrize("tau", [1, 3, 8, 50])
@pytest.mark.parametrize("settings", [{}, {"curvature": "convex"}, {"curvature": 0.5}, {"omega": 0.1}, {"sigma2": 0}])
def test_the_power_of_two_that_error_recommends_has_the_smallest_bound(tau, settings):
    asked = {**PROBLEM, "time_s": 1e5, "cluster": CLUSTER, "bits": 0, "eta": 0.01, **settings}
    found = rd.error_bound(tau=tau, **asked)
    errors = {power: float(rd.error_bound(tau=power, **asked)) for power in POWERS}
    best = min(errors, key=errors.get)
    if errors[best] < found:
        (advised,) = found.statement.advised
        assert float(rd.error_bound(**advised.arguments)) == errors[best]
        assert f"tau = {best} has the smallest bound" in found.statement.advice
    else:
        assert found.statement.advised == ()
        assert found.statement.advice == "No other power of two as tau has a smaller bound"


SAYS_NOTHING = [  # a lower eta and more time, more time alone, both, both with a compressor, more time without noise
    {"sigma2": 1e3, "eta": 0.3, "tau": 1, "time_s": 100},
    {"sigma2": 1e-3, "eta": 0.001, "tau": 8, "time_s": 10},
    {"sigma2": 1e9, "eta": 0.01, "tau": 40, "time_s": 1000},
    {"sigma2": 30, "eta": 0.1, "tau": 2, "time_s": 50, "omega": 1.5},
    {"sigma2": 0, "eta": 1e-6, "tau": 2, "time_s": 50, "curvature": "convex"},
]


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("settings", SAYS_NOTHING)
def test_a_bound_that_says_nothing_names_values_at_which_it_says_something(workers, settings):
    cluster = rd.Cluster(workers=workers, bandwidth_bit_per_s=1e10, latency_s=1e-4, step_s=0.5, compute="constant")
    asked = {"L": 1, "gap": 1, "cluster": cluster, "bits": 1e9, **settings}
    found = rd.error_bound(**asked)
    assert "It says nothing" in found.statement.advice
    (advised,) = found.statement.advised
    assert rd.error_bound(**advised.arguments) < 2
    alone = math.inf
    with suppress(ValueError):
        alone = float(rd.error_bound(**asked | {"time_s": 1e40}))
    assert ("No time is enough at this eta" in found.statement.advice) == (alone >= 2)


def test_a_start_at_the_minimum_has_no_better_schedule():
    found = rd.error_bound(**PROBLEM | {"gap": 0}, tau=2, time_s=1e4, cluster=CLUSTER, bits=0)
    assert found.statement.advised == ()
    assert found.statement.advice.endswith("With gap = 0 the start is a minimum, and no schedule improves on it")


@pytest.mark.parametrize("given", [{}, {"sigma2": "1:0.5:2"}])
@pytest.mark.parametrize("settings", [{}, {"curvature": 0.1}, {"curvature": "convex"}, {"hessian_lipschitz": 1}])
def test_one_worker_is_told_that_tau_changes_nothing(settings, given):
    cluster = rd.Cluster(workers=1, bandwidth_bit_per_s=1e10, latency_s=1e-4, step_s=0.1)
    found = rd.tau_star(**PROBLEM | given, time_s=600, cluster=cluster, bits=1e9, **settings)
    text = f"{found.answer()} {found.statement.advice}"
    assert "nobody to average with: tau changes nothing" in text
    assert "pays" not in text
    assert "to be safe" not in text


@pytest.mark.parametrize(("latency_s", "pays"), [(0, False), (1e-3, True)])
def test_an_averaging_that_costs_nothing_is_not_said_to_pay_less_often(latency_s, pays):
    cluster = rd.Cluster(workers=4, latency_s=latency_s, step_s=0.1, compute="constant")
    found = rd.tau_star(**PROBLEM, time_s=600, cluster=cluster, bits=0)
    assert ("more pays" in f"{found.answer()} {found.statement.advice}") == pays


@pytest.mark.parametrize("time_s", [8, 12, 20, 40, 100])
@pytest.mark.parametrize("sigma2", [1e-6, 1e-3, "1e-3:1e-5:1"])
def test_no_period_that_is_named_is_longer_than_the_budget(time_s, sigma2):
    cluster = rd.Cluster(workers=8, latency_s=1, step_s=0.5)
    with suppress(ValueError):
        found = rd.tau_star(**PROBLEM | {"sigma2": sigma2}, time_s=time_s, cluster=cluster, bits=0)
        for tau in map(int, re.findall(r"every (\d+)", found.statement.advice)):
            assert tau * cluster.step_seconds_value(tau, 0)[0] <= time_s or "longer than the" in found.statement.advice


# -- bits, solve and gap -----------------------------------------------------------------------------------------------
LEVELS = [1e-300, 1e-12, 1e-9, 2.0**-30, 1e-6, 1e-3, 0.1, 0.5, 0.999, 1 - 2.0**-40, 1 - 2.0**-41]


def measured_or_exact(op):
    """Return the gap on a vector, 0 where a message of binary32 makes no error, at very small constants."""
    x = np.random.default_rng(0).standard_normal(300)
    return 0.0 if rd.measure(op, x, draws=1).gap is None else float(rd.gap(op, x, draws=1))


@pytest.mark.parametrize(("name", "level"), [(n, v) for n in ("omega", "alpha") for v in LEVELS] + [("omega", 1e12)])
def test_bits_recommends_what_can_be_made(name, level):
    found = rd.bits_lower_bound(d=10, **{name: level})
    rate = limit_rate(level, unbiased=name == "omega")
    assert ("fewer than binary32" in found.statement.advice) == (rate <= 32)
    assert ("more than binary32" in found.statement.advice) == (rate > 32)
    for advised in found.statement.advised:
        assert advised.in_words() in found.statement.advice
        assert np.isfinite(measured_or_exact(**advised.arguments))
    taken = 2.0**-20 <= level <= 2.0**20 if name == "omega" else 2.0**-30 <= level <= 1 - 2.0**-40
    assert bool(found.statement.advised) == taken


def test_too_few_bits_are_answered_with_how_many_are_needed(capsys):
    text = shown("solve --d 1e6 --bits 10 --alpha --theorem worst_case_bits", capsys)
    assert "nowhere" not in text
    assert "at least 19.9" in text


@pytest.mark.parametrize("d", [2, 3, 10, 100, 3000])
def test_what_gap_says_of_tcdq_is_measured(d):
    x = np.random.default_rng(d).standard_normal(d)
    found = rd.gap("qsgd:1", x)
    assert "0.1 bits" not in found.explain()
    assert "about the length of the longest message" not in found.explain()
    for advised in found.statement.advised:
        measured = rd.gap(**advised.arguments, x=x)
        assert measured < found
        assert f"{float(measured):.3g} more than the limit" in found.statement.advice
    if d == 3000:
        assert found.statement.advised


@pytest.mark.parametrize("curvature", [None, "convex", 0.1])
def test_without_noise_there_is_no_best_tau(curvature):
    cluster = rd.Cluster(workers=3, step_s=0.1, compute="constant")
    with pytest.raises(ValueError, match="sigma2 must be > 0"):
        rd.tau_star(L=0.5, sigma2=0, gap=1, eta=0.05, time_s=600, bits=0, cluster=cluster, curvature=curvature)
