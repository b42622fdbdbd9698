"""Every call of the calculator at generated points: ``every_call`` says what is looked at."""

import pytest

from ratedist.calls import all_calls
from tests.ratedist.every_call import FILES, judge, question

POINTS = 15
HEAVY = {"plan": 2, "check": 1, "gap": 4, "predict": 2, "operators": 1, "theorems": 1, "pretrain": 3, "bits": 10}
CASES = [
    pytest.param(name, marks=pytest.mark.thorough if name in HEAVY else ()) for name in all_calls() if name not in FILES
]


@pytest.mark.parametrize("name", CASES)
def test_generated_questions_are_answered_or_refused_in_a_sentence(name):
    outcomes = {judge(name, question(name, seed)) for seed in range(HEAVY.get(name, POINTS))}
    assert outcomes <= {"answered", "refused"}
