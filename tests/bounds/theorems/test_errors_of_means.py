"""Error laws of means against enumeration of the compressors' coins, and the tables that compare exchanges."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from bounds import Example, theorems
from bounds.theorems import (
    gather_error,
    ring_error,
    shared_scale_error,
    tree_error,
    two_shot_best_error,
    two_shot_error,
    two_shot_exact_error,
    two_shot_split,
)

VECTORS = [(3, -1), (2, 5, -4), (1, 1, 1), (1, -1, 0), (4, 0, -3, 2)]  # one coordinate of every worker
STAGES = [(1, 3), (Fraction(1, 2), 0), (2, 2), (0, 1), (4, Fraction(1, 4))]


# -- all outcomes of a scalar that is kept with probability 1/(1 + omega), scaled up by 1 + omega --------------------
def compressed(outcomes, omega):
    keep = Fraction(1, 1) / (1 + omega)
    return [(p * keep, v * (1 + omega)) for p, v in outcomes] + [(p * (1 - keep), Fraction(0)) for p, v in outcomes]


def added(first, second):
    return [(p * q, v + w) for (p, v), (q, w) in product(first, second)]


def error(outcomes, x):
    return sum(p * (v / len(x) - Fraction(sum(x), len(x))) ** 2 for p, v in outcomes)


def summed(parts):
    total = [(Fraction(1), Fraction(0))]
    for part in parts:
        total = added(total, part)
    return total


def surely(value):
    return [(Fraction(1), Fraction(value))]


def ring(x, omega1, omega2):
    held = surely(x[0])
    for value in x[1:]:
        held = added(compressed(held, omega1), surely(value))
    return compressed(held, omega2)


def tree(leaves, omega1):
    if len(leaves) == 1:
        return surely(leaves[0])
    half = len(leaves) // 2
    return added(tree(leaves[:half], omega1), compressed(tree(leaves[half:], omega1), omega1))


def moments(x):
    m = len(x)
    return {"m": m, "mean_square": sum(v * v for v in x) / m, "square_of_mean": (sum(x) / m) ** 2}


def at(x, omega1, omega2):
    return {**moments(x), "omega1": float(omega1), "omega2": float(omega2)}


@pytest.mark.parametrize("x", VECTORS)
@pytest.mark.parametrize("omega", [Fraction(1, 2), 1, 3])
def test_gather_error_reaches_the_enumerated_one(x, omega):
    exact = error(summed(compressed(surely(v), omega) for v in x), x)
    value = gather_error(omega=float(omega), m=len(x), mean_square=moments(x)["mean_square"])
    assert value == pytest.approx(float(exact), rel=1e-13)


@pytest.mark.parametrize("x", VECTORS)
@pytest.mark.parametrize(("omega1", "omega2"), STAGES)
def test_two_shot_exact_error_reaches_the_enumerated_one(x, omega1, omega2):
    exact = float(error(compressed(summed(compressed(surely(v), omega1) for v in x), omega2), x))
    assert two_shot_exact_error(**at(x, omega1, omega2)) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("x", VECTORS)
@pytest.mark.parametrize(("omega1", "omega2"), STAGES)
def test_two_shot_error_reaches_the_enumerated_one(x, omega1, omega2):
    exact = float(error(compressed(summed(compressed(surely(v), omega1) for v in x), omega2), x))
    assert two_shot_error(**at(x, omega1, omega2)) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("x", VECTORS)
@pytest.mark.parametrize(("omega1", "omega2"), STAGES)
def test_ring_error_reaches_the_enumerated_one_in_random_order(x, omega1, omega2):
    orders = list(permutations(x))
    exact = sum(error(ring(order, omega1, omega2), x) for order in orders) / len(orders)
    assert ring_error(**at(x, omega1, omega2)) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize(("x", "depth"), [(VECTORS[0], 1), (VECTORS[1], 2), (VECTORS[4], 2), (VECTORS[0], 3)])
@pytest.mark.parametrize(("omega1", "omega2"), STAGES)
def test_tree_error_reaches_the_enumerated_one_in_random_order(x, depth, omega1, omega2):
    errors = []
    for places in permutations(range(2**depth), len(x)):
        leaves = [0] * 2**depth
        for place, value in zip(places, x, strict=True):
            leaves[place] = value
        errors.append(error(compressed(tree(leaves, omega1), omega2), x))
    exact = sum(errors) / len(errors)
    assert tree_error(**at(x, omega1, omega2), tree_depth=depth) == pytest.approx(float(exact), rel=1e-12)


def test_hops_compound_exponentially_and_levels_only_slowly():
    """The recursions of a ring and a tree for independent vectors, in closed form."""
    w, m = 0.3, 64
    independent = {"mean_square": float(m), "square_of_mean": 1.0, "m": m, "omega1": w, "omega2": w}
    hops = ((1 + w) ** m - 1) / w - m
    assert ring_error(**independent) == pytest.approx(((1 + w) * hops + w * m) / m, rel=1e-12)
    assert tree_error(**independent, tree_depth=6) == pytest.approx((1 + w) * ((1 + w / 2) ** 6 - 1) + w, rel=1e-12)
    small = {**independent, "omega1": 1e-9, "omega2": 1e-9}
    assert ring_error(**small) == pytest.approx(1e-9 * (m + 1) / 2, rel=1e-6)
    assert tree_error(**small, tree_depth=6) == pytest.approx(1e-9 * (6 / 2 + 1), rel=1e-6)


# -- the table: error over that of the mean, independent vectors, at equal bits sent by a worker ---------------------
def rate(bits):
    return 1 / (4**bits - 1)


def row(wire, m):
    """(gather, two shots, ring, tree) for ideal unbiased operators."""
    bits = wire / (2 * (1 - 1 / m))
    independent = {"mean_square": float(m), "square_of_mean": 1.0, "m": m}
    stages = {**independent, "omega1": rate(bits), "omega2": rate(bits)}
    return (
        gather_error(omega=rate(wire / (m - 1)), mean_square=float(m), m=m),
        two_shot_exact_error(**stages),
        ring_error(**stages),
        tree_error(**stages, tree_depth=(m - 1).bit_length()),
    )


@pytest.mark.parametrize(
    ("wire", "m", "values"),
    [
        (4, 4, ("0.187", "0.0515", "0.065", "0.052")),
        (4, 16, ("2.24", "0.113", "0.62", "0.175")),
        (4, 64, ("10.9", "0.131", "12", "0.28")),
        (8, 4, ("0.025", "0.0012", "0.0015", "0.0012")),
        (8, 16, ("0.914", "0.0054", "0.023", "0.0081")),
        (8, 64, ("5.2", "0.0072", "0.126", "0.014")),
        (8, 1024, ("92", "0.0078", "12", "0.024")),
        (16, 16, ("0.295", "1.5e-5", "6e-5", "2e-5")),
        (16, 64, ("2.4", "2.6e-5", "4e-4", "5e-5")),
    ],
)
def test_published_table_of_errors_at_equal_wire(wire, m, values):
    for value, published in zip(row(wire, m), values, strict=True):
        digits = Example({}, published, "published")
        assert digits.interval[0] <= value <= digits.interval[1]


def test_two_shots_do_not_err_more_with_more_workers():
    m = np.array([4.0, 16, 64, 1024, 1e6])
    w = rate(8 / (2 * (1 - 1 / m)))
    errors = list(two_shot_exact_error(mean_square=m, square_of_mean=1.0, m=m, omega1=w, omega2=w))
    assert errors == sorted(errors)
    assert errors[-1] < 2 * rate(4) * 1.01
    assert row(8, 16)[1] <= 0.006
    assert row(8, 16)[0] == pytest.approx(0.91, abs=0.005)


@pytest.mark.parametrize(("m", "below"), [(2, np.inf), (3, 1.7583), (4, 1.0414), (16, 0.1929)])
def test_gathering_is_best_for_two_workers_and_for_more_only_at_few_bits(m, below):
    """For four and more workers only where the error exceeds that of sending nothing."""
    for wire in (0.05, 0.1927, 0.1931, 1.0413, 1.0415, 1.7582, 1.7584, 8.0, 30.0):
        gather, two_shots = row(wire, m)[:2]
        assert (gather < two_shots) == (wire < below)
        assert m <= 3 or gather > two_shots or gather > 1


# -- the split of the bits -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("m", [2, 16, 1024])
@pytest.mark.parametrize("stage_bits", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("aligned", [0.0, 0.3, 1.0])
def test_two_shot_split_is_the_minimum(m, stage_bits, aligned):
    square, first, errors = of_every_split(m, stage_bits, aligned)
    best = two_shot_split(**square, stage_bits=stage_bits)
    assert 0 < best < stage_bits
    assert first[errors.argmin()] == pytest.approx(best, abs=1.5 * stage_bits / 4000)


@pytest.mark.parametrize("m", [2, 16, 1024])
@pytest.mark.parametrize("stage_bits", [0.1, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("aligned", [0.0, 0.3, 1.0])
def test_two_shot_best_error_is_the_minimum(m, stage_bits, aligned):
    square, _, errors = of_every_split(m, stage_bits, aligned)
    least = two_shot_best_error(**square, stage_bits=stage_bits)
    assert least <= errors.min() * (1 + 1e-12)
    assert errors.min() == pytest.approx(least, rel=1e-4)


def of_every_split(m, stage_bits, aligned):
    """The moments, bits of the first stage on a grid, and the error at each."""
    square = {"mean_square": 1.0, "square_of_mean": aligned + (1 - aligned) / m, "m": m}
    first = stage_bits * np.linspace(0, 1, 4001)[1:-1]
    return square, first, two_shot_exact_error(**square, omega1=rate(first), omega2=rate(stage_bits - first))


def test_the_split_tends_to_the_published_rule_and_leaves_it_at_few_bits():
    """b2 - b1 = log2(m M/S)/2 at many bits; at two bits and m = 64 the rule asks for less than no bit in stage 1."""
    for m, aligned in [(16, 1.0), (64, 1.0), (64, 1 / 64)]:
        square = {"mean_square": 1.0, "square_of_mean": aligned, "m": m}
        difference = 30 - 2 * two_shot_split(**square, stage_bits=30.0)
        assert difference == pytest.approx(np.log2(m * aligned) / 2, abs=1e-6)
    few = 2 - 2 * two_shot_split(mean_square=1.0, square_of_mean=1.0, m=64, stage_bits=2.0)
    assert few < 2 < np.log2(64) / 2


# -- integers on one scale -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("word_bits", [5, 8, 12])
def test_shared_scale_error_lies_above_the_exact_one_and_the_words_suffice(word_bits):
    """Sums of rounded coordinates, one of them at the peak, fit their words, and their variance is below the law."""
    rng = np.random.default_rng(24)
    m, d = 6, 400
    x = rng.normal(size=(m, d))
    x[:, 0] = np.abs(x.sum(axis=0)).max() / m * 1.5
    peak = np.abs(x.sum(axis=0)).max()
    h = peak / (2 ** (word_bits - 1) - m)
    low, share = np.floor(x / h), x / h - np.floor(x / h)
    furthest = np.stack([low.sum(axis=0), np.ceil(x / h).sum(axis=0)])
    assert furthest.min() >= -(2 ** (word_bits - 1))
    assert furthest.max() <= 2 ** (word_bits - 1) - 1
    exact = (share * (1 - share)).sum() * h**2 / m**2
    mean = x.mean(axis=0)
    ratio = peak / m / np.sqrt(np.mean(mean**2))
    law = shared_scale_error(peak_ratio=ratio, m=m, square_of_mean=float(mean @ mean), word_bits=word_bits)
    assert 0.5 * law < exact <= law


def test_every_law_times_four_fifths_is_contradicted():
    x = (4, 0, -3, 2)
    exact = float(error(compressed(summed(compressed(surely(v), 1) for v in x), 1), x))
    assert 0.8 * theorems.two_shot_error(**at(x, 1, 1)) < exact
    orders = list(permutations(x))
    exact = float(sum(error(ring(order, 1, 1), x) for order in orders) / len(orders))
    assert 0.8 * theorems.ring_error(**at(x, 1, 1)) < exact
