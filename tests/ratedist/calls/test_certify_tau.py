import json
import math
import sys

import pytest

import ratedist as rd
from ratedist.calls import call_of
from ratedist.interfaces.cli import main
from ratedist.records import to_json

NOISY = {"gap": 1, "delay_s": 10, "eta": 0.05, "sigma2": 1, "time_s": 1e4, "workers": 4}
KEPT = (4, 8, 12, 16)


def test_the_chain_of_bounds_shortens_from_left_to_right():
    best = rd.certify_tau(**NOISY, taus=KEPT)
    for row in best.rows:
        assert row["least"] < row["certified"] < row["sharp"] < (row["published"] or math.inf)
    assert (best.tau, best.is_minimax) == (16, False)
    taus = [
        min(best.rows, key=lambda row: row[name] or math.inf)["tau"] for name in ("published", "sharp", "certified")
    ]
    assert taus == [4, 12, 16]
    assert best.to_dict()["rows"][0]["tau"] == 4


def test_a_short_horizon_is_proved_minimax():
    best = rd.certify_tau(time_s=24, delay_s=4, zeta2=0.0025, taus=(1, 2))
    assert (best.tau, best.eta, best.is_minimax, best.taus) == (2, 1.0, True, (2,))
    scaled = rd.certify_tau(time_s=24, delay_s=4, zeta2=0.0025 * 36, L=2, R0=3, taus=(1, 2))
    assert scaled.eta == 0.5
    assert scaled.rows[1]["hi"] == pytest.approx(best.rows[1]["hi"] * 18, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"eta": None}, "needs zeta2, or all of eta, gap, sigma2, workers; missing: eta"),
        ({"zeta2": 1}, "with zeta2 there is no noise"),
        ({"eta": 2}, "needs 0 < eta L <= 1"),
        ({"curvature": 2}, "0 <= rho <= L"),
    ],
)
def test_what_is_missing_or_too_much_is_named(change, match):
    with pytest.raises(ValueError, match=match):
        rd.certify_tau(**(NOISY | change), taus=KEPT)


def test_the_command_says_what_is_proved(capsys):
    line = "certify_tau --time_s 1e4 --delay_s 10 --gap 1 --eta 0.05 --sigma2 1 --workers 4 --taus 4 16"
    assert main(line.split()) == 0
    text = capsys.readouterr().out
    assert "Average every 16 steps at eta = 0.05: least certified bound" in text


def test_the_route_answers_what_the_function_does():
    route = call_of("certify_tau").route
    assert route.answer(route.example).to_dict() == rd.certify_tau(**NOISY, taus=KEPT).to_dict()
    assert to_json(route.answer(NOISY | {"taus": 16}))["tau"] == 16


def test_a_route_without_the_solver_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(ValueError, match=r"more than the kept certificates: .*pip install 'ratedist\[pep\]'"):
        call_of("certify_tau").route.answer(NOISY | {"taus": [3]})
    with pytest.raises(ImportError):
        rd.certify_tau(**NOISY, taus=(3,))


@pytest.mark.parametrize("taus", [(0,), (4, 65)])
def test_periods_outside_the_reach_of_the_program_are_refused(taus):
    with pytest.raises(ValueError, match=f"taus must be integers from 1 to 64; got .*{taus[-1]}"):
        rd.certify_tau(**NOISY, taus=taus)


ONE_STEP = {"gap": 0.5, "delay_s": 0.01, "eta": 0.9, "sigma2": 1e-3, "workers": 4, "taus": (1,)}


@pytest.mark.parametrize(("time_s", "rounds"), [(1.01, 1), (1.9, 1), (2.0199, 1), (2.02, 2), (50.5, 50), (50.49, 49)])
def test_only_whole_rounds_count(time_s, rounds):
    (row,) = rd.certify_tau(time_s=time_s, **ONE_STEP).rows
    steps = 2 * 0.5 / (0.9 * rounds) + 1e-3 * 0.9 / 4
    assert row["rounds"] == rounds
    assert row["certified"] == pytest.approx(steps, rel=1e-12)
    assert row["least"] <= row["certified"]


