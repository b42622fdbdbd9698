"""Rounding to small floating-point formats: torch's casts, exact probabilities, and constants that nothing exceeds."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators.coding.minifloat import NEAREST, _round, cells, nearest_alpha, round_floats, stochastic_omega, values

FORMATS = {  # torch type: significant bits, exponent of the smallest normal number, width, largest scaled magnitude
    torch.float16: (11, -14, 16, 65504.0),
    torch.bfloat16: (8, -126, 16, 2.0**127),
    torch.float8_e4m3fn: (4, -6, 8, 448.0),
    torch.float8_e5m2: (3, -14, 8, 57344.0),
}


def codes_of(x, shift, p, lowest, sign, words=NEAREST):
    out = np.empty(x.size, np.uint32)
    round_floats(x.view(np.uint32), shift, p, lowest, sign, words, out)
    return out


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_nearest_codes_are_the_bit_patterns_of_torch_casts(dtype):
    p, lowest, width, most = FORMATS[dtype]
    rng = np.random.default_rng(0)
    grid = values(p, lowest, 1 << (width - 1))
    grid = grid[grid <= most]
    middles = (grid[1:] + grid[:-1]) / 2
    x = np.concatenate([grid, middles, np.exp2(rng.uniform(lowest - 30, lowest + 30, 5000))])
    x = np.concatenate([x, -x]).astype(np.float32)
    x = x[np.abs(x) <= most]
    integer = torch.int16 if width == 16 else torch.uint8
    expected = torch.from_numpy(x).to(dtype).view(integer).numpy().astype(np.int64) & ((1 << width) - 1)
    expected[expected == 1 << (width - 1)] = 0  # negative zero
    assert codes_of(x, 0, p, lowest, 1 << (width - 1)).tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_values_are_those_of_torch(dtype):
    p, lowest, width, most = FORMATS[dtype]
    integer = torch.int16 if width == 16 else torch.uint8
    theirs = torch.arange(1 << (width - 1)).to(integer).view(dtype).double().numpy()
    finite = np.isfinite(theirs) & (theirs <= most)
    assert (values(p, lowest, 1 << (width - 1))[finite] == theirs[finite]).all()


@pytest.mark.parametrize(
    ("p", "lowest", "width"), [(1, -149, 8), (4, -6, 8), (3, -14, 8), (11, -14, 15), (8, -126, 15)]
)
def test_stochastic_rounding_goes_up_with_the_exact_probability(p, lowest, width):
    """At the last word that goes up, and at the next one."""
    rng = np.random.default_rng(1)
    x = np.exp2(rng.uniform(max(lowest, -20) - 5, 15, 300)).astype(np.float32)
    grid = values(p, lowest, 1 << width)
    for v in x:
        below = int(np.searchsorted(grid, v, "right")) - 1
        share = (Fraction(float(v)) - Fraction(grid[below])) / (Fraction(grid[below + 1]) - Fraction(grid[below]))
        first_down = share * 2**32  # words below it go up
        assert first_down.denominator == 1
        row = np.array([v], np.float32)
        if share:
            assert codes_of(row, 0, p, lowest, 0, np.array([int(first_down) - 1], np.uint32)) == below + 1
        assert codes_of(row, 0, p, lowest, 0, np.array([int(first_down)], np.uint32)) == below


def test_far_below_the_format_the_probability_is_rounded_down():
    x = np.array([2.0**-60 * 1.9999], np.float32)
    for word, code in ((0, 0), (2**32 - 1, 0)):
        assert codes_of(x, 0, 4, -6, 0, np.array([word], np.uint32)) == code
    x = np.array([2.0**-30], np.float32)  # in units of the spacing 2^-9: 2^-21
    assert codes_of(x, 0, 4, -6, 0, np.array([2**11 - 1], np.uint32)) == 1
    assert codes_of(x, 0, 4, -6, 0, np.array([2**11], np.uint32)) == 0


def test_shift_multiplies_by_a_power_of_two_also_subnormal_numbers():
    x = np.array([2.0**-149, 3 * 2.0**-149, -5 * 2.0**-130], np.float32)
    assert (
        codes_of(x, 140, 8, -126, 0).tolist()
        == codes_of((x.astype(float) * 2.0**140).astype(np.float32), 0, 8, -126, 0).tolist()
    )


@pytest.mark.every(4)
@pytest.mark.parametrize("p", [1, 2, 4, 8])
@pytest.mark.parametrize("depth", [2, 6, 20])
@pytest.mark.parametrize("d", [1, 2, 9, 10**4, 10**9])
def test_constants_are_reached_and_never_exceeded_on_a_fine_grid(p, depth, d):
    """The supremum over a first coordinate in [1, 2] and one value y for all others, both on a grid."""
    h = 2.0 ** (1 - p)
    u = h * 2.0**-depth
    first = np.unique(np.r_[np.linspace(1, 1 + h, 2001), 1 + h / 2])
    y = np.unique(np.r_[u * np.geomspace(1e-5, 2, 2001), np.linspace(2.0**-depth, 2.0**-depth * (1 + h), 500), u / 2])
    for error, constant in (
        (lambda rest, gap: rest * (gap - rest), stochastic_omega(p, depth, d)),
        (lambda rest, gap: np.minimum(rest, gap - rest) ** 2, nearest_alpha(p, depth, d)),
    ):
        own, others = error(*cells(first, p, -depth)), (d - 1) * error(*cells(y, p, -depth))
        ratio = (own[:, None] + others) / (first[:, None] ** 2 + (d - 1) * y**2)
        assert constant * (1 - 1e-3) <= ratio.max() <= constant * (1 + 1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    shift=st.integers(-150, 100),
    form=st.sampled_from([(1, -149), (3, -14), (4, -6), (8, -126), (11, -14)]),
    stochastic=st.booleans(),
    low=st.integers(0, 250),
)
def test_vectors_are_rounded_as_single_numbers_are(seed, shift, form, stochastic, low):
    """Normal numbers go another way than others of their tile: both ways, and both at once."""
    rng, (p, lowest), n = np.random.default_rng(seed), form, 5000
    patterns = (rng.integers(low, 255, n) << 23 | rng.integers(0, 1 << 23, n) | rng.integers(0, 2, n) << 31).astype(
        "u4"
    )
    patterns[rng.integers(0, n, 3)] &= np.uint32(0x80000000 | rng.integers(0, 1 << 24))
    words = rng.integers(0, 1 << 32, n, dtype=np.uint32) if stochastic else NEAREST
    drawn = words if stochastic else [-1] * n
    singly = [_round(v, shift, p, lowest, 1 << 20, w) for v, w in zip(patterns, drawn, strict=True)]
    assert codes_of(patterns.view(np.float32), shift, p, lowest, 1 << 20, words).tolist() == singly
