"""Every wrong operator that is wrong as a map is accused in every form, and not only as an Operator."""

import pytest

from operators.laws import Budget, check

from .forms import FORMS
from .mutants import MUTANTS

BUDGET = Budget(sizes=(2, 9), drawn_sizes=(2, 8), drawn=2, draws=600, lengths=(64, 65), search=5, shrinking=0).untimed()
EXACT = ["sure-contraction", "exact-marginals", "enumeration", "output-form", "zero", "no-mutation"]
MEMORY = ["kept-output", "own-message"]
STATISTICAL = ["every-coordinate", "distortion", "unbiasedness", "constant-reached", "adversarial-search"]
REPRESENTATIVES = ("2 % shrink", "k/d for d/k", "sign scale max", "every output in one buffer")

# A function, a hook or a pair promises nothing about the length of messages, damaged ones, other types and strides,
# invalid input, equivariance, purity or the meaning of keys: what breaks only such a promise is no wrong map.
OF_THE_CONTRACT = {
    "declared-size", "expected-size", "corruption", "round-trip", "payload-alone", "input-contract", "negative-zero",
    "circumstances", "lengths", "private-randomness", "random-state", "determinism", "key-separation",
    "independent-streams", "scale", "sign", "permutation", "extremes",
}  # fmt: skip
NOT_ACCUSED = {
    "max norm under the claim of the L2 norm": "the claim is true of it; only a declared witness is not",
    "claim_at misses the rounding of small entries": "a function has no claim_at",
    "exponents clamped at 2^-30": "unbiased functions are not tried at the lower end of the claims' range",
    "subnormal range reached too early": "unbiased functions are not tried at the lower end of the claims' range",
}
CEILINGS = {"a very loose constant called tight": 4.0}  # |C(x) - x|^2/|x|^2, which a function does not declare
NO_FAULT = {
    ("the input overwritten", "hook"): "a hook may write to its bucket",
    ("the payload is a view of the gradient", "numpy"): "the message is gone when the function returns",
    ("the payload is a view of the gradient", "hook"): "the message is gone when the hook returns",
}
WRONG_MAPS = [m for m in MUTANTS if m.law not in OF_THE_CONTRACT and m.what not in NOT_ACCUSED]


def accused(subject, ceiling=None):
    """By the exact laws, one by one, or else by the statistical ones."""
    laws = [*EXACT, *MEMORY, *STATISTICAL]
    return any(check(subject, seed=4, budget=BUDGET, ceiling=ceiling, laws=[law]).failures for law in laws)


@pytest.mark.every(4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", REPRESENTATIVES)
def test_representative_wrong_operator_is_accused_in_every_form(what, form):
    assert accused(FORMS[form](next(m.wrong for m in MUTANTS if m.what == what)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "form"),
    [
        pytest.param(m, form, id=f"{m.what}-{form}")
        for m in WRONG_MAPS
        for form in FORMS
        if (m.what, form) not in NO_FAULT
    ],
)
def test_wrong_operator_is_accused_in_every_form(mutant, form):
    assert accused(FORMS[form](mutant.wrong), CEILINGS.get(mutant.what))


def test_most_mutants_are_wrong_maps():
    assert len(WRONG_MAPS) >= 45