def test_a_budget_without_a_whole_round_is_refused_as_by_error():
    message = "time_s must hold at least one round of 2 steps and an averaging, 2.01 s > 0; got time_s = 2: give more"
    with pytest.raises(ValueError, match=message):
        rd.certify_tau(time_s=2, **ONE_STEP | {"taus": (2, 4)})
    with pytest.raises(ValueError, match="at least one round of 1 steps and an averaging, 5 s"):
        rd.certify_tau(time_s=4, delay_s=4, zeta2=0.0025, taus=(2, 1))
    cluster = rd.Cluster(workers=4, compute="constant", step_s=1, latency_s=0.01)
    with pytest.raises(ValueError, match="at least one round of 2 steps and an averaging"):
        rd.error_bound(tau=2, time_s=2, eta=0.9, L=1, sigma2=1e-3, gap=0.5, bits=0, cluster=cluster)


def test_a_period_that_is_longer_than_the_budget_has_no_value():
    best = rd.certify_tau(time_s=3, **ONE_STEP | {"taus": (1, 4)})
    assert best.tau == 1
    assert best.rows[1] == {"tau": 4, "rounds": 0} | dict.fromkeys(("published", "sharp", "certified", "least"))
    assert {row["why"] for row in best.missing} == {"one round takes 4.01 s > time_s = 3"}


@pytest.mark.parametrize(
    ("eta", "tau", "covered"), [(0.5, 2, True), (0.5, 4, False), (0.25, 4, True), (0.25, 5, False)]
)
def test_theorem_1_is_none_outside_its_condition(eta, tau, covered, capsys):
    asked = {"gap": 1, "delay_s": 10, "sigma2": 1, "time_s": 1e4, "workers": 16, "curvature": 1, "eta": eta}
    best = rd.certify_tau(**asked, taus=(tau,))
    load = eta + eta**2 * tau * (tau - 1)
    assert (best.rows[0]["published"] is not None) is covered is (load <= 1)
    lost = [row for row in best.missing if row["value"] == "published"]
    assert bool(lost) is not covered
    if lost:
        assert "L*eta <= 1 fails, the left side is" in lost[0]["why"]
        assert lost[0]["why"].endswith(f"{load:.6g}")
        words = [f"--{name}={value}" for name, value in asked.items()]
        assert main(["certify_tau", *words, "--taus", str(tau)]) == 0
        assert "pasgd_iterations: " in (shown := " ".join(capsys.readouterr().out.split()))
        assert f"{load:.6g}" in shown
        main(["certify_tau", *words, "--taus", str(tau), "--json"])
        record = json.loads(capsys.readouterr().out)
        assert record["rows"][0]["published"] is None
        assert record["missing"] == lost
        route = call_of("certify_tau").route
        assert to_json(route.answer(asked | {"taus": [tau]})) == record


def test_no_proved_bound_is_below_what_a_quadratic_attains():
    for tau in (1, 2, 3, 4):
        for eta in (0.1, 0.5, 0.99, 1):
            asked = {"gap": 1, "delay_s": 1, "sigma2": 1, "time_s": 100, "workers": 3, "eta": eta, "curvature": 0.5}
            (row,) = rd.certify_tau(**asked, taus=(tau,)).rows
            for name in ("published", "sharp", "certified"):
                assert row[name] is None or row["least"] <= row[name] * (1 + 1e-9), (tau, eta, name)


def test_a_rate_of_one_over_L_is_answered_and_a_lost_proof_loses_no_other_row():
    alone = rd.certify_tau(**NOISY | {"eta": 1}, taus=(1,))
    assert alone.rows[0]["certified"] == alone.rows[0]["sharp"] == pytest.approx(2 * 11 / 9999 + 1 / 4, rel=1e-9)
    both = rd.certify_tau(**NOISY | {"eta": 1}, taus=(1, 2))
    assert both.rows[0] == alone.rows[0]
    assert both.rows[1]["sharp"] > both.rows[1]["least"] > 0
    assert {row["why"] for row in both.missing if row["value"] == "certified"} == {
        "no certificate found at eta L = 1, tau = 2"
    }
