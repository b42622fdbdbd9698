"""Sources: densities, moments, entropies and cells against quadrature; samplers against their own law."""

import math
from itertools import pairwise

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad

from bounds import limits
from ratedist.sources import (
    BernoulliGaussian,
    Empirical,
    Gaussian,
    GeneralisedGaussian,
    Laplace,
    Student,
    empirical,
)

SMOOTH = [
    Gaussian(),
    Laplace(),
    GeneralisedGaussian(0.7),
    GeneralisedGaussian(2.0),
    GeneralisedGaussian(6.0),
    Student(2.5),
    Student(5.0),
    BernoulliGaussian(0.9, 0.01),
]
EDGES = np.array([-3.0, -0.5, 0.0, 0.2, 0.3, 2.0])


def integral(function, low, high):
    pieces = [low, *(p for p in (-5.0, -1.0, -0.1, 0.0, 0.1, 1.0, 5.0) if low < p < high), high]
    return math.fsum(quad(function, a, b, epsabs=1e-13, limit=200)[0] for a, b in pairwise(pieces))


@pytest.mark.parametrize("source", SMOOTH, ids=str)
def test_cells_hold_the_moments_of_the_density(source):
    cells = source.cells(EDGES)
    assert cells.probability.sum() == pytest.approx(1, abs=1e-14)
    assert cells.second_moment == pytest.approx(source.second_moment, rel=1e-12)
    for p, centroid, spread, low, high in zip(
        cells.probability, cells.centroid, cells.spread, cells.lower, cells.upper, strict=True
    ):
        if math.isinf(low) or math.isinf(high):
            continue
        mass = integral(lambda x: float(source.density(np.float64(x))), low, high)
        first = integral(lambda x: x * float(source.density(np.float64(x))), low, high)
        around = integral(lambda x, c=centroid: (x - c) ** 2 * float(source.density(np.float64(x))), low, high)
        assert p == pytest.approx(mass, abs=1e-11)
        assert p * centroid == pytest.approx(first, abs=1e-11)
        assert spread == pytest.approx(around, abs=1e-11)
        assert low <= centroid <= high


@pytest.mark.parametrize("source", [s for s in SMOOTH if s != Student(2.5)], ids=str)
def test_density_has_unit_variance_and_the_stated_entropy(source):
    far = source.reach(1e-8)

    def information(x):
        density = float(source.density(np.float64(x)))
        return -density * math.log2(density) if density > 0 else 0.0

    assert 2 * integral(lambda x: float(source.density(np.float64(x))), 0, far) == pytest.approx(1, abs=1e-6)
    assert 2 * integral(information, 0, far) == pytest.approx(source.entropy_bits, abs=1e-5)


@pytest.mark.parametrize("source", SMOOTH, ids=str)
def test_reach_leaves_the_stated_share(source):
    reach = source.reach(1e-3)
    cells = source.cells(np.array([-reach, reach]))
    outside = np.abs(cells.centroid) > reach
    left = float(np.sum((cells.probability * cells.centroid**2 + cells.spread)[outside]))
    assert 0.9e-3 < left <= 1e-3 * (1 + 1e-6)


@pytest.mark.parametrize("source", SMOOTH[:5] + SMOOTH[6:] + [BernoulliGaussian(0.8)], ids=str)
def test_sampler_follows_the_law(source):
    # counts in 8 cells, n = 40000; each within 5 standard deviations (level 1e-6 a cell)
    n, edges = 40_000, np.array([-2.0, -1.0, -0.3, 0.0, 0.3, 1.0, 2.0])
    draws = source.sample(n, np.random.default_rng(5))
    cells = source.cells(edges)
    for p, low, high in zip(cells.probability, cells.lower, cells.upper, strict=True):
        hits = np.sum(draws == low) if low == high else np.sum((draws > low) & (draws < high))
        assert abs(hits - n * p) <= 5 * math.sqrt(n * p * (1 - p))


@pytest.mark.parametrize(
    ("source", "bound", "at"),
    [
        (Gaussian(), limits.gaussian_rate, {}),
        (Laplace(), limits.laplace_rate, {}),
        (GeneralisedGaussian(0.5), limits.generalised_gaussian_rate, {"shape": 0.5}),
        (GeneralisedGaussian(3.0), limits.generalised_gaussian_rate, {"shape": 3.0}),
        (Student(3.0), limits.student_rate, {"dof": 3.0}),
        (Student(5.0), limits.student_rate, {"dof": 5.0}),
    ],
    ids=str,
)
def test_shannon_lower_bound_is_that_of_the_limits(source, bound, at):
    assert source.shannon_lower_bound(0.05) == pytest.approx(bound(nmse=0.05, **at), rel=1e-12)


def test_mixture_entropy_exceeds_the_bound_by_its_components():
    source = BernoulliGaussian(0.9, 0.01)
    simple = limits.gaussian_mixture_rate(nmse=1e-4, mixture_weight=0.9, variance_ratio=0.01)
    assert simple < source.shannon_lower_bound(1e-4) < limits.gaussian_rate(nmse=1e-4)


