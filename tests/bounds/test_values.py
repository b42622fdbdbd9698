"""Formulas and conditions of the catalogue are those that were checked: no digit of 11 changes unnoticed."""

import json
import math
from dataclasses import replace

import pytest
import sympy as sp

from bounds import all_bounds
from tests.pooled import pooled

from .values import RECORD, described

RECORDED = json.loads(RECORD.read_text())


def differing(bound, recorded):
    """Values and sides of conditions that are not those recorded, by point and place."""
    rows = zip(described(bound), recorded, strict=True)
    pairs = [(found, then) for row in rows for found, then in zip(*row, strict=True)]
    return [(found, then) for found, then in pairs if found != then and not close(found, then)]


def close(found, then):
    """Whether two values are equal but for rounding; words are equal or not."""
    return "NotCertifiable" not in (found, then) and math.isclose(float(found), float(then), rel_tol=1e-11)


@pooled("bound", all_bounds().values(), ids=all_bounds())
def test_values_and_conditions_are_those_recorded(bound):
    assert bound.name in RECORDED, "it is not in the record: run python -m tests.bounds.values"
    assert differing(bound, RECORDED[bound.name]) == []


def test_no_bound_is_gone():
    assert RECORDED.keys() == all_bounds().keys()


@pytest.mark.parametrize("name", ["block_momentum", "cooperative", "unbiased_bits"])
def test_a_changed_formula_is_noticed(name):
    bound = all_bounds()[name]
    assert differing(replace(bound, value=bound.value + sp.Rational(1, 10**9), _cache={}), RECORDED[name])


@pytest.mark.parametrize("name", ["cooperative", "pasgd_multiplicative"])
def test_a_changed_condition_is_noticed(name):
    bound = all_bounds()[name]
    assuming = [condition.func(condition.lhs + sp.Rational(1, 10**9), condition.rhs) for condition in bound.assuming]
    assert differing(replace(bound, assuming=tuple(assuming), _cache={}), RECORDED[name])
