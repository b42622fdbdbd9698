"""Claims: constants in range, strict contraction inside contraction."""

import math

import pytest

from bounds import Contractive, NoClaim, StrictlyContractive, Unbiased


@pytest.mark.parametrize("omega", [-1e-9, math.inf, math.nan])
def test_unbiased_needs_a_finite_non_negative_omega(omega):
    with pytest.raises(ValueError, match="omega"):
        Unbiased(omega)


@pytest.mark.parametrize("kind", [Contractive, StrictlyContractive])
@pytest.mark.parametrize("alpha", [-1e-9, 1.0, 2.0, math.nan])
def test_contraction_needs_alpha_in_the_half_open_unit_interval(kind, alpha):
    with pytest.raises(ValueError, match="alpha"):
        kind(alpha)


def test_strict_contraction_is_a_contraction():
    assert isinstance(StrictlyContractive(0.5), Contractive)
    assert not isinstance(Contractive(0.5), StrictlyContractive)


def test_claims_are_immutable_values():
    claim = Unbiased(0.5, tight=True)
    assert claim == Unbiased(0.5, tight=True)
    assert claim != Unbiased(0.5)
    with pytest.raises(AttributeError):
        claim.omega = 1.0


def test_no_claim_says_why():
    assert NoClaim("the sign has no scale").reason == "the sign has no scale"
