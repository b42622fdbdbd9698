"""PowerSGD by sums: one power iteration on the mean, nothing lost, and mistakes that are seen."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bounds.claims import ConservedMean
from operators import Key
from operators.feedback.power_sgd import nudged
from operators.laws import check_mean
from operators.summed import SumEnd, SummedPowerSGD, sum_of_ranks

M = 3
RESIDUAL = 15.0  # sqrt(alpha)/(1 - sqrt(alpha)) of a fresh start at 8 x 8, rank 1: alpha = 7/8


def training(method, m=M):
    """An exchange with the memory of its ranks, every step with another key."""

    class Steps:
        def __init__(self):
            self.ends, self.step = None, 0

        def __call__(self, vectors):
            key = Key(1, step=self.step)
            self.ends = self.ends or [
                SumEnd(method, key, rank=rank, m=len(vectors), d=vectors[0].numel()) for rank in range(len(vectors))
            ]
            self.step += 1
            return sum_of_ranks(vectors, method, key=key, ends=self.ends).mean

    return Steps


@pytest.mark.parametrize(("rank", "shape"), [(1, (8, 8)), (2, (6, 10)), (4, None)])
def test_first_step_is_one_power_iteration_on_the_mean_matrix(rank, shape):
    d = 64 if shape is None else shape[0] * shape[1]
    vectors = list(torch.randn(M, d, generator=torch.Generator().manual_seed(0)))
    method, key = SummedPowerSGD(rank, shape), Key(3, step=7)
    rows, columns = shape or (8, 8)

    mean = sum_of_ranks(vectors, method, key=key).mean

    matrix = torch.stack(vectors).double().mean(0).numpy().reshape(rows, columns)
    expected = matrix.reshape(-1)
    if rank * (rows + columns) < d:
        p, _ = np.linalg.qr(matrix @ nudged(np.zeros((columns, rank)), key.shared()))
        expected = (p @ p.T @ matrix).reshape(-1)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-5)


def test_warm_start_finds_the_leading_directions():
    generator = torch.Generator().manual_seed(1)
    matrix = torch.randn(20, 2, generator=generator) @ torch.randn(2, 30, generator=generator)
    noise = torch.randn(4, 600, generator=generator)
    vectors = list(matrix.reshape(1, -1) + noise - noise.mean(0))
    exchange = training(SummedPowerSGD(2, (20, 30)), m=4)()

    errors = [float((exchange(vectors).reshape(20, 30) - matrix).norm() / matrix.norm()) for _ in range(3)]

    assert errors[-1] < 1e-3  # of rank 2, the mean has no other directions


def test_what_a_rank_sends_does_not_grow_with_the_number_of_ranks():
    method = SummedPowerSGD(2, (40, 50))
    for m in (2, 4, 8, 16):
        vectors = list(torch.randn(m, 2000, generator=torch.Generator().manual_seed(m)))

        sent = sum_of_ranks(vectors, method, key=Key(0)).sent_bits

        assert sum(sent) == 2 * (m - 1) * 32 * 2 * (40 + 50)
        assert max(sent) <= 64 * 2 * (40 + 50)


def test_nothing_is_lost_over_many_steps():
    report = check_mean(training(SummedPowerSGD(1)), m=M, claim=ConservedMean(RESIDUAL), sizes=(9, 64), seed=3)

    assert report.ok, str(report)


def test_ranks_share_one_start_and_keep_their_own_residuals():
    vectors = list(torch.randn(M, 64, generator=torch.Generator().manual_seed(5)))
    ends = [SumEnd(SummedPowerSGD(1), Key(0), rank=rank, m=M, d=64) for rank in range(M)]

    mean = sum_of_ranks(vectors, SummedPowerSGD(1), key=Key(0), ends=ends).mean

    assert all(torch.equal(end.state["start"], ends[0].state["start"]) for end in ends)
    residuals = torch.stack([end.state["residual"] for end in ends]).double()
    np.testing.assert_allclose(
        mean.double() + residuals.mean(0), torch.stack(vectors).double().mean(0), rtol=0, atol=1e-6
    )
    assert (residuals.norm(dim=1) <= torch.stack(vectors).double().norm(dim=1) * (1 + 1e-6)).all()


class Forgets(SummedPowerSGD):
    """The residual is dropped."""

    def rounds(self, state, x, **settings):
        new_state, mean = yield from super().rounds(state, x, **settings)
        return {**new_state, "residual": torch.zeros_like(new_state["residual"])}, mean


class DividedTwice(SummedPowerSGD):
    """The mean of a mean."""

    def rounds(self, state, x, *, m, **settings):
        new_state, mean = yield from super().rounds(state, x, m=m, **settings)
        return new_state, mean / np.float32(m)


class OwesTheMean(SummedPowerSGD):
    """Every rank owes what its vector is beside the mean's approximation, divided by m again."""

    def rounds(self, state, x, *, m, **settings):
        new_state, mean = yield from super().rounds(state, x, m=m, **settings)
        return {**new_state, "residual": new_state["residual"] / m}, mean


@pytest.mark.parametrize("wrong", [Forgets, DividedTwice, OwesTheMean])
def test_mistakes_lose_something(wrong):
    report = check_mean(training(wrong(1)), m=M, claim=ConservedMean(RESIDUAL), sizes=(9, 64), seed=3)

    assert "conserved" in {failure.law for failure in report.failures}, str(report)


class OwnStart(SummedPowerSGD):
    """Q differs by rank: what is added are images under unlike maps."""

    def rounds(self, state, x, *, key, **settings):
        own = replace(key, seed=key.seed + (key.rank or 0))
        return (yield from super().rounds(state, x, key=own, **settings))


def test_a_start_of_its_own_on_every_rank_is_no_power_iteration_on_the_mean():
    vectors = list(torch.randn(M, 64, generator=torch.Generator().manual_seed(0)))

    expected, mean = (sum_of_ranks(vectors, cls(1), key=Key(3, step=7)).mean for cls in (SummedPowerSGD, OwnStart))

    assert float((mean - expected).abs().max()) > 0.01


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="rank must be at least 1"):
        SummedPowerSGD(0)


@pytest.mark.parametrize("shape", [(8, 8), (1, 5)])
@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, 1)])
def test_a_sum_beyond_binary32_is_refused_and_a_smaller_one_is_finite(shape, signs):
    rows = [sign * torch.full((shape[0] * shape[1],), 1e38) for sign in signs]
    method = SummedPowerSGD(rank=1, shape=shape)

    for scale in (1.0, 3.4, 1e-3, 1e-30, 1e-82):
        vectors = [(row.double() * scale).float() for row in rows]
        try:
            mean = sum_of_ranks(vectors, method, key=Key(0)).mean
        except ValueError as refused:
            words = str(refused)
        else:
            exact = torch.stack(vectors).double().mean(0)
            torch.testing.assert_close(mean.double(), exact, rtol=1e-4, atol=1e-44)
            continue
        assert "must fit in binary32" in words
        assert scale >= 1
