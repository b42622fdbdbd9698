"""What every test of an operator asks of its oracle, and of payloads that no encoder sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from operators import CorruptMessage, Key, Message, Operator


def bits_of(message: Message) -> str:
    """The payload as zeros and ones, padding removed."""
    return "".join(f"{byte:08b}" for byte in message.payload.tolist())[: message.bits]


def assert_equals_oracle(
    operator: Operator, vectors: Iterable[np.ndarray], key: Key, oracle: Callable[[np.ndarray], tuple[str, Any]]
) -> None:
    """Assert that the oracle's bits are sent, its values decoded, and the message is as long as declared.

    Parameters
    ----------
    operator : Operator
        What is tested.
    vectors : iterable of ndarray
        Its inputs.
    key : Key
        The encoder's; the decoder gets it only if randomness is shared.
    oracle : callable
        Vector -> (text of zeros and ones, list of decoded values or ``pytest.approx`` of one).
    """
    for x in vectors:
        message = operator.encode(x, key=key)
        text, values = oracle(x)
        assert bits_of(message) == text
        decoded = operator.decode(message, d=x.size, key=key if operator.randomness == "shared" else None)
        assert decoded.tolist() == values
        declared = operator.bits(x.size)
        if declared.exact is None:
            assert message.bits <= declared.worst_case
        else:
            assert message.bits == declared.exact


def refuses_payloads(operator: Operator, d: int, *messages: Message, key: Key | None = None) -> None:
    """Assert that the decoder refuses every one of these messages.

    Parameters
    ----------
    operator : Operator
        What is tested.
    d : int
        Length of the vector.
    messages : Message
        What no encoder sends.
    key : Key, optional
        For shared randomness.
    """
    for message in messages:
        with pytest.raises(CorruptMessage):
            operator.decode(message, d=d, key=key)
