"""Error feedback: nothing is lost, memory stays bounded, states are values."""

import math

import pytest
import torch

from operators import ErrorFeedback, Key, ScaledSign, TopK


def stream(d, steps, seed=0):
    return torch.randn(steps, d, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("feedback", ErrorFeedback.examples(), ids=repr)
def test_messages_equal_the_scalar_oracle(feedback):
    """In plain Python: p = x + e, send C(p), e = p - C(p)."""
    d, operator = 20, feedback.operator
    sender, receiver, e = feedback.init(d), feedback.init_receiver(d), [0.0] * d
    for t, x in enumerate(stream(d, 30)):
        key = Key(0, step=t)
        sender, message = feedback.encode(sender, x, key=key)
        receiver, y = feedback.decode(receiver, message, d=d)
        p = [torch.tensor(a) + torch.tensor(b) for a, b in zip(x.tolist(), e, strict=True)]
        want = operator(torch.stack(p), key=key)
        e = [float(a - b) for a, b in zip(p, want, strict=True)]
        assert y.tolist() == want.tolist()
        assert sender["residual"].tolist() == e


@pytest.mark.parametrize("feedback", ErrorFeedback.examples(), ids=repr)
def test_decoded_sum_plus_residual_is_the_input_sum(feedback):
    d, steps = 50, 200
    state, total, xs = feedback.init(d), torch.zeros(d, dtype=torch.float64), stream(d, steps)
    for t, x in enumerate(xs):
        state, message = feedback.encode(state, x, key=Key(0, step=t))
        total += feedback.decode({}, message, d=d)[1]
    assert torch.allclose(total + state["residual"], xs.double().sum(0), atol=steps * 2**-20)


@pytest.mark.parametrize("operator", [TopK(fraction=0.2), ScaledSign()], ids=repr)
def test_residual_stays_below_its_bound(operator):
    d = 20
    feedback, state, alpha = ErrorFeedback(operator), None, operator.claim(d).alpha
    state = feedback.init(d)
    for t, x in enumerate(stream(d, 500, seed=3)):
        state, _ = feedback.encode(state, math.sqrt(d) * x / x.norm(), key=Key(0, step=t))
        assert state["residual"].norm() ** 2 <= 4 * alpha / (1 - alpha) ** 2 * d


def test_state_given_is_not_changed_and_survives_storage(tmp_path):
    feedback, xs = ErrorFeedback(TopK(k=2)), stream(9, 2)
    first = feedback.init(9)
    second, _ = feedback.encode(first, xs[0], key=Key(0))
    assert not first["residual"].any()
    torch.save(dict(second), tmp_path / "state.pt")
    loaded = torch.load(tmp_path / "state.pt", weights_only=True)
    _, one = feedback.encode(second, xs[1], key=Key(0, step=1))
    _, two = feedback.encode(loaded, xs[1], key=Key(0, step=1))
    assert one.payload.tolist() == two.payload.tolist()


def test_state_of_another_dimension_is_an_error():
    feedback = ErrorFeedback()
    with pytest.raises(ValueError, match=r"d = 4; got x with d = 5: call init again"):
        feedback.encode(feedback.init(4), torch.ones(5), key=Key(0))


def test_size_is_the_operators():
    assert ErrorFeedback(TopK(k=3)).bits(10) == TopK(k=3).bits(10)
