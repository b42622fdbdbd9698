"""A certificate is checked exactly: the kept table in well under a second, and no changed one passes."""

import time
from dataclasses import replace
from fractions import Fraction

import pytest
from flint import fmpq, fmpq_mat

from bounds import theorems
from bounds.pep import NotProved, certified_floor, entries, one_round, verify
from bounds.pep.certificate import UNIT, is_positive_definite, pair_unit

ROWS = list(entries())


def program_of(row):
    return one_round(about=row.about, x=row.x, m=row.m, tau=row.tau, rho=row.rho)


def row_at(about, x, m, tau, rho=0):
    return next(r for r in ROWS if (r.about, r.x, r.m, r.tau, r.rho) == (about, Fraction(x), m, tau, Fraction(rho)))


def sharp(row):
    at = {"eta": float(row.x), "L": 1.0, "sigma2": 1.0, "m": row.m, "tau": row.tau, "K": 1}
    if row.about == "gap":
        return theorems.pasgd_gap_sharp(**at, R0=0.0)
    return theorems.pasgd_smooth_sharp(**at, gap=0.0, rho=float(row.rho))


def test_the_whole_table_is_verified_without_the_solver():
    before = time.process_time()
    floors = [row.floor for row in ROWS]
    seconds = time.process_time() - before
    assert len(ROWS) >= 99
    assert all(floor.hi < sharp(row) for row, floor in zip(ROWS, floors, strict=True))
    assert seconds < 5  # .6 s on a quiet core; the limit leaves room for a busy one


@pytest.mark.parametrize(
    ("about", "x", "tau", "rho", "value"),
    [
        ("gradient", "1/20", 8, 1, 0.0182853),
        ("gradient", "1/5", 8, 1, 0.152426),
        ("gradient", "1/20", 8, 0, 0.0135795),
        ("gradient", "1/5", 2, 0, 0.0525625),
        ("gap", "1/20", 8, 0, 0.00755539),
        ("gap", "1/5", 8, 0, 0.0423601),
    ],
)
def test_certified_floors_are_the_optima_to_six_digits(about, x, tau, rho, value):
    assert row_at(about, x, 4, tau, rho).floor.hi == pytest.approx(value, rel=3e-6, abs=6e-8)


def changed(values, index, by):
    values = list(values)
    values[index] += by
    return values


SMALL = row_at("gradient", "1/5", 4, 4)


@pytest.mark.parametrize("name", ["pairs", "limits", "free", "conditional"])
def test_a_certificate_with_one_entry_changed_is_refused(name):
    """A weight that moves a value of F by one unit, each other one by what no margin forgives."""
    weights, program = getattr(SMALL.certificate, name), program_of(SMALL)
    for index in range(len(weights)):
        by = {"pairs": 1, "limits": -UNIT // 100, "free": UNIT, "conditional": -UNIT}[name]
        if name == "pairs" and len({program.points[i].value for i in program.pairs[index]}) == 1:
            by = int(10 / pair_unit(program))  # between the two workers at one step: their values are one
        wrong = replace(SMALL.certificate, **{name: changed(weights, index, by)})
        with pytest.raises(NotProved):
            verify(program, wrong)


def test_a_certificate_of_another_program_is_refused():
    for other in (
        one_round(about="gradient", x=Fraction(1, 4), m=4, tau=4, rho=Fraction(0)),
        one_round(about="gradient", x=Fraction(1, 5), m=3, tau=4, rho=Fraction(0)),
        one_round(about="gradient", x=Fraction(1, 5), m=4, tau=4, rho=Fraction(1, 10)),
    ):
        with pytest.raises(NotProved):
            verify(other, SMALL.certificate)
    with pytest.raises(NotProved, match=r"a certificate of this program has .* weights"):
        verify(one_round(about="gradient", x=Fraction(1, 5), m=4, tau=3, rho=Fraction(0)), SMALL.certificate)


def test_scaled_weights_prove_nothing_smaller():
    certificate = SMALL.certificate
    lower = replace(certificate, limits=[weight * 99 // 100 for weight in certificate.limits])
    with pytest.raises(NotProved, match="not positive definite"):
        verify(program_of(SMALL), lower)
    with pytest.raises(NotProved, match="must be >= 0"):
        verify(program_of(SMALL), replace(certificate, limits=changed(certificate.limits, 0, -(2**40))))


@pytest.mark.parametrize(
    ("rows", "definite"),
    [([[2, 1], [1, 1]], True), ([[1, 1], [1, 1]], False), ([[1, 2], [2, 1]], False), ([[0]], False), ([[1]], True)],
)
def test_definiteness_is_strict(rows, definite):
    n = len(rows)
    assert is_positive_definite(fmpq_mat(n, n, [v for row in rows for v in row])) is definite


def test_a_pivot_smaller_than_its_ball_is_not_positive():
    tiny = fmpq(1, 2**200)
    assert not is_positive_definite(fmpq_mat(2, 2, [fmpq(1, 3), fmpq(1, 3), fmpq(1, 3), fmpq(1, 3) + tiny]))


def test_between_rows_a_larger_rate_and_a_larger_class_serve():
    kept = certified_floor(about="gradient", x=Fraction(1, 5), m=4, tau=8)
    assert kept == row_at("gradient", "1/5", 4, 8).floor.hi
    assert certified_floor(about="gradient", x=Fraction(3, 20), m=4, tau=8) == kept
    rough = certified_floor(about="gradient", x=Fraction(1, 5), m=4, tau=8, rho=Fraction(1, 20))
    assert rough == row_at("gradient", "1/5", 4, 8, "1/10").floor.hi
    gap = certified_floor(about="gap", x=Fraction(3, 20), m=4, tau=8)
    assert gap == pytest.approx(row_at("gap", "1/5", 4, 8).floor.hi * 0.75, rel=1e-12)
    assert certified_floor(about="gradient", x=Fraction(1, 5), m=5, tau=8) is None
    assert certified_floor(about="gradient", x=Fraction(9, 10), m=4, tau=8) is None
