"""No statement contradicts another: generated pairs whose settings meet, at ends of every domain and random points."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bounds import Property, all_bounds, theorems
from bounds.claims import Contractive, StrictlyContractive, Unbiased
from bounds.limits import gaussian_block_converse, gaussian_block_miss
from bounds.setting import implied
from operators import all_operators, specification
from tests.pooled import pooled

from .consistency import ABSOLUTE_CONSTANT, OBVIOUS, pairs, violations

PAIRS = pairs()
POINTS = 200


@pooled(("low", "high"), PAIRS, ids=lambda bound: bound.name)
def test_no_lower_bound_exceeds_an_upper_one(low, high):
    compared, told = violations(low, high, seed=20, n=POINTS)
    assert not told, told[0]
    disjoint = {"no_step"}  # lower bounds on steps say nothing where no step is needed
    assert compared > POINTS / 8 or high.name in disjoint


def test_many_pairs_are_compared_at_many_points():
    assert len(PAIRS) >= 70
    assert len(PAIRS) * POINTS > 14_000
    assert {high.name for _, high in PAIRS} >= {bound.name for bound in OBVIOUS}


def test_a_false_statement_is_found():
    """The comparison fails where it should: the published cases at tau = 1 or m = 1, and halved or raised values."""
    from dataclasses import replace

    glasgow, upper = theorems.glasgow, theorems.pasgd_gap
    for kept in (glasgow.assuming[:1], glasgow.assuming[1:]):
        assert violations(replace(glasgow, assuming=kept), upper, seed=1, n=5_000)[1]
    bounds = all_bounds()
    low, high = bounds["sphere_bits"], bounds["spherical_compression_bits"]
    assert violations(low, replace(high, value=high.value / 4), seed=1, n=200)[1]
    assert violations(replace(low, value=2 * low.value), high, seed=1, n=200)[1]
    low = bounds["woodworth_lower"]
    assert violations(replace(low, value=100 * ABSOLUTE_CONSTANT * low.value), upper, seed=1, n=200)[1]


# -- a code of floor(2^bits) words -----------------------------------------------------------------------------------
def test_a_fraction_of_a_codeword_does_not_exist():
    """One word (0.99 bits) covers at most the central ball: for d = 2 it misses with probability e^-nmse or more."""
    assert gaussian_block_miss(bits=0.99, d=2, nmse=0.01, radius=0.11) >= math.exp(-0.01)


@settings(max_examples=40, deadline=None)
@given(
    bits=st.floats(0.1, 40),
    d=st.integers(2, 30),
    nmse=st.floats(0.01, 0.9),
    radius=st.floats(0.05, 1.5),
)
def test_a_block_code_that_exists_has_as_many_words_as_it_must(bits, d, nmse, radius):
    miss = float(gaussian_block_miss(bits=bits, d=d, nmse=nmse, radius=radius))
    if 1e-9 < miss < 1 - 1e-9:
        assert gaussian_block_converse(d=d, miss=miss, nmse=nmse) <= math.log2(math.floor(2**bits)) + 1e-6


# -- the package's own operators are constructions ---------------------------------------------------------------------
@pytest.mark.parametrize("d", [1, 2, 3, 10, 100, 10_000])
def test_no_operator_beats_a_limit_that_it_is_covered_by(d):
    compared = 0
    for cls in all_operators().values():
        for operator in cls.examples():
            try:
                claim, size = operator.claim(d), operator.bits(d)
            except ValueError:
                continue
            compared += _compare(specification(operator), claim, size, d)
    assert compared > 20


def _compare(name, claim, size, d):
    given = {Unbiased: {Property.UNBIASED}, Contractive: {Property.CONTRACTIVE}}
    given[StrictlyContractive] = {Property.STRICTLY_CONTRACTIVE}
    if type(claim) not in given:
        return 0
    letter, level = ("omega", claim.omega) if isinstance(claim, Unbiased) else ("alpha", claim.alpha)
    if level == 0:
        return 0
    holds = implied(frozenset(given[type(claim)] | {Property.SELF_DELIMITING}))
    longest = size.exact if size.worst_case is None else size.worst_case
    mean = longest if size.expected_upper is None else size.expected_upper
    compared = 0
    for bound in all_bounds().values():
        names = {symbol.name for symbol in bound.parameters}
        if names != {"d", letter} or bound.side.value != "lower" or not bound.setting.needs <= holds:
            continue
        sent = longest if bound.setting.concludes.name.startswith("LONGEST") else mean
        if sent is None or not bound.holds_at(d=d, **{letter: level}):
            continue
        assert bound(d=d, **{letter: level}) <= sent * (1 + 1e-9), (name, bound.name)
        compared += 1
    return compared


def test_limits_of_tiny_errors_are_compared_too():
    """The sampled points reach both ends: omega and alpha near 0, d = 1, tau = 1, m = 1."""
    from .consistency import points

    at = points(*PAIRS[0], np.random.default_rng(20), POINTS)
    assert at["alpha"].min() < 1e-6
    assert at["alpha"].max() > 1 - 1e-6
    assert at["omega"].min() < 1e-4
    for name in ("d", "tau", "m", "rounds"):
        assert (at[name] == 1).any()
