"""The mean of messages: exact sums, and variances that average down when the randomness is independent."""

import math

import pytest
import torch

from bounds.claims import Contractive, NoClaim, Unbiased
from operators import QSGD, CorruptMessage, Identity, Key, Mean, Message, ScaledSign, TopK


def workers(n, d, seed=0):
    return list(torch.randn(n, d, generator=torch.Generator().manual_seed(seed)))


def test_merge_equals_the_scalar_oracle():
    xs, keys = workers(3, 7), [Key(0, rank=r) for r in range(3)]
    merged = Mean(TopK(k=2)).round(xs, keys=keys).tolist()
    decoded = [TopK(k=2)(x, key=k).tolist() for x, k in zip(xs, keys, strict=True)]
    assert merged == [float(torch.tensor(math.fsum(column) / 3)) for column in zip(*decoded, strict=True)]


def test_variance_of_the_mean_is_omega_over_n():
    """Flat vectors at s = 1 reach omega exactly: n = 400 rounds, five standard errors."""
    n, d, rounds = 4, 64, 400
    aggregate, xs, errors = Mean(QSGD(levels=1)), [torch.ones(d)] * n, []
    for t in range(rounds):
        keys = [Key(1, step=t, rank=r) for r in range(n)]
        errors.append(float((aggregate.round(xs, keys=keys) - 1).square().sum()) / d)
    errors = torch.tensor(errors)
    claim = aggregate.claim_mean(d, n)
    assert claim == Unbiased(QSGD(levels=1).claim(d).omega / n)
    assert abs(errors.mean() - claim.omega) < 5 * errors.std() / math.sqrt(rounds)


def test_claims_of_compositions():
    assert Mean(Identity()).claim_mean(5, 2) == Contractive(0.0)
    assert Mean(ScaledSign()).claim_mean(5, 2) == Contractive(0.8)
    assert isinstance(Mean(ScaledSign(), QSGD()).claim_mean(5, 2), NoClaim)
    assert isinstance(Mean(QSGD(), ScaledSign()).claim_mean(5, 2), NoClaim)
    up, down = QSGD(levels=1).claim(64).omega, QSGD(levels=2).claim(64).omega
    assert Mean(QSGD(levels=1), QSGD(levels=2)).claim_mean(64, 4).omega == up / 4 + down * (1 + up / 4)


def test_number_of_keys_and_damage_are_checked():
    message = Identity().encode(torch.ones(2), key=Key(0))
    with pytest.raises(ValueError, match="got 0 and 0"):
        Mean(Identity()).merge([], d=2, keys=[])
    with pytest.raises(ValueError, match="got 1 and 2"):
        Mean(Identity()).merge([message], d=2, keys=[Key(0), Key(1)])
    with pytest.raises(CorruptMessage):
        Mean(Identity()).merge([Message(message.payload[:4], 32)], d=2, keys=[Key(0)])
