"""Sentences that depend on numbers are computed from them, and calls that are recommended can be made."""

import json

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
    assert said == {"32 bits a parameter"}
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
    assert "Any number of steps: here local steps cost nothing" in text


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
    else:
        assert best.statement.advice.startswith("Average every")


@pytest.mark.parametrize("curvature", [None, "convex", 0.5])
def test_the_call_that_error_recommends_minimises_it(curvature):
    asked = {**PROBLEM, "time_s": 1e5, "cluster": CLUSTER, "bits": 0, "curvature": curvature}
    (advised,) = rd.error_bound(tau=3, **asked).statement.advised
    assert advised.call == "tau_star"
    best = rd.tau_star(**advised.arguments).sharp
    errors = {tau: float(rd.error_bound(tau=tau, **asked)) for tau in range(1, 17) if tau != best}
    assert rd.error_bound(tau=best, **asked) <= min(errors.values()) * (1 + 1e-4)
    assert rd.error_bound(tau=3, **asked | {"curvature": None}, omega=0.1).statement.advised == ()


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


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("curvature", [None, "convex", 0.1])
def test_no_best_tau_is_advised_without_noise(workers, curvature):
    cluster = rd.Cluster(workers=workers, step_s=0.1, compute="constant")
    asked = {"L": 0.5, "sigma2": 0, "gap": 1, "eta": 0.05, "time_s": 600, "bits": 0, "cluster": cluster}
    found = rd.error_bound(**asked, tau=2, curvature=curvature)
    assert "noise term is 0 at every tau" in found.statement.advice
    assert not found.statement.advised
    if workers > 1:
        with pytest.raises(ValueError, match="sigma2 must be > 0"):
            rd.tau_star(**asked, curvature=curvature)
