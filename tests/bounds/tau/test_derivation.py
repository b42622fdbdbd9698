import pytest
import sympy as sp

from bounds.symbols import L, delay_s, eta, gap, sigma2, tau
from bounds.tau import ProofFailed, unique_minimiser, unique_posynomial_minimiser
from bounds.tau.compressed import derivation as compressed_derivation


def test_the_minimiser_is_stationary_and_below_its_neighbours():
    proof = unique_minimiser(gap * delay_s / tau + L * tau, tau)
    at = {gap: 2, delay_s: 8, L: 1}
    where = proof.minimiser.subs(at)
    assert where == 4
    assert proof.minimum.subs(at) == 8
    for other in (3, 5):
        assert proof.objective.subs(at).subs(tau, other) > 8


def test_an_objective_without_a_minimum_is_refused():
    with pytest.raises(ProofFailed, match="second derivative"):
        unique_minimiser(L * tau, tau)
    with pytest.raises(ProofFailed, match="one positive zero"):
        unique_minimiser(gap / tau, tau)
    with pytest.raises(ProofFailed, match="changes sign"):
        unique_minimiser(gap / tau, tau, closed_form=False)
    with pytest.raises(ProofFailed, match="second derivative"):
        unique_minimiser(L * tau - gap * tau**2, tau)


def test_a_posynomial_needs_exponents_around_the_origin():
    with pytest.raises(ProofFailed, match="do not enclose the origin"):
        unique_posynomial_minimiser(gap * tau + L * eta, (tau, eta))
    with pytest.raises(ProofFailed, match="positive"):
        unique_posynomial_minimiser(gap * tau - L * eta + sigma2 / (tau * eta), (tau, eta))


def test_posynomial_minimiser_makes_the_three_terms_equal():
    proof = unique_posynomial_minimiser(gap * tau + L * eta + sigma2 / (tau * eta), (tau, eta))
    at = {gap: 2, L: 4, sigma2: 1}
    values = {term.subs(proof.minimiser).subs(at) for term in proof.terms}
    assert {sp.nsimplify(v) for v in values} == {2}


def test_compression_with_latency_has_a_unique_optimum_without_closed_form():
    proof = compressed_derivation(latency=True)
    assert proof.minimiser is None
    assert len(proof.terms) == 4
    assert proof.exponents.rank() == 2
    combination = sp.Matrix([list(proof.weights)]) * proof.exponents
    assert combination.is_zero_matrix
    assert r"\nabla f" in proof.latex()


def test_latex_shows_objective_slope_curvature_and_minimiser():
    closed = unique_minimiser(gap / tau + L * tau, tau).latex()
    implicit = unique_minimiser(gap / tau + L * tau, tau, closed_form=False).latex()
    assert closed.count(r"\\") == 3
    assert r"\tau^* &=" in closed
    assert "only zero" in implicit
