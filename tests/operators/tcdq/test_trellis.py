"""The codes: linear, with merging pairs of equal parity, and of the declared mean squared error."""

from itertools import product

import numpy as np
import pytest

from operators import Key
from operators.tcdq.model import plan_of
from operators.tcdq.trellis import CODES, UNIT, Grid, code, lanes, seeds
from operators.tcdq.viterbi import symbols

from . import oracle

TRELLISES = [CODES[s] for s in (4, 8, 64, 128, 256)]
OCTAL = {4: (0o5, 0o2), 8: (0o13, 0o4), 64: (0o103, 0o24), 128: (0o367, 0o142), 256: (0o467, 0o242)}


def codewords(trellis, d):
    """All label sequences of d steps as (z0, z1) rows: shape (2^d, d) each."""
    z0, z1 = [], []
    for free in product((0, 1), repeat=d):
        state, parity = 0, []
        for z in free:
            parity.append(state & 1)
            state = trellis.following(state, z)
        z0.append(parity)
        z1.append(free)
    return np.array(z0), np.array(z1)


@pytest.mark.parametrize("trellis", TRELLISES, ids=lambda t: f"S={t.states}")
def test_label_sequences_satisfy_the_documented_parity_check(trellis):
    h0, h1 = OCTAL[trellis.states]
    rng = np.random.default_rng(trellis.states)
    z1, z0, state = rng.integers(0, 2, 200), [], 0
    for z in z1:
        z0.append(state & 1)
        state = trellis.following(state, z)
    span = h0.bit_length()
    for t in range(span, 200):
        check = sum((h0 >> i & 1) * z0[t - i] + (h1 >> i & 1) * z1[t - i] for i in range(span))
        assert check % 2 == 0


@pytest.mark.parametrize("trellis", TRELLISES, ids=lambda t: f"S={t.states}")
def test_each_state_is_entered_from_two_states_of_equal_parity(trellis):
    entering = trellis.before.reshape(-1, 2)
    assert sorted((trellis.before >> 2).tolist()) == sorted([*range(trellis.states)] * 2)
    assert ((entering[:, 0] >> 2) & 1 == (entering[:, 1] >> 2) & 1).all()
    for after, pair in enumerate(entering):
        for branch in pair:
            assert trellis.after[2 * (branch >> 2) + (branch >> 1 & 1)] == after


@pytest.mark.parametrize("trellis", TRELLISES, ids=lambda t: f"S={t.states}")
def test_label_sequences_form_a_linear_code(trellis):
    z0, z1 = codewords(trellis, 6)
    known = {(*a, *b) for a, b in zip(z0.tolist(), z1.tolist(), strict=True)}
    for i, j in product(range(0, 64, 5), repeat=2):
        assert (*(z0[i] ^ z0[j]).tolist(), *(z1[i] ^ z1[j]).tolist()) in known


@pytest.mark.every(3)
@pytest.mark.parametrize("states", [4, 8, 64, 128, 256])
@pytest.mark.parametrize("d", [64, 200, 4096])
def test_mean_error_is_that_of_a_uniform_point(states, d):
    """n = 400,000 coordinates, level 1e-7: 5.3 standard errors of a squared error below 4.

    Errors of one trellis are uncorrelated, their squares are not: the variance is taken over whole vectors.
    """
    trellis, n = code(states, d), 400_000 // d
    zero, mean = np.zeros(d, np.float32), np.empty(n)
    for draw in range(n):
        grid = Grid(np.float32(1), np.float32(1), *seeds(Key(7, step=draw)))
        packed = symbols(zero, grid, trellis, lanes(d))
        k, phase = packed >> 6, packed & 63
        mean[draw] = np.mean((2 * (k - (phase + 0.5) / 64)) ** 2)
    quantisation_of_phase = (2 / 64) ** 2 / 12  # the phase is known to 1/64 of the spacing; Sheppard's correction
    expected = trellis.mean_error(d) + quantisation_of_phase
    assert mean.mean() == pytest.approx(expected, abs=5.3 * mean.std() / np.sqrt(n) + 1e-4)


def test_error_of_one_state_is_that_of_rounding():
    assert CODES[1].mean_error(10) == pytest.approx(1 / 12, rel=1e-15)
    plan = plan_of(50_000, 0.5, 1)
    k, w = oracle.quantise(np.zeros(plan.d, np.float32), 1.0, plan, seeds(Key(3)))
    assert np.mean((k - w / UNIT) ** 2) == pytest.approx(1 / 12, rel=0.02)
    assert np.abs(k - w / UNIT).max() <= 0.5


def test_short_vectors_use_the_integers():
    assert code(8, 63).states == 1
    assert code(8, 64).states == 8
