"""Correlated quantisation: a scalar oracle, exact covariances by enumeration, stratified words, missing workers."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from bounds.claims import NoClaim
from operators import CorrelatedQuantisation, CorruptMessage, Key, KLevel
from operators.aggregate.correlated_quantisation import CorrelatedKLevel
from operators.laws import Budget
from operators.laws import check as judge

from ..plain_philox import bits32_numpy


def oracle_words(key, n, d):
    shared, own = bits32_numpy(Key(key.seed, key.step, None, key.layer, (1,)), n * d), bits32_numpy(key, d)
    words = []
    for c in range(d):
        order = sorted(range(n), key=lambda j: (int(shared[c * n + j]), j))
        words.append((order.index(key.rank % n) * 2**32 + int(own[c])) // n)
    return words


@pytest.mark.parametrize(("k", "n"), [(2, 1), (2, 4), (16, 3)])
def test_messages_and_mean_equal_the_scalar_oracle(k, n):
    d = 40
    xs = np.random.default_rng(n).standard_normal((n, d)).astype(np.float32)
    aggregate, keys = CorrelatedQuantisation(k, n), [Key(5, step=2, rank=7 * n + r) for r in range(n)]
    rows = []
    for x, key in zip(xs, keys, strict=True):
        low, high = float(x.min()), float(x.max())
        row = []
        for v, word in zip(map(float, x), oracle_words(key, n, d), strict=True):
            level = k - 1 if v == high else math.floor((k - 1) * (v - low) / (high - low) + word / 2**32)
            row.append(high if level == k - 1 else float(np.float32(low + (high - low) / (k - 1) * level)))
        message = aggregate.uplink.encode(x, key=key)
        assert aggregate.uplink.decode(message, d=d).tolist() == row
        assert message.bits == KLevel(k).bits(d).exact
        rows.append(row)
    mean = aggregate.round([torch.from_numpy(x) for x in xs], keys=keys)
    assert mean.tolist() == [float(np.float32(math.fsum(c) / n)) for c in zip(*rows, strict=True)]


def test_words_of_all_workers_lie_in_different_parts_of_the_range():
    n, d = 7, 40_000  # more coordinates than are drawn at once
    words = np.stack([CorrelatedKLevel(2, n).words(Key(3, rank=r), d) for r in range(n)])
    strata = np.sort(words.astype(np.uint64) * n >> 32, axis=0)
    assert (strata == np.arange(n)[:, None]).all()
    counts = np.bincount((words[2].astype(np.uint64) * n >> 32).astype(int), minlength=n)
    assert (abs(counts - d / n) < 5 * math.sqrt(d / n)).all()  # five standard errors


@pytest.mark.thorough
@pytest.mark.parametrize("operator", CorrelatedKLevel.examples(), ids=repr)
def test_each_worker_alone_obeys_every_law(operator):
    report = judge(
        operator,
        budget=Budget(draws=100, evaluations=256, sizes=(1, 2, 9), drawn_sizes=(2, 9), drawn=1, search=6).untimed(),
        seed=1,
    )
    assert report.ok, str(report)


def enumerated_variance(rests, n):
    """Of the sum of the roundings, over all permutations; g integrated exactly."""
    total = Fraction(0)
    mean = sum(rests)
    for order in itertools.permutations(range(n)):
        up = [min(max(n * r - p, Fraction(0)), Fraction(1)) for r, p in zip(rests, order, strict=True)]
        total += sum(p * (1 - p) for p in up) + (sum(up) - mean) ** 2
    return total / math.factorial(n)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_exact_variance_is_that_of_all_permutations(n):
    """One coordinate between two ends, one bit: the rests are the coordinates themselves."""
    rng = np.random.default_rng(n)
    for _ in range(5):
        rests = [Fraction(int(v), 64) for v in rng.integers(0, 65, n)]
        vectors = [np.array([0.0, 1.0, float(r)]) for r in rests]
        energy = sum(1 + r * r for r in rests) / n
        exact = CorrelatedQuantisation(2, n).claim_mean_at(vectors).omega
        assert exact == pytest.approx(float(enumerated_variance(rests, n) / n**2 / energy), rel=1e-12, abs=1e-15)


def test_never_worse_than_independent_and_the_claim_is_reached_by_one_vector_alone():
    n, d = 4, 6
    aggregate, rng = CorrelatedQuantisation(2, n), np.random.default_rng(0)
    for _ in range(50):
        xs = rng.standard_normal((n, d)) * np.exp(rng.standard_normal((n, 1)))
        independent = sum(KLevel(2).claim_at(x).omega * (x @ x) for x in xs) / n**2 / ((xs**2).sum() / n)
        exact = aggregate.claim_mean_at(xs).omega
        assert exact <= independent * (1 + 1e-12)
        assert exact <= aggregate.claim_mean(d, n).omega
    alone = np.vstack([KLevel(2).witness(d), np.zeros((n - 1, d))])
    assert aggregate.claim_mean_at(alone).omega == pytest.approx(aggregate.claim_mean(d, n).omega, rel=1e-12)


@pytest.mark.parametrize("n", [2, 5])
def test_equal_vectors_err_only_by_the_last_fraction(n):
    """Whole n r: exactly 0, in the messages too; else frac (1 - frac)/n^2 steps^2."""
    aggregate, x = CorrelatedQuantisation(2, n), torch.tensor([0.0, 1.0, *(i / n for i in range(1, n))])
    for t in range(20):
        mean = aggregate.round([x] * n, keys=[Key(t, rank=r) for r in range(n)])
        assert torch.allclose(mean, x, atol=1e-6)
    rest = 0.3
    exact = aggregate.claim_mean_at([np.array([0, 1, rest])] * n).omega
    fraction = n * rest % 1
    assert exact * (1 + rest**2) == pytest.approx(fraction * (1 - fraction) / n**2)


@pytest.mark.parametrize(("spread", "published"), [(0.02, 0.048), (0.3, 0.455)])
def test_gain_over_independent_rounding_is_the_known_one(spread, published):
    """100 workers, numbers around 1/2: exact ratio of variances, averaged over 50 coordinates."""
    n, rng = 100, np.random.default_rng(0)
    y = np.clip(0.5 + spread * rng.standard_normal((n, 50)), 0, 1)
    ends = np.tile([0.0, 1.0], (n, 1))
    xs = np.hstack([ends, y])
    exact = CorrelatedQuantisation(2, n).claim_mean_at(xs).omega * (xs**2).sum() / n
    assert exact / ((y * (1 - y)).sum() / n**2) == pytest.approx(published, abs=0.03)


def test_measured_variance_of_the_mean_is_the_exact_one():
    """2000 rounds, five standard errors."""
    n, rng = 3, np.random.default_rng(1)
    aggregate, xs = CorrelatedQuantisation(4, n), rng.standard_normal((n, 8)).astype(np.float32)
    tensors = [torch.from_numpy(x) for x in xs]
    rounds = [aggregate.round(tensors, keys=[Key(t, rank=r) for r in range(n)]).numpy() for t in range(2000)]
    squares = ((np.stack(rounds) - xs.mean(axis=0)) ** 2).sum(axis=1)
    exact = aggregate.claim_mean_at(xs).omega * (xs.astype(float) ** 2).sum() / n
    assert abs(squares.mean() - exact) < 5 * squares.std() / math.sqrt(2000)


def test_missing_repeated_or_stray_worker_is_an_error():
    aggregate, x = CorrelatedQuantisation(2, 3), np.ones(4)
    keys = [Key(0, rank=r) for r in range(3)]
    messages = [aggregate.uplink.encode(x, key=key) for key in keys]
    with pytest.raises(ValueError, match="all 3 workers must send, each once; got 2 messages from 2"):
        aggregate.merge(messages[:2], d=4, keys=keys[:2])
    with pytest.raises(ValueError, match="got 3 messages from 2"):
        aggregate.merge(messages, d=4, keys=[keys[0], keys[1], keys[0]])
    with pytest.raises(ValueError, match="rank alone"):
        aggregate.merge(messages, d=4, keys=[keys[0], keys[1], Key(0, step=1, rank=2)])
    with pytest.raises(ValueError, match="rank = None"):
        aggregate.uplink.encode(x, key=Key(0, rank=None))
    with pytest.raises(CorruptMessage):
        aggregate.merge([messages[0], messages[1], KLevel(4).encode(x, key=Key(0))], d=4, keys=keys)
    assert isinstance(aggregate.claim_mean(4, 2), NoClaim)


@pytest.mark.parametrize("arguments", [{"k": 1}, {"workers": 0}])
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match="must"):
        CorrelatedQuantisation(**arguments)
