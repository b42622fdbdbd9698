"""EF21: equal estimates at both ends, geometric convergence on a constant input."""

import pytest
import torch

from operators import EF21, Key, ScaledSign, TopK


@pytest.mark.parametrize("feedback", EF21.examples(), ids=repr)
def test_messages_equal_the_scalar_oracle_and_both_ends_agree(feedback):
    """In plain Python: send C(x - g), g = g + C(x - g)."""
    d, g = 20, [0.0] * 20
    sender, receiver = feedback.init(d), feedback.init_receiver(d)
    for t, x in enumerate(torch.randn(30, d, generator=torch.Generator().manual_seed(0))):
        key = Key(0, step=t)
        sender, message = feedback.encode(sender, x, key=key)
        receiver, y = feedback.decode(receiver, message, d=d)
        change = feedback.operator(torch.stack([a - torch.tensor(b) for a, b in zip(x, g, strict=True)]), key=key)
        g = [float(torch.tensor(a) + b) for a, b in zip(g, change, strict=True)]
        assert y.tolist() == g == sender["estimate"].tolist() == receiver["estimate"].tolist()


@pytest.mark.parametrize("operator", [TopK(fraction=0.3), ScaledSign()], ids=repr)
def test_error_on_a_constant_input_shrinks_by_alpha_a_message(operator):
    d = 10
    feedback, x = EF21(operator), torch.linspace(-1, 2, d)
    state, error = feedback.init(d), float(x.square().sum())
    for t in range(20):
        state, _ = feedback.encode(state, x, key=Key(0, step=t))
        now = float((state["estimate"] - x).square().sum())
        assert now <= operator.claim(d).alpha * error + 1e-12
        error = now


def test_state_of_another_dimension_is_an_error():
    with pytest.raises(ValueError, match="call init again"):
        EF21().encode(EF21().init(4), torch.ones(5), key=Key(0))
