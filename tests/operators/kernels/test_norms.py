"""Norms of runs: equal bits everywhere, close to exact sums, in the order that is stated."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators.quantisers.scale import round_up_to_float32

from .equality import FEW, OTHERS, assert_equal, norms, run, vectors

KINDS = [norms.largest, norms.absolute_sum, norms.energy, norms.euclidean]


@pytest.mark.parametrize("kind", KINDS, ids=["largest", "absolute_sum", "energy", "euclidean"])
@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(vectors(), st.sampled_from([1, 7, 64, 100, 4096, 5000]))
def test_back_ends_agree(other, kind, x, step):
    if step < 64 and x.numel() > 65:
        step = x.numel()
    assert_equal(run("cpu", kind, x, step), run(other, kind, x, step))


def stated_order(terms):
    """Scalar oracle."""
    sums = []
    for start in range(0, len(terms), 4096):
        lanes = [0.0] * 64
        for i, term in enumerate(terms[start : start + 4096]):
            lanes[i % 64] += term
        width = 32
        while width:
            lanes = [lanes[i] + lanes[i + width] for i in range(width)]
            width //= 2
        sums.append(lanes[0])
    return sums[0] if len(sums) == 1 else stated_order(sums)


@pytest.mark.parametrize("d", [1, 63, 64, 65, 4095, 4096, 4097, 3 * 4096 + 5])
def test_sums_have_the_stated_order_and_are_close_to_exact_ones(d):
    x = np.random.default_rng(d).standard_cauchy(d).astype(np.float32)
    t, terms = torch.from_numpy(x), [abs(float(v)) for v in x]
    assert norms.absolute_sum(t, d).item() == stated_order(terms) == pytest.approx(math.fsum(terms), rel=1e-15)
    squares = [v * v for v in terms]
    assert norms.energy(t, d).item() == stated_order(squares) == pytest.approx(math.fsum(squares), rel=1e-15)
    assert norms.largest(t, d).item() == max(terms)


def test_runs_are_vectors_of_their_own():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    for kind in KINDS:
        want = torch.cat([kind(part, part.numel()) for part in x.split(300)])
        assert_equal(kind(x, 300), want)


@pytest.mark.parametrize("bad", [math.nan, -math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("backend", ["cpu", *OTHERS])
def test_no_number_and_infinity_show_in_the_largest(backend, bad):
    assert not math.isfinite(run(backend, norms.largest, torch.tensor([1.0, bad, 2.0]), 3).item())


@pytest.mark.parametrize("backend", ["cpu", *OTHERS])
def test_norm_is_the_root_of_the_sum_rounded_up_to_binary32(backend):
    x = torch.from_numpy((np.random.default_rng(0).standard_cauchy(3000) * 1e10).astype(np.float32))
    x[:6] = torch.tensor([3.0, 4.0, 0.0, 0.0, 2.0**-149, 2.0**-149])
    roots = [math.sqrt(v) for v in norms.energy(x, 2).tolist()]
    assert run(backend, norms.euclidean, x, 2).tolist() == [round_up_to_float32(root) for root in roots]


@pytest.mark.parametrize("backend", ["cpu", *OTHERS])
def test_norm_beyond_binary32_is_an_error(backend):
    with pytest.raises(ValueError, match=r"got 4\.667e\+38: rescale x"):
        run(backend, norms.euclidean, torch.full((2,), 3.3e38), 2)
