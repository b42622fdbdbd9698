"""The miss of a random code against quadratures of its own, and the rule for functions without a ball."""

import ast
import importlib
import inspect
import math
import pkgutil
import textwrap

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betainc, gammainc, gammaincc
from scipy.stats import chi2, ncx2

import bounds.special
from bounds.limits import gaussian_block_miss
from bounds.special.function import SpecialFunction

POINTS = [  # bits, d, nmse, radius
    *((0, 2, 0.01, 0.125), (0, 3, 0.001, 0.0622), (20, 2, 1e-5, 1.0), (40, 4, 1e-5, 1.0), (100, 10, 2e-6, 1.0)),
    *((110, 10, 1e-6, 1.0), (200, 20, 2e-6, 1.0), (125, 100, 0.25, 0.87), (5, 2, 0.9, 0.3), (3, 2, 0.5, 1.9)),
    *((0.5, 5, 1e-9, 0.9), (60, 12, 1e-3, 1.1), (1.5, 40, 0.9, 0.2), (12, 3, 0.02, 0.02), (900, 300, 0.02, 0.99)),
]


def by_cells(bits, d, nmse, radius, cells=40_000):
    """Return a lower and an upper sum of E e^(-M p): the mass of each cell times the integrand at its ends."""
    reach = math.sqrt(nmse)
    low, high = max(0.0, radius - reach), radius + reach
    peak = math.sqrt(abs(radius**2 - nmse))  # of p, or where p begins to fall
    spread = 40 / math.sqrt(2 * d)
    even = np.linspace(low, high, cells)
    s = np.unique(np.concatenate([even, [min(max(peak, low), high)], np.linspace(1 - spread, 1 + spread, cells)]))
    s = s[(s >= low) & (s <= high)]
    share = np.clip((reach - (s - radius)) * (reach + s - radius) * ((s + radius) ** 2 - nmse), 0, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = np.where(s * s + radius**2 <= nmse, 0.5, betainc((d - 1) / 2, 0.5, share / (2 * radius * s) ** 2) / 2)
    missed = np.exp(-float(math.floor(2**bits)) * np.nan_to_num(p, nan=0.5))
    z = d * s * s / 2
    below, above = np.diff(gammainc(d / 2, z)), -np.diff(gammaincc(d / 2, z))
    mass = np.where(z[1:] < d / 2, below, above)
    outside = gammainc(d / 2, z[0]) + gammaincc(d / 2, z[-1])
    ends = np.stack([missed[:-1], missed[1:]])
    return outside + mass @ ends.min(0), outside + mass @ ends.max(0)


def by_mpmath(bits, d, nmse, radius):
    """Return E e^(-M p) with 20 digits."""
    with mpmath.workdps(20):
        bits, d, nmse, radius = map(mpmath.mpf, (bits, d, nmse, radius))
        reach, codewords = mpmath.sqrt(nmse), mpmath.floor(2**bits)
        low, high = max(mpmath.mpf(0), radius - reach), radius + reach

        def missed(s):
            cosine = (s**2 + radius**2 - nmse) / (2 * radius * s)
            p = (
                mpmath.mpf(1) / 2
                if cosine <= 0
                else mpmath.betainc((d - 1) / 2, 0.5, 0, max(1 - cosine**2, 0), True) / 2
            )
            density = (d / 2) ** (d / 2) / mpmath.gamma(d / 2) * s ** (d - 2) * mpmath.exp(-d * s**2 / 2) * 2 * s
            return density * mpmath.exp(-codewords * p)

        flat = mpmath.sqrt(nmse - radius**2) if radius**2 < nmse else low
        ends = [low + (high - low) * k / 8 for k in range(9)] + ([flat] if low < flat < high else [])
        inside = mpmath.quad(missed, sorted(ends))
        below, above = (0, d / 2 * low**2), (d / 2 * high**2, mpmath.inf)
        outside = sum(mpmath.gammainc(d / 2, *ends, True) for ends in (below, above))
        return mpmath.re(inside + outside)


@pytest.mark.parametrize("point", POINTS, ids=str)
def test_the_miss_lies_between_two_sums(point):
    lower, upper = by_cells(*point)
    found = gaussian_block_miss(**dict(zip(("bits", "d", "nmse", "radius"), point, strict=True)))
    assert lower * (1 - 1e-12) <= found <= min(1.0, upper) * (1 + 1e-9)


@given(
    bits=st.floats(0, 300),
    d=st.integers(2, 400),
    log_nmse=st.floats(-18, -0.01),
    radius=st.floats(0.01, 2),
)
def test_the_miss_lies_between_two_sums_anywhere(bits, d, log_nmse, radius):
    point = (bits, d, math.exp(log_nmse), radius)
    lower, upper = by_cells(*point, cells=4000)
    found = gaussian_block_miss(bits=point[0], d=d, nmse=point[2], radius=radius)
    assert lower * (1 - 1e-11) <= found <= min(1.0, upper) * (1 + 1e-9)


@pytest.mark.parametrize("point", [(0, 2, 0.01, 0.125), (3, 2, 0.5, 1.9), (5, 3, 0.9, 0.3)], ids=str)
def test_the_miss_is_an_upper_bound_to_nine_digits(point):
    truth = float(by_mpmath(*point))
    found = gaussian_block_miss(**dict(zip(("bits", "d", "nmse", "radius"), point, strict=True)))
    assert truth <= found <= truth * (1 + 1e-9)


@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("nmse", [1e-6, 1e-3, 0.5])
def test_one_codeword_misses_at_most_so_often(d, nmse):
    for radius in (0.01, math.sqrt(nmse), 0.5, 1.2):
        exact = float(1 - ncx2.cdf(d * nmse, d, d * radius**2))
        assert gaussian_block_miss(bits=0, d=d, nmse=nmse, radius=radius) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("d", [10**6, 10**9, 10**12])
def test_long_blocks_miss_half_the_vectors_at_their_capacity(d):
    """In the limit a vector is missed where |x|^2 exceeds what the bits allow, by the central limit theorem."""
    low, middle, high = (
        float(gaussian_block_miss(bits=d * (1 + k / math.sqrt(d)), d=d, nmse=0.25, radius=math.sqrt(0.75)))
        for k in (-4, 0, 4)
    )
    assert low > 0.999
    assert middle == pytest.approx(0.5, abs=0.02)
    assert high < 1e-3
    assert chi2.sf(d, d) == pytest.approx(0.5, abs=1e-3)


TESTED = {"RandomCodeMiss": test_the_miss_is_an_upper_bound_to_nine_digits}


def test_every_function_without_a_ball_has_a_test_against_a_quadrature():
    for module in pkgutil.iter_modules(bounds.special.__path__, "bounds.special."):
        importlib.import_module(module.name)
    without = set()
    for function in SpecialFunction.__subclasses__():
        if function.__module__.startswith("bounds."):
            code = ast.parse(textwrap.dedent(inspect.getsource(function.ball)))
            if not any(isinstance(node, ast.Return) for node in ast.walk(code)):
                without.add(function.__name__)
    assert without == set(TESTED)
