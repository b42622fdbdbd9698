"""1-bit Adam: exact warm-up, frozen variance, nothing lost after it, and progress like Adam's."""

import numpy as np
import pytest
import torch

from operators import CorruptMessage, Identity, Key, OneBitAdam, ScaledSign, TopK


def f32(value):
    return float(np.float32(value))


def stream(d, steps, seed=0):
    return torch.randn(steps, d, generator=torch.Generator().manual_seed(seed))


def run(feedback, xs):
    """(sender's states, receiver's states, decoded momenta) after each message."""
    d = xs.shape[1]
    sender, receiver, log = feedback.init(d), feedback.init_receiver(d), []
    for t, x in enumerate(xs):
        sender, message = feedback.encode(sender, x, key=Key(0, step=t))
        receiver, y = feedback.decode(receiver, message, d=d)
        log.append((sender, receiver, y, message))
    return log


@pytest.mark.parametrize("operator", [ScaledSign(), TopK(k=2)], ids=repr)
def test_messages_equal_the_scalar_oracle(operator):
    """In plain Python, with binary32 rounding where tensors round."""
    d, feedback = 6, OneBitAdam(3, operator, beta1=0.75, beta2=0.5)
    m, v, e = [0.0] * d, [0.0] * d, [0.0] * d
    for t, (sender, receiver, y, message) in enumerate(run(feedback, stream(d, 12))):
        x = stream(d, 12)[t].tolist()
        mixed = [f32(f32(0.75 * a) + f32(0.25 * b)) for a, b in zip(m, x, strict=True)]
        if t < 3:
            m = mixed
            v = [f32(f32(0.5 * a) + f32(0.5 * f32(b * b))) for a, b in zip(v, x, strict=True)]
            assert message.bits == Identity().bits(d).exact
        else:
            wanted = [f32(a + b) for a, b in zip(mixed, e, strict=True)]
            m = operator(np.array(wanted, np.float32), key=Key(0, step=t)).tolist()
            e = [f32(a - b) for a, b in zip(wanted, m, strict=True)]
            assert message.bits <= operator.bits(d).worst_case
        assert y.tolist() == m == sender["momentum"].tolist() == receiver["momentum"].tolist()
        assert sender["variance"].tolist() == receiver["variance"].tolist() == v
        assert sender["error"].tolist() == e


def test_variance_is_frozen_and_one_bit_a_coordinate_is_sent():
    d, feedback = 50, OneBitAdam(warm_up=5)
    log = run(feedback, stream(d, 20))
    frozen = log[4][1]["variance"]
    assert (frozen > 0).all()
    for _, receiver, _, message in log[5:]:
        assert torch.equal(receiver["variance"], frozen)
        assert message.bits == d + 32
    assert feedback.bits(d).worst_case == 32 * d
    with pytest.raises(CorruptMessage):
        feedback.decode(log[4][1], log[4][3], d=d)  # an exact message after the warm-up


def test_nothing_is_lost_after_the_warm_up():
    """decoded + error = b1 m + (1 - b1) x + error before, at every message, in exact powers of two."""
    d, feedback = 8, OneBitAdam(2, TopK(k=3), beta1=0.5)
    xs = stream(d, 30).mul(16).round()
    log = run(feedback, xs)
    for t in range(2, 30):
        before, after = log[t - 1][0], log[t][0]
        wanted = 0.5 * before["momentum"] + 0.5 * xs[t] + before["error"]
        assert torch.allclose(log[t][2] + after["error"], wanted, atol=1e-5)


def test_direction_has_a_floor_where_the_variance_is_zero():
    feedback = OneBitAdam(warm_up=1, epsilon=0.5)
    state = {**feedback.init(2), "variance": torch.tensor([0.0, 4.0])}
    assert feedback.direction(state, torch.tensor([1.0, 5.0])).tolist() == [2.0, 2.0]


def test_four_workers_agree_and_come_as_close_as_exact_adam():
    """A quadratic of condition 100 with gradient noise; mean of the last 100 of 600 values."""
    n, d, rate, warm_up = 4, 20, 0.01, 100
    curvature, ends = torch.logspace(-1, 1, d), {}
    for exact in (False, True):
        feedback = OneBitAdam(10**6 if exact else warm_up, beta2=0.99)
        generator, x = torch.Generator().manual_seed(0), torch.ones(d)
        states, values, v = [feedback.init(d) for _ in range(n)], [], torch.zeros(d)
        for t in range(600):
            gradients = [curvature * x + 0.1 * torch.randn(d, generator=generator) for _ in range(n)]
            momenta = []
            for i, g in enumerate(gradients):
                before = states[i]
                states[i], message = feedback.encode(before, g, key=Key(0, step=t, rank=i))
                momenta.append(feedback.decode(before, message, d=d)[1])
            momentum = torch.stack(momenta).mean(dim=0)
            if exact or t < warm_up:
                v = 0.99 * v + 0.01 * torch.stack(gradients).mean(dim=0).square()
            states = [feedback.agree(state, momentum, v) for state in states]
            x = x - rate * feedback.direction(states[0], momentum)
            values.append(float((curvature * x * x).sum() / 2))
        ends[exact] = float(np.mean(values[-100:]))
        assert values[0] > 5
    assert ends[False] < 0.05
    assert ends[True] < 0.05


@pytest.mark.parametrize("arguments", [{"warm_up": 0}, {"beta1": 1.0}, {"beta2": -0.1}, {"epsilon": 0.0}])
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        OneBitAdam(**arguments)


def test_state_of_another_dimension_is_an_error():
    with pytest.raises(ValueError, match="call init again"):
        OneBitAdam().encode(OneBitAdam().init(4), torch.ones(5), key=Key(0))
