"""The digest of the catalogue is reproducible, and notices a change of each thing that a bound states."""

from dataclasses import replace

import pytest
import sympy as sp

from bounds import Conclusion, Side, Status, all_bounds

from .digest import digest

BOUND = all_bounds()["pasgd_convex_sharp"]


def test_the_same_bound_has_the_same_digest():
    assert digest(BOUND) == digest(replace(BOUND, _cache={}))


@pytest.mark.parametrize(
    "change",
    [
        {"value": BOUND.value * sp.Rational(1001, 1000)},
        {"side": Side.LOWER},
        {"status": Status.RECALLED},
        {"setting": replace(BOUND.setting, needs=frozenset())},
        {"setting": replace(BOUND.setting, concludes=Conclusion.GAP_OF_OUTPUT)},
        {"examples": BOUND.examples[:1]},
        {"assuming": ()},
        {"note": "another"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_change_of_one_field_changes_the_digest(change):
    assert digest(replace(BOUND, **change)) != digest(BOUND)
