"""1-bit SGD against a scalar oracle, its exact error, and payloads that nobody sent."""

import math

import numpy as np
import pytest

from operators import OneBitSGD

from ..oracles import assert_equals_oracle, refuses_payloads


def oracle(columns, float_field):
    """(bits as text, decoded columns) in plain Python."""
    heads, signs, values = "", "", []
    for column in columns:
        above = [float(v) for v in column if not v < 0]
        below = [-float(v) for v in column if v < 0]
        plus, minus = (np.float32(math.fsum(c) / len(c) if c else 0.0) for c in (above, below))
        heads += float_field(plus) + float_field(minus)
        signs += "".join("1" if v < 0 else "0" for v in column)
        values.append([float(-minus if v < 0 else plus) for v in column])
    return heads + signs, values


def test_payload_and_values_equal_the_oracle(vectors, d, key, float_field):
    operator, n = OneBitSGD(), math.ceil(math.sqrt(d))

    def expected(x):
        text, values = oracle([x[i : i + n] for i in range(0, d, n)], float_field)
        return text, [v for column in values for v in column]

    assert_equals_oracle(operator, vectors, key, expected)
    assert operator.bits(d).exact == d + 64 * math.ceil(d / n)


def test_columns_of_a_long_vector_are_not_cut_where_its_runs_end(key, bitstring, float_field):
    d = 3 * 65536 + 37
    x = np.random.default_rng(0).standard_normal(d).astype(np.float32)
    n = math.ceil(math.sqrt(d))
    text, values = oracle([x[i : i + n] for i in range(0, d, n)], float_field)
    assert bitstring(OneBitSGD().encode(x, key=key)) == text
    assert OneBitSGD()(x, key=key).tolist() == [v for column in values for v in column]


def test_shape_names_the_columns_of_a_matrix_in_c_order(key, bitstring, float_field):
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    operator = OneBitSGD(shape=(4, 3))
    text, values = oracle(x.T, float_field)
    assert bitstring(operator.encode(x, key=key)) == text
    assert (operator(x, key=key) == np.array(values, np.float32).T).all()
    assert operator.claim(12).alpha == 0.75


def test_error_is_at_most_that_of_the_claim_and_one_hot_columns_reach_it(vectors, d, key):
    operator = OneBitSGD()
    for x in vectors:
        wide = x.astype(float)
        error = ((operator(x, key=key).astype(float) - wide) ** 2).sum()
        assert error <= (operator.claim(d).alpha + 1e-6) * (wide @ wide)
    one_hot = np.eye(64)[3]
    assert ((operator(one_hot, key=key) - one_hot) ** 2).sum() == pytest.approx(operator.claim(64).alpha)


def test_shape_that_does_not_fit_is_an_error(key):
    with pytest.raises(ValueError, match="d = 6 entries"):
        OneBitSGD(shape=(2, 2)).encode(np.ones(6), key=key)


@pytest.mark.parametrize(
    ("plus", "minus", "signs"),
    [
        (1.0, 1.0, "0000"),  # a mean of no entry
        (1.0, 0.0, "0100"),  # negative entries of mean zero
        (1.0, 1.0, "1111"),
        (np.nan, 0.0, "0000"),
        (-1.0, 0.0, "0000"),
        (1.0, np.inf, "0100"),
        (1.0, 1.0, "010"),
        (1.0, 1.0, "01000"),
    ],
)
def test_payload_that_nobody_sends_is_refused(plus, minus, signs, message_of, float_field):
    refuses_payloads(OneBitSGD(shape=(4, 1)), 4, message_of(float_field(plus) + float_field(minus) + signs))
