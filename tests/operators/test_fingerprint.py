"""Equal settings have equal digests wherever their objects lie; other settings differ by name."""

import functools
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import QSGD, ErrorFeedback, Key, TopK, own
from operators.fingerprint import (
    combined,
    differing,
    fingerprint,
    made_optimizer,
    require_equal_ranks,
    require_like,
    require_own_state,
)


class Kind(Enum):
    A = 1
    B = 2


class Plain:
    def __init__(self, lr):
        self.lr = lr

    def __call__(self, x):
        return x * self.lr

    def method(self, x):
        return x


@dataclass(frozen=True)
class Nested:
    inner: object
    label: str = field(default="", compare=False)


def closed(lr):
    return lambda x: x * lr


def constant(a):
    return (lambda x: x * 2) if a == 1 else (lambda x: x * 3)


def default(lr):
    return lambda x, lr=lr: x * lr


def keyword(lr):
    def function(x, *, lr=lr):
        return x * lr

    return function


MAKERS = [
    closed,
    constant,
    default,
    keyword,
    Plain,
    Nested,
    float,
    np.float32,
    torch.tensor,
    Key,
    lambda a: np.arange(3) * a,
    lambda a: torch.arange(3.0) * a,
    lambda a: functools.partial(Plain, lr=a),
    lambda a: Plain(a).method,
    lambda a: [0, {"lr": a}],
    lambda a: {a, 5},
    lambda a: Kind(a),
    lambda a: QSGD(levels=a),
    lambda a: ErrorFeedback(TopK(k=a)),
    lambda a: own(closed(a), bits=8),
    lambda a: made_optimizer(lambda ps: torch.optim.SGD(ps, lr=torch.tensor(float(a)))),
    lambda a: made_optimizer(functools.partial(torch.optim.Adam, betas=(a / 10, 0.9))),
    lambda a: made_optimizer(lambda ps: [torch.optim.SGD, torch.optim.Adam][a - 1](ps, lr=0.1)),
    lambda a: made_optimizer(lambda ps: 1 / (a - 1) and None),
]


@pytest.mark.parametrize("make", MAKERS, ids=range(len(MAKERS)))
def test_the_same_twice_is_equal_and_another_differs(make):
    one, again, other = ({"a": 0, "it": Nested(make(a))} for a in (1, 1, 2))

    assert fingerprint(one) == fingerprint(again)
    assert combined(fingerprint(one)) != combined(fingerprint(other))
    assert differing(fingerprint(one), fingerprint(other)) == ["it"]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(values, values)
def test_equal_plain_values_have_equal_digests(one, other):
    def told_apart(value):  # Python's == holds between True and 1
        if isinstance(value, dict):
            return {key: told_apart(part) for key, part in value.items()}
        if isinstance(value, list):
            return [told_apart(part) for part in value]
        return (type(value).__name__, value) if isinstance(value, bool) else value

    equal = told_apart(one) == told_apart(other)
    assert (fingerprint({"": one}) == fingerprint({"": other})) == equal


def test_numbers_are_compared_by_value_across_libraries():
    digests = {fingerprint({"n": n})["n"] for n in (4, 4.0, np.int64(4), np.float32(4), torch.tensor(4))}

    assert len(digests) == 1
    assert 0 <= digests.pop() < 2**63


def test_what_contains_itself_ends():
    ring = Plain(1)
    ring.lr = [ring]

    assert fingerprint({"it": ring}) == fingerprint({"it": ring})


def test_ranks_that_differ_are_named_with_their_settings():
    prints = [fingerprint({"a": 1, "b": 2, "c": 3}) for _ in range(2)] + [fingerprint({"a": 1, "b": 0, "c": 0})]

    require_equal_ranks(prints[:2])
    with pytest.raises(ValueError, match="ranks 0 and 2 differ in b and c: give all ranks the same b and c"):
        require_equal_ranks(prints)


@pytest.mark.parametrize("state", [{}, None, [], {"a": 1}, 3])
def test_what_is_no_state_is_refused_with_a_sentence(state):
    with pytest.raises(ValueError, match=r"state .*of this hook"):
        require_own_state(state, fingerprint({"a": 1}), of="this hook")


@pytest.mark.parametrize(
    ("saved", "words"),
    [
        ({}, "entries"),
        ({"r": torch.zeros(3)}, r"x, r must have the shape and dtype \(2,\), float32; got \(3,\)"),
        ({"r": torch.zeros(2, dtype=torch.float64)}, "float64"),
        ({"r": torch.tensor([0.0, float("inf")])}, "x, r has NaN or infinity"),
        ({"r": [0.0, 0.0]}, "got a list"),
        ({"r": torch.zeros(2), "s": torch.zeros(2)}, "got"),
    ],
)
def test_saved_tensors_must_fit_and_be_finite(saved, words):
    with pytest.raises(ValueError, match=words):
        require_like(saved, {"r": torch.zeros(2)}, "x")
