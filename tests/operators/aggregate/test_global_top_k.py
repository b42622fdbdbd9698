"""Global top-k: a scalar oracle of the tree, mass lost and mass conserved."""

import pytest
import torch

from operators import GlobalTopK, Key, TopK


def cut(values, k):
    keep = set(sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))[:k])
    return [v if i in keep else 0.0 for i, v in enumerate(values)]


def tree(xs, k):
    """Pairs i and i + 2^r, in plain Python."""
    nodes, step = [cut(x, k) for x in xs], 1
    while step < len(nodes):
        for i in range(0, len(nodes) - step, 2 * step):
            nodes[i] = cut([a + b for a, b in zip(nodes[i], nodes[i + step], strict=True)], k)
        step *= 2
    return nodes[0]


def integers(n, d, seed=0):
    """Whole numbers, so that every sum is exact in binary32."""
    return list(torch.randint(-100, 100, (n, d), generator=torch.Generator().manual_seed(seed)).float())


def keys(n):
    return [Key(0, rank=r) for r in range(n)]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_merge_equals_the_scalar_oracle(n):
    xs = integers(n, 20)
    assert GlobalTopK(k=4).round(xs, keys=keys(n)).tolist() == tree([x.tolist() for x in xs], 4)


@pytest.mark.parametrize("n", [2, 3, 8])
def test_conserving_rule_keeps_every_bit_of_mass(n):
    aggregate, residuals = GlobalTopK(k=5), [torch.zeros(50)] * n
    for t in range(20):
        xs = integers(n, 50, seed=t)
        before = sum(residuals) + sum(xs)
        residuals, result = aggregate.exchange(residuals, xs, keys=keys(n))
        assert (sum(residuals) + result).equal(before)


def test_published_rule_loses_the_known_mass():
    xs = [torch.tensor(v) for v in ([5.0, 0, 0], [0, 3.0, 0], [0, 6.0, 0], [0.0, 0, 0])]
    residuals, result = GlobalTopK(k=1, rule="published").exchange([torch.zeros(3)] * 4, xs, keys=keys(4))
    assert result.tolist() == [0, 6, 0]
    assert (sum(xs) - sum(residuals) - result).tolist() == [0, 3, 0]
    residuals, result = GlobalTopK(k=1).exchange([torch.zeros(3)] * 4, xs, keys=keys(4))
    assert (sum(residuals) + result).equal(sum(xs))


def test_published_rule_loses_mass_in_random_rounds():
    """P = 8, d = 500, k = 10: about three quarters of a coordinate a round."""
    lost = 0
    for t in range(50):
        xs = list(torch.randn(8, 500, generator=torch.Generator().manual_seed(t)).mul(64).round())
        residuals, result = GlobalTopK(k=10, rule="published").exchange([torch.zeros(500)] * 8, xs, keys=keys(8))
        lost += int((sum(xs) != sum(residuals) + result).sum())
    assert 0.5 < lost / 50 < 1.0


def test_tree_is_not_associative_so_the_order_is_fixed():
    a, b = torch.tensor([3.0, 0]), torch.tensor([0, 2.0])
    assert GlobalTopK(k=1).round([a, b, b], keys=keys(3)).tolist() == [3, 0]
    assert GlobalTopK(k=1).round([b, b, a], keys=keys(3)).tolist() == [0, 4]


def test_there_is_no_constant_with_respect_to_the_sum():
    xs = [torch.tensor([10.0, 1]), torch.tensor([-10.0, 1])]
    assert GlobalTopK(k=1).round(xs, keys=keys(2)).tolist() == [0, 0]
    assert type(GlobalTopK(k=1).claim_mean(2, 2)).__name__ == "NoClaim"


def test_energy_captured_is_near_that_of_the_top_k_of_the_sum_when_workers_agree():
    generator = torch.Generator().manual_seed(1)
    shared = torch.randn(500, generator=generator) ** 3
    xs = list(shared + torch.randn(8, 500, generator=generator))
    total = sum(xs)
    best = TopK(k=10)(total, key=Key(0)).square().sum()
    found = (total * (GlobalTopK(k=10).round(xs, keys=keys(8)) != 0)).square().sum()
    assert 0.9 * best < found <= best


def test_unknown_rule_and_both_sizes_are_refused():
    with pytest.raises(ValueError, match="rule must"):
        GlobalTopK(k=1, rule="other")
    with pytest.raises(ValueError, match="exactly one"):
        GlobalTopK(k=1, fraction=0.1)
