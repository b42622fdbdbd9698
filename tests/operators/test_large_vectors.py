"""Long vectors: indices, gaps and counts beyond 32 bits.

All coordinates are zero but the last, which these operators send exactly: whatever loses a bit of an index shows.
"""

import pytest
import torch

from operators import Key, parse

VALUE = -4.0  # a power of two: natural compression keeps it
EXACT = ("topk:k=2", "hard_threshold:threshold=1.0", "qsgd:levels=16", "terngrad", "natural", "cast:format=bf16")
FRUGAL = ("topk:k=2", "hard_threshold:threshold=1.0", "qsgd:levels=16", "terngrad")  # payload and passes fit 20 GB


def last_alone(d):
    x = torch.zeros(d)
    x[-1] = VALUE
    return x


def check_last_alone(specification, d):
    operator, key = parse(specification), Key(seed=3)
    message = operator.encode(last_alone(d), key=key)
    y = operator.decode(message, d=d, key=key)
    assert y.shape == (d,)
    assert torch.count_nonzero(y) == 1
    assert y[-1] == VALUE
    worst = operator.bits(d).worst_case
    assert worst is None or message.bits <= worst


@pytest.mark.parametrize("specification", EXACT)
def test_a_million_coordinates(specification):
    check_last_alone(specification, 10**6 + 3)


@pytest.mark.thorough
@pytest.mark.parametrize("specification", EXACT)
def test_a_hundred_million_coordinates(specification):
    check_last_alone(specification, 10**8)


@pytest.mark.slow  # 17 to 20 GB of memory
@pytest.mark.parametrize("specification", FRUGAL)
def test_more_coordinates_than_32_bit_integers_count(specification):
    check_last_alone(specification, 2**31 + 5)
