"""Election coding: exhaustive tolerance, minimal allocations, and real rounds with omniscient liars."""

import itertools
import math

import numpy as np
import pytest
import torch

from operators import ElectionCoding, Key, MajorityVote
from operators.aggregate.election_coding import MINIMAL, bernoulli_allocation, minimal_allocation, tolerates

TOTALS = {(3, 1): 9, (5, 1): 19, (5, 2): 25, (7, 1): 29, (7, 2): 41, (7, 3): 49, (9, 1): 41, (9, 2): 59, (9, 3): 71}


def tolerates_slowly(G, b):
    """Every sign pattern, every choice of b liars, in plain Python; a local tie counts as wrong."""
    n = len(G)
    for mu in itertools.product((1, -1), repeat=n):
        truth = 1 if sum(mu) > 0 else -1
        votes = [sum(g * m for g, m in zip(row, mu, strict=True)) * truth > 0 for row in G]
        for liars in itertools.combinations(range(n), b):
            if sum(v and i not in liars for i, v in enumerate(votes)) <= n / 2:
                return False
    return True


@pytest.mark.parametrize(("n", "b"), [(1, 0), (3, 0), (3, 1), (5, 0), (5, 1), (5, 2)])
def test_criterion_equals_the_exhaustive_game(n, b):
    rng = np.random.default_rng(n)
    for G in [minimal_allocation(n, b), *(rng.integers(0, 2, (n, n)) | np.eye(n, dtype=int) for _ in range(20))]:
        assert tolerates(np.asarray(G, np.int8), b) == tolerates_slowly(G.tolist(), b)


@pytest.mark.parametrize(("n", "b"), TOTALS)
def test_minimal_allocation_has_the_known_total_and_tolerates_b(n, b):
    G = minimal_allocation(n, b)
    assert G.sum() == TOTALS[n, b]
    assert tolerates(G, b)


@pytest.mark.parametrize(("n", "b"), MINIMAL)
def test_no_single_partition_can_be_spared(n, b):
    G = minimal_allocation(n, b)
    for i, j in np.argwhere(G):
        fewer = G.copy()
        fewer[i, j] = 0
        assert not tolerates(fewer, b)


def test_no_allocation_of_three_tolerates_one_liar_with_fewer_than_all():
    for bits in range(1 << 9):
        G = ((bits >> np.arange(9)) & 1).reshape(3, 3).astype(np.int8)
        assert tolerates(G, 1) == (G.sum() == 9)


@pytest.mark.parametrize(("n", "b"), [(11, 2), (13, 3), (15, 1)])
def test_general_construction_tolerates_b(n, b):
    G = minimal_allocation(n, b)
    assert tolerates(G, b)
    assert not tolerates(G, b + 1)


@pytest.mark.parametrize(("n", "b"), [(4, 1), (5, 3), (0, 0), (5, -1)])
def test_impossible_demands_are_refused(n, b):
    with pytest.raises(ValueError, match="odd"):
        minimal_allocation(n, b)


def test_too_many_patterns_are_refused():
    with pytest.raises(ValueError, match="exhaustively"):
        tolerates(np.ones((23, 23), np.int8), 1)


@pytest.mark.parametrize(("n", "b"), [(5, 1), (7, 2)])
def test_real_round_survives_every_set_of_liars(n, b):
    """All 2^n sign patterns are the coordinates; the liars send the wrong sign of every coordinate."""
    patterns = torch.tensor(list(itertools.product((1.0, -1.0), repeat=n)))
    keys, coding = [Key(0, rank=r) for r in range(n)], ElectionCoding(b=b)
    gradients, truth = list(patterns.T), patterns.sum(1).sign()
    G = coding.assign(n, key=keys[0])
    honest = [coding.local_vote(gradients, row, key=k) for row, k in zip(G, keys, strict=True)]
    lie = coding.uplink.encode(-truth, key=keys[0])
    d = len(patterns)
    for liars in itertools.combinations(range(n), b):
        messages = [lie if i in liars else m for i, m in enumerate(honest)]
        assert coding.downlink.decode(coding.merge(messages, d=d, keys=keys), d=d).equal(truth)
    assert coding.elect(gradients, keys=keys).equal(truth)


@pytest.mark.parametrize(("p", "error"), [(0.0, 0.2290), (0.1, 0.0832), (0.2, 0.0326), (0.5, 0.0074), (1.0, 0.0)])
def test_bernoulli_allocation_has_the_exact_error_under_omniscient_liars(p, error):
    """n = 31 workers, 6 liars, partition signs right with probability .75; 40 allocations of 500 coordinates.

    The values are those of ``exact_election_error``; tolerance .015 covers the choice of allocations.
    """
    n, b, rng, wrong = 31, 6, np.random.default_rng(0), []
    for t in range(40):
        G = bernoulli_allocation(n, p, Key(1, step=t)).astype(int)
        mu = np.where(rng.random((500, n)) < 0.75, 1, -1)
        mu *= np.sign(mu.sum(1, keepdims=True))
        local = mu @ G.T
        local = np.where(local == 0, rng.choice([-1, 1], local.shape), np.sign(local))
        good = (local > 0).sum(1)
        wrong.append((np.maximum(good - b, 0) <= n / 2).mean())
    assert np.mean(wrong) == pytest.approx(error, abs=0.015)


def test_bernoulli_allocation_has_its_density_and_a_full_diagonal():
    G = bernoulli_allocation(101, 0.3, Key(2))
    assert G.diagonal().all()
    share = (G.sum() - 101) / (101 * 100)
    assert abs(share - 0.3) < 5 * math.sqrt(0.21 / 10100)
    with pytest.raises(ValueError, match="p must"):
        bernoulli_allocation(3, 1.5, Key(0))


def test_local_tie_is_a_fair_coin_of_the_worker():
    coding, d = ElectionCoding(), 4000
    vote = coding.local_vote([torch.ones(d), -torch.ones(d)], np.array([1, 1]), key=Key(0))
    ones = float(coding.uplink.decode(vote, d=d).mean())
    assert abs(ones) < 5 / math.sqrt(d)


def test_no_redundancy_is_majority_vote():
    xs = list(torch.randn(5, 64, generator=torch.Generator().manual_seed(0)))
    keys = [Key(0, rank=r) for r in range(5)]
    assert ElectionCoding(p=0.0).elect(xs, keys=keys).equal(MajorityVote().round(xs, keys=keys))
