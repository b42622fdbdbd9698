"""Results behave like floats, keep their evidence, and survive JSON and pickle."""

import json
import math
import pickle

import numpy as np
import pytest

import ratedist as rd
from bounds import Interval
from ratedist.records import Quantity, Statement, number_text, to_json


def bits():
    return rd.bits_lower_bound(d=1000, omega=1)


def test_a_result_is_a_float():
    found = bits()

    assert isinstance(found, float)
    assert found == 500
    assert found / 2 == 250
    assert type(found + 1) is float
    assert math.sqrt(found) == math.sqrt(500)
    assert f"{found:.1f}" == "500.0"
    assert hash(found) == hash(500.0)
    assert found.lo <= found <= found.hi


def test_a_result_carries_its_evidence():
    found = bits()

    assert (found.unit, found.theorem, found.certified) == ("bit", "unbiased_bits", True)
    assert "0 < omega, finite" in found.assumptions
    assert found.latex().startswith(r"b \ge")
    line = found.explain()
    assert "\n" not in line
    for part in (
        "at least 500 bits",
        "certified in",
        "unbiased_bits",
        "proved",
        "2002.08958",
        "0.5 bits per coordinate",
    ):
        assert part in line
    assert repr(found) == f"Quantity(500 bits, certified in [{found.lo!r}, {found.hi!r}], unbiased_bits)"
    assert "<table>" in found._repr_html_()


def test_html_escapes_what_it_shows():
    statement = Statement("a < b", "1", "tight", "<script>", assumptions=("x & y",))
    text = Quantity(1.0, statement=statement)._repr_html_()
    assert "<script>" not in text
    assert "x &amp; y" in text


def test_a_result_is_frozen():
    with pytest.raises(AttributeError, match="frozen"):
        bits().lo = 0.0


def test_pickle_keeps_everything():
    found = bits()
    again = pickle.loads(pickle.dumps(found))
    assert (again, again.to_dict(), type(again)) == (found, found.to_dict(), Quantity)


def test_an_uncertified_number_has_no_finite_interval():
    found = Quantity(2.0, statement=Statement("q", "s", "estimate", "model"))
    assert (found.lo, found.hi, found.certified) == (-math.inf, math.inf, False)
    assert "not certified" in found.explain()


def test_an_observed_range_is_not_called_certified():
    found = Quantity(2.0, statement=Statement("q", "s", "estimate", "m"), interval=Interval(1.0, 3.0), certified=False)
    assert "from 1 to 3, not certified" in repr(found)


def test_infinities_survive_json():
    record = {"a": math.inf, "b": [-math.inf, math.nan, 1.5], "c": None}
    text = json.dumps(to_json(record), allow_nan=False)
    back = json.loads(text)
    assert float(back["a"]) == math.inf
    assert float(back["b"][0]) == -math.inf
    assert math.isnan(float(back["b"][1]))
    assert back["b"][2] == 1.5


def test_numbers_are_readable():
    assert number_text(5e8) == "500,000,000"
    assert number_text(1 / 3) == "0.333333333"
    assert number_text(55320679.61) == "55,320,679.6"
    assert number_text(1e15) == "1e+15"


def test_arrays_broadcast_and_certify_element_by_element():
    found = rd.bits_lower_bound(d=[[10], [1000]], omega=[1, 3])

    assert found.shape == (2, 2)
    np.testing.assert_allclose(found, [[5, 5 * math.log2(4 / 3)], [500, 500 * math.log2(4 / 3)]], rtol=1e-14)
    assert found.certified
    assert (found.lo <= found.values).all()
    assert (found.values <= found.hi).all()
    assert isinstance(found[1, 0], Quantity)
    assert found[1, 0] == 500
    assert found[1].shape == (2,)
    assert isinstance(found * 2, np.ndarray)
    np.testing.assert_array_equal(np.sqrt(found), np.sqrt(found.values))
    assert json.dumps(to_json(found))
    assert "unbiased_bits" in repr(found)
    assert "4 values from" in found.explain()


def test_an_array_element_equals_the_scalar_call():
    for index, omega in enumerate((0.1, 0.25, 7.0)):
        element = rd.bits_lower_bound(d=77, omega=[0.1, 0.25, 7.0])[index]
        scalar = rd.bits_lower_bound(d=77, omega=omega)
        assert (element, element.lo, element.hi) == (scalar, scalar.lo, scalar.hi)
