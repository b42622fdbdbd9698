"""Natural compression against a scalar oracle, its exact probabilities and constants, and damage."""

import math

import numpy as np
import pytest

from operators import Key, NaturalCompression
from operators.random import words_from

from ..oracles import assert_equals_oracle, refuses_payloads
from ..plain_philox import bits32_numpy


def oracle(x, rounding, words):
    """(bits as text, decoded values) in plain Python."""
    text, decoded = "", []
    for v, word in zip(map(float, x), words, strict=True):
        m, e = math.frexp(abs(v))  # m in [1/2, 1)
        up = int(word) / 2**32 < 2 * m - 1 if rounding == "stochastic" else m >= 0.75
        e += up
        text += f"{int(v < 0)}{e + 149:08b}" if v else "0" * 9
        decoded.append(math.copysign(2.0 ** (e - 1), v) if v else 0.0)
    return text, decoded


@pytest.mark.parametrize("operator", NaturalCompression.examples(), ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key):
    words = bits32_numpy(key, d)
    tiny = np.where(np.arange(d) % 2, 2.0**-149, -(2.0**-127)).astype(np.float32)
    assert_equals_oracle(operator, (*vectors, tiny), key, lambda x: oracle(x, operator.rounding, words))


@pytest.mark.parametrize("x", [1.0, -1.25, 3.0, 2.0**-140 * 5, 1 + 2.0**-23])
def test_probability_is_exact_to_the_last_word(x):
    share = 2 * math.frexp(abs(x))[0] - 1
    below = math.copysign(2.0 ** (math.frexp(abs(x))[1] - 1), x)
    for word in (int(share * 2**32) - 1, int(share * 2**32)):
        with words_from(lambda key, n, start, w=word: np.full(n, max(w, 0), np.uint32)):
            y = NaturalCompression()(np.array([x], np.float32), key=Key(0))[0]
        assert y == (2 * below if max(word, 0) < share * 2**32 else below)


@pytest.mark.parametrize(("operator", "m", "constant"), [("stochastic", 4 / 3, 1 / 8), ("nearest", 1.5, 1 / 9)])
def test_constant_is_the_largest_over_all_mantissas_and_reached(operator, m, constant):
    operator = NaturalCompression(operator)
    at = [operator.claim_at(np.array([v])) for v in np.linspace(1, 2, 4097)]
    worst = max(getattr(c, "omega", None) or getattr(c, "alpha", 0) for c in at)
    assert constant * (1 - 1e-6) < worst <= constant * (1 + 1e-12)
    assert operator.witness(3).tolist() == [m] * 3
    claim = operator.claim(5)
    assert (claim.omega if operator.rounding == "stochastic" else claim.alpha) == constant


def test_ties_go_up_in_every_binade(key):
    x = np.array([1.5, -3.0, 0.75, -(2.0**-149) * 3], np.float32)
    assert NaturalCompression("nearest")(x, key=key).tolist() == [2.0, -4.0, 1.0, -(2.0**-147)]


def test_number_too_large_is_an_error(key):
    assert NaturalCompression()(np.array([2.0**105]), key=key)[0] == 2.0**105
    with pytest.raises(ValueError, match=r"2\^105; got 4.097e\+31: rescale"):
        NaturalCompression().encode(np.array([1.01 * 2.0**105]), key=key)


def test_unknown_rounding_is_refused():
    with pytest.raises(ValueError, match="rounding must"):
        NaturalCompression("up")


@pytest.mark.parametrize("text", ["", "0" * 17, "0" * 19, "0" * 9 + "1" + "0" * 8])
def test_payload_that_nobody_sends_is_refused(text, message_of):
    refuses_payloads(NaturalCompression(), 2, message_of(text))
