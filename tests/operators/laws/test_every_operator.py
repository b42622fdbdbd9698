"""Every operator, wrapper and merger of the catalogue against every law."""

import numpy as np
import pytest
import torch
from hypothesis import event, given, target
from hypothesis import strategies as st

from bounds.claims import NoClaim, StrictlyContractive
from operators import QSGD, ErrorFeedback, Key, ScaledSign, TopK, all_aggregates, all_feedbacks, all_operators
from operators.laws import Budget, check, parametrize_with_checks
from operators.laws.betting.eprocess import SLACK

from .strategies import gradients, in_range, long_vectors, short_vectors

EXAMPLES = [op for cls in all_operators().values() for op in cls.examples()]
WRAPPERS = [
    op for catalogue in (all_feedbacks(), all_aggregates()) for cls in catalogue.values() for op in cls.examples()
]
FIRST = list({type(op): op for op in reversed([*EXAMPLES, *WRAPPERS])}.values())[::-1]  # one example a class
QUICKLY_JUDGED = (QSGD, TopK, ScaledSign, ErrorFeedback)  # unbiased, strictly contractive, contractive, a wrapper
STRICT = [op for op in EXAMPLES if isinstance(op.claim(9), StrictlyContractive)]
SMALL = Budget(
    bias=0.3,
    draws=60,
    evaluations=64,
    sizes=(1, 9, 64, 1000, 4097),
    drawn_sizes=(2, 9),
    lengths=(65, 257),
    drawn=1,
    search=6,
    large=2050,
).untimed()  # fmt: skip
KEYS = st.builds(Key, st.integers(0, 2**64 - 1), step=st.integers(0, 2**40), rank=st.integers(0, 4096))


@pytest.mark.parametrize(
    "op",
    [
        pytest.param(op, id=repr(op), marks=[] if isinstance(op, QUICKLY_JUDGED) else [pytest.mark.thorough])
        for op in FIRST
    ],
)
def test_operator_obeys_every_law_that_applies_to_it(op):
    """Statistical part: at most 100 draws an example, total level 1e-6, fixed seed."""
    report = check(op, budget=SMALL, seed=20261121)
    assert report.ok, str(report)


@pytest.mark.slow
@parametrize_with_checks([*EXAMPLES, *WRAPPERS], budget=Budget(), seed=20261122)
def test_operator_obeys_law(operator, law):
    law(operator)


@given(op=st.sampled_from(EXAMPLES), x=gradients(), key=KEYS)
def test_message_is_exact_and_decodes_to_a_finite_vector(op, x, key):
    message = op.encode(x, key=key)
    y = op.decode(message, d=x.size, key=key)
    size = op.bits(x.size)

    event(op.name)
    assert y.dtype == torch.float32
    assert y.shape == x.shape
    assert np.isfinite(y.numpy()).all()
    assert size.exact in (None, message.bits)
    assert size.worst_case is None or message.bits <= size.worst_case
    again = op.encode(torch.from_numpy(x.copy()), key=key)
    assert torch.equal(again.payload, message.payload)


@given(op=st.sampled_from(STRICT), x=gradients().filter(in_range), key=KEYS)
def test_no_vector_exceeds_a_strict_contraction(op, x, key):
    wide = x.astype(np.float64)
    error = np.linalg.norm(op.decode(op.encode(x, key=key), d=x.size, key=key).numpy() - wide) / np.linalg.norm(wide)
    promised = np.sqrt(op.claim(x.size).alpha)

    target(float(error - promised), label="error above the claim")
    assert error <= promised + SLACK


@given(op=st.sampled_from(EXAMPLES), x=st.one_of(short_vectors(), long_vectors()), sign=st.sampled_from([0.0, -0.0]))
def test_zero_stays_zero_whatever_its_sign(op, x, sign):
    zero = np.full(x.size, sign, np.float32)
    if not isinstance(op.claim(x.size), NoClaim):
        assert not op(zero, key=Key(1)).any()
