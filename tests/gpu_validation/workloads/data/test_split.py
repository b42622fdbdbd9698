"""Splits: every sample once, nobody empty, the proportions of the law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from gpu_validation.workloads.data import Dirichlet, Iid

LABELS = np.arange(1000) % 10


@given(
    n=st.integers(1, 300),
    workers=st.integers(1, 20),
    seed=st.integers(0, 2**64 - 1),
    alpha=st.one_of(st.none(), st.floats(1e-6, 1e6)),
    classes=st.integers(1, 12),
)
def test_every_sample_is_dealt_out_exactly_once_and_nobody_is_empty(n, workers, seed, alpha, classes):
    split = Iid(workers, seed) if alpha is None else Dirichlet(workers, seed, alpha)
    labels = np.arange(n) % classes
    if n < workers:
        with pytest.raises(ValueError, match=f"got {n} samples for {workers} workers"):
            split.parts(labels)
        return
    parts = split.parts(labels)

    assert len(parts) == workers
    assert min(len(part) for part in parts) >= 1
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    for part, again in zip(parts, split.parts(labels), strict=True):
        np.testing.assert_array_equal(part, again)
        assert (np.diff(part) > 0).all()


def test_equal_parts_differ_by_at_most_one_and_the_seed_matters():
    sizes = [len(part) for part in Iid(7).parts(LABELS)]

    assert max(sizes) - min(sizes) == 1
    assert (Iid(7).parts(LABELS)[0] != Iid(7, seed=1).parts(LABELS)[0]).any()


def test_small_alpha_gives_few_classes_and_large_alpha_the_same_to_all():
    def shares(alpha):
        parts = Dirichlet(10, alpha=alpha).parts(LABELS)
        return np.array([np.bincount(LABELS[part], minlength=10) for part in parts])

    assert (shares(1e-3) > 0).sum() < 30  # ten classes, each with one or two workers, and who had to be fed
    assert (np.abs(shares(1e6) - 10) <= 1).all()


def test_shares_of_a_class_follow_the_dirichlet_marginal():
    alpha, workers, n = 0.5, 4, 10_000
    labels = np.zeros(n, int)
    first = [len(Dirichlet(workers, seed, alpha).parts(labels)[0]) / n for seed in range(400)]

    # Kolmogorov-Smirnov against Beta(alpha, 3 alpha), n = 400, rounding of 1e-4 allowed for
    assert stats.kstest(first, stats.beta(alpha, 3 * alpha).cdf).pvalue > 1e-4


def test_labels_are_needed_for_label_skew():
    with pytest.raises(ValueError, match="needs labels; got targets of type float64"):
        Dirichlet(2).parts(np.zeros(5))
    assert len(Iid(2).parts(np.zeros(5))) == 2
    with pytest.raises(ValueError, match=r"one label a sample; got targets of shape \(6, 2\): use an Iid split"):
        Dirichlet(2).parts(np.zeros((6, 2), np.int64))


@pytest.mark.parametrize(
    ("make", "message"),
    [(lambda: Iid(0), "workers must be >= 1; got 0"), (lambda: Dirichlet(2, alpha=0.0), "alpha must be > 0; got 0.0")],
)
def test_values_outside_the_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
