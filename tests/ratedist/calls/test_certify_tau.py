import sys

import pytest

import ratedist as rd
from ratedist.calls import call_of
from ratedist.cli import main
from ratedist.records import to_json

NOISY = {"gap": 1, "delay_s": 10, "eta": 0.05, "sigma2": 1, "time_s": 1e4, "workers": 4}
KEPT = (4, 8, 12, 16)


def test_the_chain_of_bounds_shortens_from_left_to_right():
    best = rd.certify_tau(**NOISY, taus=KEPT)
    for row in best.rows:
        assert row["least"] < row["certified"] < row["sharp"] < row["published"]
    assert (best.tau, best.is_minimax) == (16, False)
    taus = [min(best.rows, key=lambda row: row[name])["tau"] for name in ("published", "sharp", "certified")]
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
    assert "16 at eta = 0.05 (least certified bound)" in text


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
