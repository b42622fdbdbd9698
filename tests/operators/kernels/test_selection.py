"""Selection of the largest: equal positions everywhere, against sorting in plain Python, whatever the sample says."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from operators.kernels.selection.cpu import SAMPLE, SMALL
from tests.pooled import pooled

from .equality import FEW, OTHERS, assert_equal, run, selection, vectors


def oracle(x, k):
    return sorted(sorted(range(len(x)), key=lambda i: (-abs(x[i]), i))[:k])


@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(vectors(), st.floats(0, 1))
def test_back_ends_agree(other, x, share):
    k = max(1, round(share * x.numel()))
    chosen = run("cpu", selection.largest, x, k)
    assert chosen.tolist() == oracle(x.tolist(), k)
    assert_equal(chosen, run(other, selection.largest, x, k))


@pytest.mark.parametrize("d", [SMALL, 4 * SAMPLE + 1, 100_000])
@pytest.mark.parametrize("k", [1, 2, 1000, 5000])
@pooled("kind", ["gauss", "ties", "sparse", "equal", "sorted", "late", "hidden"])
def test_long_vectors_of_every_kind_equal_sorting(d, k, kind):
    """ "late" and "hidden" have their large entries where no sample or every sample looks."""
    rng, i = np.random.default_rng(d + k), np.arange(d)
    step = max(1, d // SAMPLE)
    x = {
        "gauss": rng.standard_normal(d),
        "ties": rng.integers(-3, 4, d),
        "sparse": rng.standard_normal(d) * (rng.random(d) < 0.02),
        "equal": np.ones(d),
        "sorted": -i[::-1] / d,
        "late": np.where(i % step == 0, 0, 1 + i % 7),
        "hidden": np.where(i % step == 0, 1 + i % 7, rng.random(d)),
    }[kind].astype(np.float32)
    want = np.sort(np.argsort(-np.abs(x), kind="stable")[:k])
    assert selection.largest(torch.from_numpy(x), k).tolist() == want.tolist()


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("k", [1, 500, 9999, 10000])
def test_several_blocks_with_ties_across_them(other, k):
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 4, 10000).astype(np.float32))
    assert_equal(run("cpu", selection.largest, x, k), run(other, selection.largest, x, k))
