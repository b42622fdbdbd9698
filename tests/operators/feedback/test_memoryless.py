"""An operator dressed as a feedback method behaves as the operator."""

import torch

from operators import QSGD, Key
from operators.feedback.memoryless import Memoryless


def test_messages_are_the_operators_and_nothing_is_remembered():
    operator, key = QSGD(levels=4), Key(0)
    method, x = Memoryless(operator), torch.linspace(-1, 1, 50)

    state, message = method.encode(method.init(50), x, key=key)
    received, decoded = method.decode(method.init_receiver(50), message, d=50, key=key)

    expected = operator.encode(x, key=key)
    assert message.bits == expected.bits
    assert torch.equal(message.payload, expected.payload)
    assert torch.equal(decoded, operator.decode(expected, d=50))
    assert state == received == {}
    assert method.bits(50) == operator.bits(50)
