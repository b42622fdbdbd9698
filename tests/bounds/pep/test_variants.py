"""Compressed and overlapped rounds: the kept floors are proved, below the published bounds and above what happens."""

import math
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bounds import theorems
from bounds.pep import NotProved, least_floor, one_round, overlapped, solve, two_shots, variants, verify
from bounds.pep.variants import PROGRAMS, write_variants

ROWS = list(variants())
NO_START = {"gap": 0.0, "L": 1.0, "sigma2": 1.0, "K": 1}
SMALL = {"x": Fraction(1, 20), "m": 4, "tau": 4}


def floats(at):
    return {"eta" if name == "x" else name: float(value) for name, value in at.items() if name != "rho"}


def published(row):
    bound = theorems.pasgd_two_shot if row.kind == "two_shots" else theorems.pasgd_overlap
    return float(bound(**NO_START, **floats(row.at)))


def quadratic(row):
    """One round of curvature L from its minimiser, exactly; compression adds what it adds to F at the next start."""
    x, m, tau = (float(row.at[name]) for name in ("x", "m", "tau"))
    least = least_floor(x, int(m), int(tau))
    if row.kind == "overlapped":
        return least
    change = x**2 * sum((1 - x) ** (2 * k) for k in range(int(tau)))  # E|Delta_i|^2; of the mean a share 1/m
    first, second = float(row.at["omega1"]), float(row.at["omega2"])
    return least + ((1 + second) * first + second) * change / m / (x * tau)


def test_every_kept_floor_lies_between_a_quadratic_and_the_published_bound():
    before = time.process_time()
    floors = [row.floor.hi for row in ROWS]
    seconds = time.process_time() - before
    assert len(ROWS) >= 26
    assert {row.kind for row in ROWS} == {"two_shots", "overlapped"}
    for row, floor in zip(ROWS, floors, strict=True):
        assert quadratic(row) * (1 - 1e-7) <= floor < published(row)
    assert seconds < 3  # .5 s on a quiet core


@pytest.mark.parametrize(
    ("kind", "rest", "floor", "factor"),
    [
        ("two_shots", {"m": 4, "tau": 4, "rho": 0, "omega1": 1, "omega2": Fraction(1, 4)}, 0.03103, 1.85),
        ("two_shots", {"m": 4, "tau": 4, "rho": 1, "omega1": 1, "omega2": Fraction(1, 4)}, 0.03462, 1.66),
        ("two_shots", {"m": 16, "tau": 8, "rho": 1, "omega1": 1, "omega2": 0}, 0.01312, 2.05),
        ("overlapped", {"m": 4, "tau": 4, "rho": 1, "in_flight": 4}, 0.02295, 1.44),
        ("overlapped", {"m": 16, "tau": 8, "rho": 0, "in_flight": 4}, 0.00674, 5.68),
        ("overlapped", {"m": 16, "tau": 8, "rho": 1, "in_flight": 8}, 0.03296, 1.73),
    ],
)
def test_the_table_of_the_page(kind, rest, floor, factor):
    row = next(row for row in ROWS if row.kind == kind and row.at == {"x": Fraction(1, 20)} | rest)
    assert row.floor.hi == pytest.approx(floor, abs=5.1e-6)
    assert published(row) / row.floor.hi == pytest.approx(factor, abs=0.0051)


@pytest.mark.parametrize("rho", [0, 1])
def test_a_round_without_compression_or_flight_is_the_plain_one(rho):
    plain = solve(one_round(about="gradient", **SMALL, rho=Fraction(rho))).value
    exact = two_shots(**SMALL, rho=Fraction(rho), omega1=Fraction(0))
    assert solve(exact).value == pytest.approx(plain, rel=5e-6)
    waiting = overlapped(**SMALL, rho=Fraction(rho), in_flight=0)
    assert solve(waiting).value == pytest.approx(plain, rel=1e-4)


@pytest.mark.parametrize("m", [1, 4, 16])
@pytest.mark.parametrize("stages", [("1/2", "0"), ("0", "1/2"), ("1/2", "1/4")])
def test_one_compressed_step_costs_its_variance_once(m, stages):
    """At tau = 1 the published bound pays twice: it splits a change into noise and gradient, which are orthogonal."""
    first, second = map(Fraction, stages)
    value = solve(two_shots(x=Fraction(1, 5), m=m, tau=1, rho=Fraction(1), omega1=first, omega2=second)).value
    assert value == pytest.approx(0.2 / m * float((1 + first) * (1 + second)), rel=1e-5)


def test_floors_grow_with_the_variances_and_the_flight():
    first = [solve(two_shots(**SMALL, rho=Fraction(1), omega1=Fraction(w, 4))).value for w in (0, 1, 4)]
    second = [
        solve(two_shots(**SMALL, rho=Fraction(1), omega1=Fraction(1), omega2=Fraction(w, 8))).value for w in (0, 1)
    ]
    flight = [solve(overlapped(**SMALL, rho=Fraction(1), in_flight=delta)).value for delta in (1, 2, 4)]
    for values in (first, second, flight):
        assert values == sorted(values)
        assert values[-1] > 1.05 * values[0]


def test_kinks_with_averages_in_flight_stay_below():
    """The corrected merge of bounds.dynamics.outer on F' = max(x, -c), started together."""
    row = next(r for r in ROWS if r.kind == "overlapped" and (r.at["m"], r.at["in_flight"], r.at["rho"]) == (16, 8, 0))
    rng, eta, tau, delta, copies = np.random.default_rng(1), 0.05, 8, 8, 300
    kink = 0.5 * eta * math.sqrt(tau + delta)
    models, squares = np.zeros((copies, 16)), []
    for _ in range(150):
        for k in range(tau):
            if k == tau - delta:
                sent = models.copy()
            squares.append(float((np.maximum(models.mean(1), -kink) ** 2).mean()))
            models -= eta * (np.maximum(models, -kink) + rng.choice([-1.0, 1.0], models.shape))
        models = sent.mean(1, keepdims=True) + models - sent
    measured = float(np.mean(squares[len(squares) // 2 :]))
    assert 0.2 < measured / row.floor.hi < 1


def test_a_changed_certificate_or_a_smaller_variance_is_no_proof():
    for kind in PROGRAMS:
        row = next(row for row in ROWS if row.kind == kind and row.at["tau"] == 4)
        program, weights = PROGRAMS[kind](**row.at), row.certificate
        for index, (a, c) in enumerate(program.pairs):
            if program.points[a].value != program.points[c].value:
                pairs = list(weights.pairs)
                pairs[index] += 1
                with pytest.raises(NotProved, match="do not cancel"):
                    verify(program, replace(weights, pairs=pairs))
        limits = [*weights.limits[:-1], weights.limits[-1] // 2]  # of the compression, of the potential
        with pytest.raises(NotProved, match="slack is not positive definite"):
            verify(program, replace(weights, limits=limits))


def test_kept_floors_are_read_as_they_were_written(tmp_path):
    write_variants(ROWS[:3], tmp_path / "some.json.gz")
    assert list(variants(tmp_path / "some.json.gz")) == ROWS[:3]


def test_what_is_no_such_round_is_refused():
    with pytest.raises(ValueError, match="variance constants must be >= 0; got omega1 = -1"):
        two_shots(**SMALL, rho=Fraction(0), omega1=Fraction(-1))
    with pytest.raises(ValueError, match="0 <= in_flight <= tau = 4; got 5"):
        overlapped(**SMALL, rho=Fraction(0), in_flight=5)
    with pytest.raises(ValueError, match="0 <= rho <= 1"):
        overlapped(**SMALL, rho=Fraction(2), in_flight=1)
