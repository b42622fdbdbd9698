"""The catalogue and the conformance check."""

import math

import pytest

import ratedist as rd
from operators import all_operators


def test_the_catalogue_holds_every_operator():
    found = rd.operators(d=1000)
    assert [entry.operator.partition(":")[0] for entry in found.entries] == list(all_operators())
    by_name = {entry.operator.partition(":")[0]: entry for entry in found.entries}
    assert by_name["identity"].bits == 32_000
    assert by_name["identity"].limit == math.inf
    assert by_name["signsgd"].limit is None
    assert by_name["randomk"].limit == pytest.approx(rd.bits_lower_bound(d=1000, omega=9))
    assert "tcdq" in repr(found)
    assert "<table>" in found._repr_html_()


@pytest.mark.parametrize(
    ("d", "shown", "claimed"),
    [
        (1e3, " 0.999 ", "0.999"),
        (1e6, " 1 - 1e-06 ", "0.999999"),
        (3e9, " 1 - 3.333e-10 ", "1 - 3.333e-10"),
    ],
)
def test_a_contraction_is_shown_below_one(d, shown, claimed):
    found = rd.operators(d=d)
    (line,) = (line for line in found.answer().text().splitlines() if "scaled_sign " in line)
    assert shown in line
    (entry,) = (entry for entry in found.entries if entry.operator == "scaled_sign")
    assert entry.claim == f"surely contractive, alpha <= {claimed}"


def test_an_operator_that_cannot_have_so_many_coordinates_says_so():
    found = {entry.operator.partition(":")[0]: entry for entry in rd.operators(d=1e12).entries}
    assert list(found) == list(all_operators())
    assert found["tcdq"].claim.startswith("none: d must satisfy d <= 2^32; got d = 1000000000000")
    assert (found["tcdq"].kind, found["tcdq"].bits, found["tcdq"].limit) == ("none", None, None)
    assert found["qsgd"].kind == "unbiased"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: rd.operators(d=0), "d must satisfy"),
        (lambda: rd.operators(d=1e13), "d <= 1000000000000"),
        (lambda: rd.check("warp"), "unknown operator"),
        (lambda: rd.check("qsgd:4", budget="endless"), "budget must be one of quick, standard, deep"),
        (lambda: rd.check(3), "expected an operator"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(ValueError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_check_finds_a_liar():
    from bounds import Unbiased

    assert not rd.check(lambda x: x * 0.5, claim=Unbiased(0.1), budget="quick", seed=0).ok
