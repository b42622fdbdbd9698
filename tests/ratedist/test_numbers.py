"""What is read is exact, and what is refused is named with value, rule and remedy."""

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratedist.numbers import MOST_ELEMENTS, broadcast_shape, number, read, real, whole


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_float_counts_as_the_decimal_it_prints(value):
    assert Fraction(read("omega", value)) == Fraction(repr(value))
    assert real("omega", value) == value


@pytest.mark.parametrize(
    "value", [1000, 1000.0, "1e3", "1000", "1000.00", Decimal("1e3"), Fraction(1000), np.int64(1000)]
)
def test_one_thousand_in_every_notation(value):
    assert whole("d", value) == 1000


def test_a_zero_dimensional_array_is_a_scalar():
    assert whole("d", np.array(1000.0)) == 1000


@pytest.mark.parametrize(
    "value",
    [
        *(
            -1,
            0,
            0.5,
            float("nan"),
            float("inf"),
            "1e400",
            "1e-400",
            "1__000",
            "0x10",
            "abc",
            "",
            "1/0",
            "1/00",
            "²",
            "1e99999999",
        ),
        *(True, None, 1j, b"1", "9" * 65, 10**301, {}),
    ],
)
def test_what_is_no_dimension_is_refused_with_value_rule_and_remedy(value):
    with pytest.raises(
        ValueError, match=r"d must satisfy 1 <= d, an integer; got d = .*: give the number of coordinates"
    ):
        whole("d", value)


def test_an_array_names_the_first_offending_index():
    with pytest.raises(ValueError, match=r"got omega = -2.0 at index \(1, 0\)"):
        read("omega", [[1.0, 2.0], [-2.0, -3.0]])


@pytest.mark.parametrize(
    "huge", [range(10**9), np.broadcast_to(1.0, 10**9), np.broadcast_to(1.0, (1, MOST_ELEMENTS + 1))]
)
def test_a_huge_array_is_refused_before_it_is_copied(huge):
    with pytest.raises(ValueError, match="split it into several calls"):
        read("d", huge)


def test_shapes_must_fit_and_the_result_must_stay_small():
    assert broadcast_shape({"a": np.ones((3, 1)), "b": np.ones(4), "c": "1"}) == (3, 4)
    with pytest.raises(ValueError, match="reshape"):
        broadcast_shape({"a": np.ones(3), "b": np.ones(4)})
    with pytest.raises(ValueError, match="at most 1000000 results"):
        broadcast_shape({"a": np.ones((2000, 1)), "b": np.ones(2000)})


def test_arrays_of_what_no_float_holds_are_refused():
    with pytest.raises(ValueError, match="d must satisfy"):
        read("d", [10**400])
    with pytest.raises(ValueError, match="d must satisfy"):
        read("d", ["many"])


@pytest.mark.parametrize(
    ("typed", "exact"),
    [
        ("1_000_000", "1000000"),
        ("1.3B", "1.3e9"),
        ("25.6M", "25.6e6"),
        ("7k", "7e3"),
        ("7K", "7e3"),
        ("2T", "2e12"),
        ("3G", "3e9"),
        ("1e9", "1e9"),
    ],
)
def test_counts_may_be_written_as_people_write_them(typed, exact):
    assert Fraction(number("d", typed)) == Fraction(exact)
    assert read("d", [typed, 5]).tolist() == [float(exact), 5.0]


@pytest.mark.parametrize("typed", ["1.3X", "B", "1__0", "_1", "1_", "1e3M", "1/3B", "1.3 B", "1.3BB"])
def test_what_nobody_writes_is_refused(typed):
    with pytest.raises(ValueError, match="d must satisfy"):
        number("d", typed)


def test_a_refusal_survives_a_process_pool():
    with pytest.raises(ValueError, match="d must satisfy") as refused:
        read("d", -1)
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.argument) == (str(refused.value), "d")
