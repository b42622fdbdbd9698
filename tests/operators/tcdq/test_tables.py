"""Frequency tables: integers that add up, close to the density they stand for, on every machine the same."""

import hashlib
import math

import numpy as np
import pytest

from operators.tcdq import model as fixed
from operators.tcdq.model import CLASSES, LONG, SHORT, Model, build, lookup, tail_mass, total_mass

MIXED = Model(1.0, (0,) * 4 + (1,) * 12, ((255, 100, 0, 3), (0, 1, 0, 9, 255, 20, 1, 0, 0, 0, 2)))
MODELS = [Model(0.3), Model(0.7), Model(5.0), Model(16.0), MIXED]


def phi(z):
    return math.erfc(-z / math.sqrt(2)) / 2


@pytest.mark.parametrize("form", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"sigma={m.sigma},groups={m.groups}")
def test_frequencies_are_positive_and_add_to_a_power_of_two(model, form):
    for group in range(model.groups):
        rows = build(model, form).rows(group)
        assert rows.min() >= 1
        assert (rows.sum(axis=1) == 1 << form.precision).all()


@pytest.mark.parametrize("sigma", [0.7, 2.0, 5.0])
def test_frequencies_follow_the_gaussian(sigma):
    rows = build(Model(sigma), SHORT).rows(0) / 2.0**16
    top = rows.shape[1] // 2
    k = np.arange(1 - top, top + 1)
    for phase in (0, 31, 63):
        r = k - (phase + 0.5) / 64
        density = np.exp(-r * r / (2 * sigma**2))
        rounding = rows.shape[1] * 2.0**-16  # each symbol has one more than its share, the likeliest the rest
        assert rows[phase, :-1] == pytest.approx(density / density.sum(), abs=rounding)


def test_phases_mirror_each_other():
    """|n - u| decides: symbol k at phase p is as probable as 1 - k at 63 - p."""
    rows = build(Model(2.0), SHORT).rows(0)
    assert (rows[:, :-1] == rows[::-1, -2::-1]).all()


@pytest.mark.parametrize("z", [0.5, 1.0, 2.0, 3.0, 4.0])
def test_tail_is_that_of_the_normal_law(z):
    assert fixed.tail(int(16 * z)) / 2**20 == pytest.approx(2 * phi(-z), rel=2e-3, abs=2e-6)


def test_decay_is_the_exponential():
    odd = 2 * np.arange(60) + 1
    exact = np.exp(-(odd**2) * 3 / 1000)
    rounding = 32 * 2.0**-32 + 2.0**-30  # 32 factors rounded down, and the result
    assert fixed.decay(fixed.rate(3, 1000), 60) / 2.0**30 == pytest.approx(exact, abs=rounding)


def test_mass_and_escape_of_a_mixture_add_over_its_components():
    weights = MIXED.mixtures[1]

    def share(step):  # the tail is read at a multiple of 1/16 standard deviation below
        tails = [2 * phi(step - 3 / (0.25 * 2 ** (m / 2))) for m in range(len(weights))]
        return sum(w * t for w, t in zip(weights, tails, strict=True)) / sum(weights)

    assert share(0) * (1 - 1e-4) <= tail_mass(MIXED, 1, 3) / total_mass(MIXED, 1) <= share(1 / 16) * (1 + 1e-4)


def test_lookup_inverts_the_cumulative_frequencies():
    tables = build(MIXED, LONG)
    table = lookup(tables).reshape(2, 16, 4096)
    for group in (0, 1):
        row = tables.rows(group)[5]
        for slot in range(0, 4096, 37):
            index = int(np.searchsorted(np.cumsum(row), slot, side="right"))
            entry = int(table[group, 5, slot])
            assert (entry & 255, entry >> 8 & 4095, entry >> 20) == (index, slot - row[:index].sum(), row[index])


def test_tables_are_the_same_on_every_machine():
    """Their digests, as computed here once: a change breaks every stored stream."""
    digest = hashlib.sha256()
    for model in MODELS:
        for form in (SHORT, LONG):
            digest.update(build(model, form).frequency.astype(">u4").tobytes())
    assert digest.hexdigest()[:16] == "8779b684493b84e0"


def test_header_names_each_class_at_which_a_mixture_begins():
    header = MIXED.header()
    assert header[0] == 1
    assert int.from_bytes(header[1:3], "big") == 0b10001
    assert header[3] == 4
    assert len(MIXED.starts) == CLASSES
