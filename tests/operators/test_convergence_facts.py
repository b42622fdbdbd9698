"""What is known about training with signs: two counterexamples that fail without memory and succeed with it."""

import numpy as np
import pytest
import torch

from operators import EF21, ErrorFeedback, Identity, Key, ScaledSign, SignSGD, TopK
from operators.random import uniform


def run(start, gradient, operator, steps, rate, box=None, feedback=None):
    """Steps of size rate(t) along the decoded message, clipped to the box; x after each step."""
    x, state, path = torch.tensor(start, dtype=torch.float64), None, []
    state = feedback.init(x.numel()) if feedback else None
    for t in range(steps):
        g, key = gradient(x, t), Key(0, step=t)
        if feedback:
            state, message = feedback.encode(state, rate(t) * g, key=key)
            x = x - feedback.decode({}, message, d=x.numel())[1].double()
        else:
            x = x - rate(t) * operator(g, key=key).double()
        x = x.clamp(*box) if box else x
        path.append(x)
    return torch.stack(path)


def rare_large(x, t):
    """Unbiased gradient of x/4: 4 with probability 1/4, else -1."""
    return torch.tensor([4.0 if uniform(Key(1), 1, start=t)[0] < 0.25 else -1.0])


def test_signs_climb_the_slope_when_large_gradients_are_rare():
    """f = x/4 on [-1, 1]: the sign of the gradient is wrong three times in four."""
    path = run([0.0], rare_large, SignSGD(), 3000, lambda t: 0.01, box=(-1, 1))
    assert path[-1000:].mean() > 0.9


def test_error_feedback_descends_that_slope():
    path = run([0.0], rare_large, None, 3000, lambda t: 0.01, (-1, 1), ErrorFeedback(ScaledSign()))
    assert path[-1000:].mean() < -0.8


def kinks(x, t):
    """A subgradient of |x1 + x2|/2 + |x1 - x2|, sign(0) = +1."""
    plus, minus = (1.0 if x[0] + x[1] >= 0 else -1.0), (1.0 if x[0] - x[1] >= 0 else -1.0)
    return torch.tensor([0.5 * plus + minus, 0.5 * plus - minus])


def value(x):
    return float((x[0] + x[1]).abs() / 2 + (x[0] - x[1]).abs())


def test_signs_never_leave_the_line_of_constant_sum():
    path = run([1.0, 1.5], kinks, SignSGD(), 3000, lambda t: 0.5 / (t + 1) ** 0.75)
    assert torch.allclose(path.sum(1), torch.tensor(2.5, dtype=torch.float64))
    assert 1.25 <= value(path[-1]) < 1.27


def test_error_feedback_reaches_the_minimum_of_the_kinks():
    path = run([1.0, 1.5], kinks, None, 3000, lambda t: 0.5 / (t + 1) ** 0.75, feedback=ErrorFeedback(ScaledSign()))
    assert min(value(x) for x in path[-100:]) < 0.02


def test_iterate_minus_residual_follows_uncompressed_descent():
    """The invariant behind error feedback, on a quadratic, at every step."""
    h = torch.linspace(0.1, 1, 20, dtype=torch.float64)
    feedback, x, state = ErrorFeedback(TopK(fraction=0.1)), torch.ones(20, dtype=torch.float64), None
    state, moved = feedback.init(20), torch.ones(20, dtype=torch.float64)
    for t in range(100):
        g = h * x
        state, message = feedback.encode(state, 0.3 * g, key=Key(0, step=t))
        x = x - feedback.decode({}, message, d=20)[1].double()
        moved = moved - 0.3 * g
        assert torch.allclose(x - state["residual"].double(), moved, atol=1e-5)
    assert x.norm() < 0.3


@pytest.mark.every(3)
@pytest.mark.parametrize("operator", [Identity(), TopK(k=2), ScaledSign()], ids=repr)
def test_ef21_converges_linearly_on_a_quadratic_of_two_disagreeing_workers(operator):
    """Gradients at the optimum are +-c, not 0; compressing them directly would stall."""
    d, c = 10, torch.linspace(1, 3, 10)
    h, feedback, x = torch.linspace(0.5, 1, d), EF21(operator), torch.ones(d)
    senders, receivers = [feedback.init(d)] * 2, [feedback.init_receiver(d)] * 2
    norms = []
    for t in range(1500):
        total = torch.zeros(d)
        for i, shift in enumerate((c, -c)):
            senders[i], message = feedback.encode(senders[i], h * x + shift, key=Key(0, step=t, rank=i))
            receivers[i], estimate = feedback.decode(receivers[i], message, d=d)
            total += estimate / 2
        x = x - 0.1 * total
        norms.append(float(x.norm()))
    assert norms[-1] < 1e-4
    assert np.isfinite(norms).all()


def test_compressing_the_gradients_directly_stalls_where_ef21_converges():
    d, c, x = 10, torch.linspace(1, 3, 10), torch.ones(10)
    h = torch.linspace(0.5, 1, d)
    for t in range(1500):
        x = x - 0.1 * sum(TopK(k=2)(h * x + s, key=Key(0, step=t)) for s in (c, -c)) / 2
    assert x.norm() > 0.5
