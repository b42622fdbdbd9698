"""Scaled random-k: random-k over 1 + omega, an equality of the contraction."""

import itertools

import numpy as np
import pytest

from operators import Key, RandomK, ScaledRandomK
from operators.random import words_from

from ..oracles import refuses_payloads


@pytest.mark.parametrize("operator", ScaledRandomK.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key):
    twin = RandomK(operator.fraction, operator.k)
    for x in vectors:
        message = operator.encode(x, key=key)
        assert message.payload.tolist() == twin.encode(x, key=key).payload.tolist()
        keep = twin(np.ones(d), key=key) > 0
        want = [float(v) if k else 0.0 for v, k in zip(x, keep, strict=True)]
        assert operator.decode(message, d=d, key=key).tolist() == want
        assert message.bits == operator.bits(d).exact


@pytest.mark.parametrize(("d", "k"), [(5, 1), (5, 2), (6, 3)])
def test_mean_error_is_alpha_for_every_x(d, k):
    x, errors = np.arange(1.0, d + 1), []
    for path in itertools.product(*(range(j + 1) for j in range(d - k, d))):
        high = [-(-(t << 32) // (d - k + i + 1)) for i, t in enumerate(path)]
        words = np.array([w for pair in zip([2**31] * k, high, strict=True) for w in pair], np.uint32)
        with words_from(lambda key, n, start, w=words: w):
            errors.append(((ScaledRandomK(k=k)(x, key=Key(0)) - x) ** 2).sum() / (x @ x))
    assert np.mean(errors) == pytest.approx(ScaledRandomK(k=k).claim(d).alpha)


def test_damage_is_refused(message_of, key):
    refuses_payloads(ScaledRandomK(k=1), 3, message_of("0" * 31), key=key)
