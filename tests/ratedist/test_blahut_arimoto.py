"""The numeric rate-distortion function: encloses what is known in closed form, lies above every lower bound."""

import math

import numpy as np
import pytest

from bounds import limits
from ratedist.blahut_arimoto import rate_distortion
from ratedist.sources import (
    BernoulliGaussian,
    Cells,
    Empirical,
    Gaussian,
    GeneralisedGaussian,
    Laplace,
    Source,
    Student,
)

COARSE = 0.1


class TwoPoints(Source):
    """Equal probabilities at -1 and +1; Y may be any real number."""

    second_moment = 1.0
    entropy_bits = -math.inf

    def sample(self, shape, generator):
        return generator.choice([-1.0, 1.0], size=shape)

    def cells(self, edges):
        half, ends = np.array([0.5, 0.5]), np.array([-1.0, 1.0])
        return Cells(half, ends, np.zeros(2), ends, ends)

    def reach(self, share):
        return 1.0


@pytest.mark.parametrize("nmse", [0.9, 0.5, 0.25, 0.1])
def test_encloses_the_gaussian_function(nmse):
    interval = rate_distortion(Gaussian(), nmse, cell_width=COARSE)
    exact = 0.5 * math.log2(1 / nmse)
    assert interval.lo <= exact <= interval.hi
    assert interval.hi - interval.lo < 2e-3


def test_width_shrinks_with_the_square_of_the_cells():
    coarse, fine = (rate_distortion(Gaussian(), 0.25, cell_width=width) for width in (0.2, 0.1))
    assert coarse.hi - 1 == pytest.approx(4 * (fine.hi - 1), rel=0.1)


def test_laplace_lies_between_its_shannon_bound_and_the_known_value():
    # an independent discrete computation gave .906562 with grid error 2e-4
    interval = rate_distortion(Laplace(), 0.247411, cell_width=0.05)
    assert limits.laplace_rate(nmse=0.247411) < interval.lo
    assert interval.lo <= 0.906562 + 2e-4
    assert interval.hi >= 0.906562 - 2e-4
    assert interval.hi - interval.lo < 2e-3


def test_two_points_are_a_channel_problem_of_one_variable():
    # by symmetry Y = t or -t or anything between; the test channel of R(D) is found here by a scalar search:
    # X given Y = y has mean tanh(2 b y) = y at every output used, so outputs are +-t with t = tanh(2 b t)
    nmse = 0.3
    low, high = 0.0, 1 - 1e-12
    for _ in range(200):  # 1 - t^2 = D for the posterior of mean t
        t = (low + high) / 2
        low, high = (t, high) if 1 - t * t > nmse else (low, t)
    flip = (1 - t) / 2
    exact = 1 + flip * math.log2(flip) + (1 - flip) * math.log2(1 - flip)
    interval = rate_distortion(TwoPoints(), nmse)
    assert interval.lo <= exact <= interval.hi
    assert interval.hi - interval.lo < 0.02


def test_sparse_source_lies_between_its_side_information_bound_and_the_gaussian():
    interval = rate_distortion(BernoulliGaussian(0.9), 0.1, cell_width=COARSE)
    assert interval.lo > limits.sparse_source_rate(nmse=0.1, zero_share=0.9)
    assert interval.hi < limits.gaussian_rate(nmse=0.1)
    assert interval.hi - interval.lo < 0.01


def test_decreases_in_distortion_and_starts_at_zero():
    intervals = [rate_distortion(GeneralisedGaussian(0.8), nmse, cell_width=COARSE) for nmse in (0.2, 0.4, 0.8)]
    assert intervals[0].lo > intervals[1].hi > intervals[1].lo > intervals[2].hi
    assert rate_distortion(Gaussian(), 0.999, cell_width=COARSE).hi < 2e-3


def test_empirical_source_of_gaussian_entries_is_near_the_gaussian_function():
    values = np.random.default_rng(4).standard_normal(20_000) * 7
    interval = rate_distortion(Empirical(values), 0.3, cell_width=COARSE)
    assert interval.hi - interval.lo < 5e-3
    assert abs(interval.midpoint - limits.gaussian_rate(nmse=0.3)) < 0.02  # sampling error of 20000 entries


@pytest.mark.parametrize("nmse", [0.0, 1.0, -0.1, math.nan])
def test_distortions_outside_are_refused(nmse):
    with pytest.raises(ValueError, match="0 < nmse < 1"):
        rate_distortion(Gaussian(), nmse)


@pytest.mark.slow
def test_heavy_tails_are_covered():
    interval = rate_distortion(Student(3.0), 0.3, cell_width=0.2)
    assert limits.student_rate(nmse=0.3, dof=3.0) <= interval.lo + 1e-9
    assert interval.hi < limits.gaussian_rate(nmse=0.3)
    assert interval.hi - interval.lo < 0.03


def test_too_fine_a_problem_is_refused():
    with pytest.raises(ValueError, match="allow more distortion"):
        rate_distortion(Laplace(), 1e-7)
