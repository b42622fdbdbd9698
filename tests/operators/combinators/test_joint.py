"""What operators of operators share: the scale that avoids underflow, and sizes that add up."""

import numpy as np
import pytest

from operators import QSGD, Identity, RandomK, ScaledSign, Size, TopK
from operators.bits import elias
from operators.combinators.joint import flag_field, joined_size, joint_randomness, prescale, shared_symmetries, unscale


@pytest.mark.parametrize(("top", "flag"), [(0.0, 0), (1.0, 0), (2.0**-62, 0), (2.0**-63, 1), (2.0**-149, 1)])
def test_small_vectors_are_lifted_exactly_and_lowered_back(top, flag):
    x = np.array([top / 2, -top], np.float32)
    y, seen = prescale(x)
    assert seen == flag
    assert y.tolist() == [float(v) * 2.0 ** (64 * flag) for v in x]
    assert unscale(y, seen).tolist() == x.tolist()
    assert flag_field(flag)[0].tolist() == [128 * flag]


def test_sizes_add_up_with_the_lengths_of_what_varies():
    exact = joined_size([ScaledSign().bits(9), Identity().bits(9)])
    assert exact.exact == 9 + 32 + 9 * 32 + 1
    varies = QSGD().bits(9)
    both = joined_size([ScaledSign().bits(9), varies])
    prefix = elias.length(int(varies.worst_case) + 1)
    assert both.exact is None
    assert both.worst_case == 9 + 32 + prefix + varies.worst_case + 1
    assert both.expected_upper == 9 + 32 + prefix + varies.expected_upper + 1
    assert joined_size([Size(worst_case=10)]) == Size(None, None, 10 + elias.length(11) + 1)
    assert joined_size([Size(worst_case=10), Size()]) == Size()


def test_randomness_and_symmetries_are_those_of_both():
    assert joint_randomness(TopK(k=1), ScaledSign()) == "none"
    assert joint_randomness(TopK(k=1), QSGD()) == "private"
    assert joint_randomness(RandomK(k=1), QSGD()) == "shared"
    assert shared_symmetries(ScaledSign(), QSGD()) == {"scale", "sign"}
