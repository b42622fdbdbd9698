"""A saved state of a feedback method carries the fingerprint of its settings, and only the same method loads it."""

import io
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators import DIANA, EF21, QSGD, ErrorFeedback, Key, OneBitAdam, PowerSGD, RandomK, ScaledSign, TopK
from operators.feedback.deep_gradient_compression import DeepGradientCompression
from operators.feedback.memoryless import Memoryless

D = 12
METHODS = [
    ErrorFeedback(TopK(k=2)),
    ErrorFeedback(TopK(k=3)),
    ErrorFeedback(ScaledSign()),
    EF21(TopK(k=2)),
    EF21(ScaledSign()),
    DIANA(RandomK(k=6)),
    DIANA(RandomK(k=6), alpha=0.25),
    DeepGradientCompression(fraction=0.25),
    DeepGradientCompression(fraction=0.25, momentum=0.5),
    OneBitAdam(warm_up=2),
    OneBitAdam(warm_up=3),
    PowerSGD(1),
    Memoryless(QSGD(levels=4)),
]
methods = st.sampled_from(METHODS)


def states(method, steps):
    """Both ends after some messages."""
    sender, receiver = method.init(D), method.init_receiver(D)
    for step in range(steps):
        message_key = Key(3, step=step)
        x = torch.from_numpy(np.random.default_rng(step).normal(size=D).astype(np.float32))
        sender, message = method.encode(sender, x, key=message_key)
        receiver, _ = method.decode(receiver, message, d=D, key=message_key)
    return sender, receiver


def stored(saved):
    file = io.BytesIO()
    torch.save(saved, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@given(methods, st.integers(0, 3), st.booleans())
def test_the_same_method_reads_either_end_back(method, steps, sends):
    state = states(method, steps)[0 if sends else 1]
    saved = stored(method.state_dict(state, d=D, key=Key(3, step=9, rank=4)))
    back = method.load_state_dict(saved, d=D, key=Key(3), receives=not sends)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)


@given(methods, methods, st.sampled_from([D, D + 1]), st.sampled_from([None, Key(3), Key(4)]))
def test_another_method_dimension_or_key_is_refused_by_name(method, other, d, key):
    saved = method.state_dict(states(method, 2)[0], d=D, key=Key(3))
    names = [
        name for name, differs in (("operator", method != other), ("d", d != D), ("key", key != Key(3))) if differs
    ]
    if not names:
        assert other.load_state_dict(saved, d=d, key=key).keys() == saved["values"].keys()
        return
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if names[:-1] else names)
    with pytest.raises(ValueError, match=f"{other.name} feedback differs in {listed}: give the same {listed}"):
        other.load_state_dict(saved, d=d, key=key)


@given(methods.filter(lambda method: method.init(D)), st.sampled_from([math.nan, math.inf, -math.inf]), st.data())
def test_a_state_that_is_not_finite_or_has_other_tensors_is_refused(method, value, data):
    saved = method.state_dict(states(method, 2)[0], d=D)
    name = data.draw(st.sampled_from(sorted(name for name, tensor in saved["values"].items() if tensor.ndim)))
    saved["values"][name].view(-1)[data.draw(st.integers(0, saved["values"][name].numel() - 1))] = value
    with pytest.raises(ValueError, match=f"{method.name} feedback, {name} has NaN or infinity"):
        method.load_state_dict(saved, d=D)
    saved["values"][name] = torch.zeros(3, 5)
    with pytest.raises(ValueError, match=f"{name} must have the shape and dtype"):
        method.load_state_dict(saved, d=D)
    del saved["values"][name]
    with pytest.raises(ValueError, match="must have the entries"):
        method.load_state_dict(saved, d=D)


@pytest.mark.parametrize("saved", [{}, None, {"residual": torch.zeros(D)}])
def test_what_is_no_saved_state_is_refused(saved):
    with pytest.raises(ValueError, match="state"):
        METHODS[0].load_state_dict(saved, d=D)


def test_a_saved_state_is_a_copy():
    method = METHODS[0]
    state = states(method, 1)[0]
    saved = method.state_dict(state, d=D)
    back = method.load_state_dict(saved, d=D)
    saved["values"]["residual"].zero_()
    assert state["residual"].any()
    assert back["residual"].any()
