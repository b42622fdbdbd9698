"""Deep Gradient Compression: a scalar oracle, factor masking, clipping, warm-up, conservation."""

import math

import pytest
import torch

from operators import DeepGradientCompression, ErrorFeedback, Key, TopK
from operators.feedback.deep_gradient_compression import WARM_UP


def stream(d, steps, seed=0):
    return torch.randn(steps, d, generator=torch.Generator().manual_seed(seed))


def f32(v):
    return float(torch.tensor(v))


@pytest.mark.parametrize("feedback", [*DeepGradientCompression.examples(), DeepGradientCompression(0.2)], ids=repr)
def test_messages_equal_the_scalar_oracle(feedback):
    """In plain Python: clip, u = m u + g, v = v + u, send the largest |v|, clear both there."""
    d = 40
    sender, receiver, u, v = feedback.init(d), feedback.init_receiver(d), [0.0] * d, [0.0] * d
    for t, x in enumerate(stream(d, 12)):
        sender, message = feedback.encode(sender, x, key=Key(0, step=t))
        receiver, y = feedback.decode(receiver, message, d=d)
        g, norm = x.tolist(), math.sqrt(math.fsum(w * w for w in x.tolist()))
        if feedback.clip and norm > feedback.clip / math.sqrt(feedback.workers):
            g = [f32(w * (feedback.clip / math.sqrt(feedback.workers) / norm)) for w in g]
        u = [f32(f32(feedback.momentum * a) + b) for a, b in zip(u, g, strict=True)]
        v = [f32(a + b) for a, b in zip(v, u, strict=True)]
        stage = t // feedback.stage
        fraction = feedback.warm_up[stage] if stage < len(feedback.warm_up) else feedback.fraction
        keep = sorted(range(d), key=lambda i: (-abs(v[i]), i))[: max(1, math.ceil(fraction * d))]
        assert y.tolist() == pytest.approx([v[i] if i in keep else 0.0 for i in range(d)], rel=1e-5, abs=1e-6)
        u, v = ([0.0 if i in keep else w for i, w in enumerate(z)] for z in (u, v))
        assert sender["u"].tolist() == pytest.approx(u, rel=1e-5, abs=1e-6)
        assert sender["v"].tolist() == pytest.approx(v, rel=1e-5, abs=1e-6)


def test_momentum_of_a_sent_coordinate_stops():
    feedback = DeepGradientCompression(fraction=0.5)
    state, _ = feedback.encode(feedback.init(2), torch.tensor([1.0, 0.1]), key=Key(0))
    assert state["u"].tolist() == [0, f32(0.1)]
    assert state["v"].tolist() == [0, f32(0.1)]


def test_without_momentum_it_is_error_feedback_on_top_k():
    d, left, right = 30, DeepGradientCompression(0.1, momentum=0.0), ErrorFeedback(TopK(fraction=0.1))
    a, b, total = left.init(d), right.init(d), torch.zeros(d)
    for t, x in enumerate(stream(d, 50).mul(16).round()):
        a, one = left.encode(a, x, key=Key(0, step=t))
        b, two = right.encode(b, x, key=Key(0, step=t))
        assert one.payload.tolist() == two.payload.tolist()
        total += left.decode(left.init_receiver(d), one, d=d)[1]
    assert (total + a["v"]).equal(stream(d, 50).mul(16).round().sum(0))


def test_sum_with_momentum_is_that_of_the_geometric_series():
    """With everything sent at once momentum never builds up; with nothing sent v is momentum SGD's sum."""
    feedback, d = DeepGradientCompression(fraction=0.01, momentum=0.5), 100
    x = torch.zeros(d)
    x[0], x[1] = 100, 1
    state = feedback.init(d)
    for t in range(4):
        state, _ = feedback.encode(state, x, key=Key(0, step=t))
    assert state["v"][1] == 1 + 1.5 + 1.75 + 1.875


def test_clipping_uses_the_local_share_of_the_norm():
    feedback = DeepGradientCompression(fraction=1.0, clip=6.0, workers=4)
    _, message = feedback.encode(feedback.init(2), torch.tensor([30.0, 40.0]), key=Key(0))
    assert TopK(fraction=1.0).decode(message, d=2).tolist() == pytest.approx([1.8, 2.4])


def test_warm_up_keeps_the_published_shares_in_stages():
    feedback = DeepGradientCompression(0.001, warm_up=WARM_UP, stage=3)
    kept = [1 - feedback.operator_at(t).claim(1000).alpha for t in range(15)]
    assert kept == pytest.approx([0.25] * 3 + [0.063] * 3 + [0.016] * 3 + [0.004] * 3 + [0.001] * 3)
    assert [1 - f for f in WARM_UP] == [0.75, 0.9375, 0.984375, 0.996]
    assert feedback.bits(1000).worst_case == TopK(fraction=0.25).bits(1000).worst_case


@pytest.mark.parametrize(
    "arguments",
    [{"fraction": 0.0}, {"momentum": 1.0}, {"clip": 0.0}, {"workers": 0}, {"stage": 0}, {"warm_up": (2.0,)}],
)
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match="must"):
        DeepGradientCompression(**arguments)