def test_an_atom_is_a_cell_of_its_own():
    cells = BernoulliGaussian(0.7).cells(np.array([-1.0, 1.0]))
    atom = np.flatnonzero(cells.lower == cells.upper)
    assert cells.probability[atom] == [0.7]
    assert cells.centroid[atom] == [0.0]
    assert BernoulliGaussian(0.7).entropy_bits == -math.inf
    assert BernoulliGaussian(0.7).shannon_lower_bound(0.1) == 0


def test_empirical_cells_hold_exactly_the_entries():
    values = np.array([[3.0, -1.0], [0.5, 0.5], [0.0, -2.0]])
    cells = Empirical(values).cells(np.array([-1.5, 0.0, 1.0]))
    np.testing.assert_allclose(cells.probability, np.array([1, 1, 3, 1]) / 6)
    np.testing.assert_allclose(cells.centroid, [-2, -1, 1 / 3, 3])
    assert cells.second_moment == pytest.approx(np.mean(values**2), rel=1e-15)
    assert cells.lower.tolist() == [-2, -1, 0, 3]
    assert cells.upper.tolist() == [-2, -1, 0.5, 3]


def test_empirical_source_reads_torch_tensors():
    import torch

    source = Empirical(torch.tensor([1.0, -2.0, 2.0], requires_grad=True))
    assert source.second_moment == 3
    assert source.sample(5, np.random.default_rng(0)).shape == (5,)


def test_empirical_reach_leaves_at_most_the_share():
    values = np.random.default_rng(2).standard_normal(1000)
    source = Empirical(values)
    for share in (0.5, 0.01, 1e-9):
        t = source.reach(share)
        assert np.sum(values[np.abs(values) > t] ** 2) <= share * np.sum(values**2)


def test_entropy_interval_covers_the_law_behind_the_entries():
    # 20000 normal entries, level 1e-3; the spacing estimate's own bias at blocks of 1250 is below .02 bits
    source = Empirical(np.random.default_rng(11).standard_normal(20_000))
    interval = source.entropy_interval(np.random.default_rng(0))
    assert interval.lo - 0.02 <= Gaussian().entropy_bits <= interval.hi + 0.02
    assert interval.hi - interval.lo < 0.2


@pytest.mark.parametrize("level", [1e-3, 0.05, 0.5])
def test_entropy_interval_is_students_of_the_blocks(level):
    source = Empirical(np.random.default_rng(12).standard_normal(4000))
    interval = source.entropy_interval(np.random.default_rng(0), level)
    blocks = np.array_split(np.random.default_rng(0).permutation(source.values), empirical.BLOCKS)
    each = [empirical._spacing_entropy_bits(np.sort(block)) for block in blocks]
    law = scipy.stats.t(df=len(each) - 1, loc=np.mean(each), scale=scipy.stats.sem(each))
    assert (interval.lo, interval.hi) == pytest.approx(law.interval(1 - level))


@pytest.mark.parametrize("bad", [[], [0.0, 0.0], [1.0, math.nan], [math.inf]])
def test_unusable_tensors_are_refused(bad):
    with pytest.raises(ValueError, match="finite entries"):
        Empirical(bad)


def test_entropy_of_repeated_values_is_refused():
    with pytest.raises(ValueError, match="distinct"):
        Empirical(np.ones(5000)).entropy_interval(np.random.default_rng(0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Student(2.0),
        lambda: GeneralisedGaussian(0.0),
        lambda: BernoulliGaussian(1.0),
        lambda: BernoulliGaussian(0.5, 1.0),
        lambda: Gaussian().shannon_lower_bound(1.0),
    ],
)
def test_parameters_outside_are_refused(make):
    with pytest.raises(ValueError, match="got"):
        make()


def test_an_empirical_source_refuses_what_is_no_array_of_real_numbers():
    torch = pytest.importorskip("torch")
    for values in (
        np.ma.masked_array([1.0, 2.0], [False, True]),
        np.array([1.0, 2j]),
        torch.tensor([1.0, 2j]),
        torch.ones(3).to_sparse(),
        torch.ones(3, device="meta"),
        ["1.0", "2.0"],
        [[1.0], [1.0, 2.0]],
        np.array([None, 1.0]),
    ):
        with pytest.raises(ValueError, match="must") as caught:
            Empirical(values)
        assert "\n" not in str(caught.value)


def test_an_empirical_source_reads_any_form_of_real_numbers():
    torch = pytest.importorskip("torch")
    negative = torch.complex(torch.zeros(3), torch.tensor([-1.0, 2.0, -2.0])).conj().imag
    for values in ([1, -2, 2], np.array([1, -2, 2], ">i4"), torch.tensor([1, -2, 2]), negative):
        assert Empirical(values).values.tolist() == [-2.0, 1.0, 2.0]
