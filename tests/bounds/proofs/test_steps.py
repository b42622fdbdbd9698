"""Every step expands to zero, only at its own constant, with weights that are certainly nonnegative."""

from fractions import Fraction

import pytest
import sympy as sp

from bounds import Status, all_bounds
from bounds.proofs import Premise, all_proofs, from_json, proofs_of, to_json, to_lean

PROOFS = all_proofs()


@pytest.mark.parametrize("name", PROOFS)
def test_the_claim_is_the_sum_of_premises_and_squares(name):
    assert PROOFS[name].residual() == 0


@pytest.mark.parametrize("name", PROOFS)
@pytest.mark.parametrize("factor", [Fraction(99, 100), Fraction(101, 100)])
def test_no_other_constant_expands(name, factor):
    """What is left is the change of the constant times what it multiplies."""
    proof = PROOFS[name]
    left = proof.residual(factor)
    assert left != 0
    assert sp.simplify(left - sp.Rational(factor - 1) * proof.constant * proof.times) == 0


@pytest.mark.parametrize("name", PROOFS)
def test_weights_are_certainly_nonnegative(name):
    assert PROOFS[name].unsigned() == ()


@pytest.mark.parametrize("name", PROOFS)
def test_a_proof_survives_json(name):
    read = from_json(to_json(PROOFS[name]))
    assert read.expands()
    assert not read.expands(Fraction(99, 100))
    assert (read.name, read.says, read.bounds) == (PROOFS[name].name, PROOFS[name].says, PROOFS[name].bounds)


@pytest.mark.parametrize("name", PROOFS)
def test_lean_text_has_every_term_of_the_certificate(name):
    proof, text = PROOFS[name], to_lean(PROOFS[name])
    parts = len(proof.premises) + len(proof.squares)
    assert text.count("mul_nonneg") == parts
    assert f"theorem {name}" in text
    assert "not compiled" in text
    assert "<" not in text.replace(" 0 <", "").replace("<=", "").split("ℝ)", 1)[1].replace("0 < ", "")


@pytest.mark.parametrize("name", PROOFS)
def test_the_bounds_that_use_a_step_are_proved(name):
    assert PROOFS[name].bounds
    for bound in PROOFS[name].bounds:
        assert all_bounds()[bound].status is Status.PROVED
        assert PROOFS[name] in proofs_of(bound)


def test_a_wrong_premise_is_noticed():
    """A weight that may be negative, and a slack that does not add up."""
    proof = PROOFS["no_further_apart"]
    wrong = type(proof)(**{**vars(proof), "shares": {}})  # eta L unbounded
    assert wrong.unsigned() == (proof.squares[0].weight,)
    first = proof.premises[0]
    other = type(proof)(**{**vars(proof), "premises": (Premise(2 * first.weight, first.slack, first.why),)})
    assert not other.expands()


def test_workers_that_are_not_centred_do_not_average_out():
    proof = PROOFS["mean_of_gradients_convex"]
    vectors = type(proof.vectors)((("b", "gbar", "x", "d", "u"),))
    assert sp.simplify(proof.vectors.square({"b": 1, "u": 1}) - vectors.square({"b": 1, "u": 1})) != 0
