import numpy as np
import pytest

from bounds.runtime import Exponential, LogNormal, ShiftedExponential
from gpu_validation.timing import fit_law
from gpu_validation.timing.fit import FAMILIES, REFITS, _distance
from operators import Key


@pytest.mark.parametrize("law", [ShiftedExponential(1.0, 0.3), LogNormal(0.0, 0.5)], ids=lambda law: type(law).__name__)
def test_likelihood_chooses_the_law_that_made_the_samples_and_the_test_lets_it_pass(law):
    found = fit_law(law.sample(np.random.default_rng(3), (400,)), key=Key(0))

    assert type(found.best.law) is type(law)
    assert found.accepted
    assert "is not rejected at 0.05" in found.statement
    assert type(law).__name__ in found.statement
    assert [fit.aic for fit in found.fits] == sorted(fit.aic for fit in found.fits)
    assert len(found.fits) == len(FAMILIES)


def test_a_mixture_that_no_law_describes_is_rejected():
    rng = np.random.default_rng(4)
    times = np.concatenate([rng.normal(1.0, 0.01, 300), rng.normal(2.0, 0.01, 300)])
    found = fit_law(times, key=Key(0))

    assert found.best.p_value == 1 / (1 + REFITS)
    assert not found.accepted
    assert "use the measured times" in found.statement


def test_the_distance_by_hand():
    law = Exponential(1.0)
    x = np.array([-np.log(0.9), -np.log(0.2)])  # F = .1, .8 against steps 0, .5, 1
    assert _distance(law, x) == pytest.approx(0.4)


def test_the_test_accuses_a_true_law_at_its_level():
    rng = np.random.default_rng(5)
    families = [family for family in FAMILIES if family.name in ("Exponential", "Uniform")]
    values = [fit_law(rng.exponential(1.0, 30), key=Key(i), families=families).best.p_value for i in range(60)]
    rejected = sum(p < 0.05 for p in values)
    assert rejected <= 11  # n = 60, expected 3: P(more) < 1e-4


@pytest.mark.parametrize(
    "wrong",
    [np.ones(30), np.arange(30.0), np.full(30, np.nan), np.linspace(1, 2, 19)],
    ids=lambda x: f"{x[0]}_{x.size}",
)
def test_samples_that_allow_no_fit_are_refused(wrong):
    with pytest.raises(ValueError, match="needs at least 20 finite step times > 0 that are not all equal"):
        fit_law(wrong, key=Key(0))


def test_one_family_is_no_choice():
    with pytest.raises(ValueError, match="at least two families to choose from; got 1"):
        fit_law(np.linspace(1, 2, 30), key=Key(0), families=FAMILIES[:1])
