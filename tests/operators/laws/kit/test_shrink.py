"""Shrinking: simpler vectors that fail in the same way."""

import numpy as np
import torch

from operators.laws import Budget
from operators.laws.kit.examples import Example
from operators.laws.kit.law import Context, Law, Violation, simpler
from operators.laws.kit.subject import Subject


class NoThree(Law):
    """Fails where some entry exceeds 3; raises at d = 1."""

    name = "no-three"

    def holds(self, subject, example, context):
        if example.d == 1:
            raise RuntimeError("another failure")
        if (example.x > 3).any():
            raise Violation(f"{example.x.max()} exceeds 3")


def test_failing_vector_becomes_short_sparse_and_round():
    x = np.random.default_rng(0).uniform(-2, 2, 500).astype(np.float32)
    x[123] = 7.3210001

    law, start = NoThree(), Example("start", x)
    verdict = law.simplest(
        Subject(torch.clone), start, law.failed(Violation("7.32 exceeds 3"), start), Context(Budget(), 1)
    )

    assert verdict.x.size <= 4
    assert np.count_nonzero(verdict.x) == 1
    assert verdict.x.max() == 7
    assert verdict.text == "7.0 exceeds 3"
    assert verdict.example == "shrunk from start"


def test_another_kind_of_failure_is_not_taken_for_this_one():
    law, start = NoThree(), Example("start", np.full(2, 4, np.float32))
    verdict = law.simplest(
        Subject(torch.clone), start, law.failed(Violation("4 exceeds 3"), start), Context(Budget(), 1)
    )
    assert verdict.x.size == 2
    assert "exceeds" in verdict.text


def test_candidates_are_simpler_and_never_the_vector_itself():
    x = np.array([0.3, -2.0, 0.0, 5.5], np.float32)
    seen = list(simpler(x))

    assert seen
    assert all(c.tobytes() != x.tobytes() for c in seen)
    assert all(c.any() for c in seen)
    assert len({c.tobytes() for c in seen}) == len(seen)
