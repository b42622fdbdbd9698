"""Densities against the tails of the laws, maxima against their neighbourhood."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bounds.runtime import Exponential, Gamma, LogNormal, Pareto, ShiftedExponential, Uniform, Weibull
from gpu_validation.timing.fit import FAMILIES

LAWS = {
    "Exponential": Exponential(0.3),
    "ShiftedExponential": ShiftedExponential(1.0, 0.2),
    "Gamma": Gamma(2.5, 0.4),
    "LogNormal": LogNormal(-0.7, 0.5),
    "Pareto": Pareto(0.6, 3.0),
    "Uniform": Uniform(0.5, 2.0),
    "Weibull": Weibull(1.2, 0.8),
}
AT_THE_EDGE = {"Pareto": "minimum", "ShiftedExponential": "shift", "Uniform": None}  # of the samples


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_density_is_the_derivative_of_the_tail(family):
    law = LAWS[family.name]
    t = np.array([law.quantile(tail) for tail in (0.9, 0.5, 0.1, 0.01)])
    h = 1e-6 * t
    slope = (law.sf(t - h) - law.sf(t + h)) / (2 * h)

    np.testing.assert_allclose(np.exp(family.log_density(law, t)), slope, rtol=1e-6)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_nothing_lies_outside_the_support(family):
    law = LAWS[family.name]
    outside = np.array([t for t in (0.99 * law.lower_s, 1.01 * law.upper_s) if 0 < t < np.inf])
    assert (family.log_density(law, outside) == -np.inf).all()


@pytest.mark.every(3)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
@given(seed=st.integers(0, 2**32), n=st.integers(20, 200), scale=st.floats(1e-4, 1e3))
def test_no_neighbour_is_more_likely_than_the_fit(family, seed, n, scale):
    samples = scale * LAWS[family.name].sample(np.random.default_rng(seed), (n,))
    law = family.fit(samples)
    best = family.log_density(law, samples).sum()
    for field in fields(law):
        for factor in (1 - 1e-3, 1 + 1e-3):
            value = getattr(law, field.name)
            neighbour = replace(law, **{field.name: value * factor if value else factor - 1})
            assert family.log_density(neighbour, samples).sum() <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_fit_finds_the_parameters_it_was_made_with(family):
    law, n = LAWS[family.name], 40_000
    fitted = family.fit(law.sample(np.random.default_rng(1), (n,)))
    for field in fields(law):  # standard errors are below 2/sqrt(n) = .01 of every parameter here
        assert getattr(fitted, field.name) == pytest.approx(getattr(law, field.name), rel=0.05)


@pytest.mark.parametrize("spread", [1e-3, 1e-5])
def test_nearly_equal_times_do_not_overflow(spread):
    samples = 5e-3 * (1 + spread * np.random.default_rng(2).standard_normal(100))
    for family in FAMILIES:
        assert np.isfinite(family.log_density(family.fit(samples), samples)).all(), family.name
