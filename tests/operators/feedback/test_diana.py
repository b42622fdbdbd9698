"""DIANA: equal shifts at both ends, exact contraction, and the exact optimum where compressed gradients stall."""

import itertools

import numpy as np
import pytest
import torch

from operators import DIANA, QSGD, Key, RandomK, TopK
from operators.compressors.random_k import random_support


@pytest.mark.parametrize("feedback", DIANA.examples(), ids=repr)
def test_messages_equal_the_scalar_oracle_and_both_ends_agree(feedback):
    """In plain Python, rounded to binary32: send C(x - h), use h + q, h = h + alpha q."""
    d, h = 20, [0.0] * 20
    alpha = feedback.alpha or 1 / (1 + feedback.operator.claim(d).omega)
    sender, receiver = feedback.init(d), feedback.init_receiver(d)
    for t, x in enumerate(torch.randn(30, d, generator=torch.Generator().manual_seed(0))):
        key = Key(0, step=t)
        sender, message = feedback.encode(sender, x, key=key)
        receiver, y = feedback.decode(receiver, message, d=d, key=key)
        q = feedback.operator(np.float32(x.numpy()) - np.array(h, np.float32), key=key)
        assert y.tolist() == [float(np.float32(a + float(b))) for a, b in zip(h, q, strict=True)]
        h = [float(np.float32(a + float(np.float32(alpha) * b))) for a, b in zip(h, q, strict=True)]
        assert sender["shift"].tolist() == receiver["shift"].tolist() == h


@pytest.mark.parametrize("alpha", [None, 0.1, 0.3])
def test_error_contracts_exactly_as_stated_over_all_outcomes(alpha):
    """RandomK is tight: E|h' - x|^2 = (1 - 2 alpha + alpha^2 (1 + omega)) |h - x|^2, 1 - alpha at the largest."""
    d, k = 5, 2
    feedback, x = DIANA(RandomK(k=k), alpha), torch.tensor([3.0, -1.0, 0.5, 2.0, -4.0])
    state = {"shift": torch.tensor([1.0, 0.0, 0.0, -1.0, 2.0])}
    seen = {}
    for t in range(400):
        key = Key(0, step=t)
        after, message = feedback.encode(state, x, key=key)
        _, y = feedback.decode(state, message, d=d, key=key)
        seen[tuple(random_support(key, k, d).tolist())] = after["shift"].double(), y.double()
    assert set(seen) == set(itertools.combinations(range(d), k))
    shifts, outputs = (torch.stack(column) for column in zip(*seen.values(), strict=True))
    before = float((state["shift"] - x).square().sum())
    rate, omega = feedback.rate(d), d / k - 1
    factor = 1 - 2 * rate + rate**2 * (1 + omega)
    assert float((shifts - x).square().sum(dim=1).mean()) == pytest.approx(factor * before, rel=1e-6)
    assert factor <= 1 - rate + 1e-12
    assert torch.allclose(outputs.mean(dim=0), x.double(), atol=1e-5)


def test_workers_reach_the_common_optimum_where_compressed_gradients_stall():
    """Four quadratics whose gradients at the common optimum are not zero; 600 steps."""
    n, d, rate = 4, 10, 0.1
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(n, d, generator=generator)
    operator, optimum = RandomK(fraction=0.3), centres.mean(dim=0)
    feedback, ends = DIANA(operator), {}
    for method in ("diana", "plain"):
        x, states = torch.zeros(d), [feedback.init(d) for _ in range(n)]
        for t in range(600):
            total = torch.zeros(d)
            for i in range(n):
                key, g = Key(0, step=t, rank=i), x - centres[i]
                if method == "plain":
                    total += operator(g, key=key)
                    continue
                before = states[i]
                states[i], message = feedback.encode(before, g, key=key)
                total += feedback.decode(before, message, d=d, key=key)[1]
            x = x - rate * total / n
        ends[method] = float((x - optimum).norm())
    assert ends["diana"] < 1e-5
    assert ends["plain"] > 0.05


def test_the_largest_alpha_is_permitted():
    assert DIANA(RandomK(k=1), alpha=0.2).rate(5) == 0.2


def test_operator_that_is_biased_or_alpha_that_is_too_large_is_refused():
    with pytest.raises(ValueError, match="operator of DIANA must be unbiased at d = "):
        DIANA(TopK(k=1)).init(5)
    with pytest.raises(ValueError, match=r"alpha <= 1/\(1 \+ omega\) = 0.2 at d = 5; got 0.3"):
        DIANA(RandomK(k=1), alpha=0.3).init(5)
    for alpha in (0.0, -1.0, 1.5):
        with pytest.raises(ValueError, match="0 < alpha <= 1"):
            DIANA(QSGD(), alpha=alpha)


def test_state_of_another_dimension_is_an_error():
    with pytest.raises(ValueError, match="call init again"):
        DIANA().encode(DIANA().init(4), torch.ones(5), key=Key(0))


def test_size_is_the_operators():
    assert DIANA(RandomK(k=3)).bits(10) == RandomK(k=3).bits(10)
