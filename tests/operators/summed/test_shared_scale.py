"""Integers of one scale: the scalar definition, the exact error, the joint claim, and mistakes that the kit accuses."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

from bounds import theorems
from operators import Key
from operators.laws import Budget, check_mean
from operators.random import uniform
from operators.summed import SharedScale, sum_of_ranks, summed
from operators.summed import shared_scale as module

M = 3
BUDGET = Budget(bias=0.5, seconds=3.0, most_seconds=10.0).untimed()


def exchange(method):
    return lambda vectors, key: sum_of_ranks(vectors, method, key=key).mean


def by_hand(vectors, word_bits, key):
    """One scale, coordinate by coordinate."""
    m, words = len(vectors), 1 << word_bits
    peak = float(np.float32(sum(float(x.abs().max()) for x in vectors)))
    h = peak * (1 + 2**-20) / (words // 2 - m)
    result = []
    for j in range(vectors[0].numel()):
        total = 0
        for rank, x in enumerate(vectors):
            u = float(uniform(replace(key, rank=rank), x.numel())[j])
            total = (total + math.floor(float(x[j]) / h + u)) % words
        result.append((total - words if total >= words // 2 else total) * h / m)
    return np.array(result)


@pytest.mark.parametrize("word_bits", [4, 8, 24])
def test_result_is_that_of_the_scalar_definition(word_bits):
    vectors = list(torch.randn(M, 11, generator=torch.Generator().manual_seed(0)))

    result = sum_of_ranks(vectors, SharedScale(word_bits), key=Key(1, step=4))

    np.testing.assert_allclose(result.mean, by_hand(vectors, word_bits, Key(1, step=4)), rtol=1e-6, atol=0)


@pytest.mark.parametrize("d", [1, 255, 256, 257, 1000, 10**12, 10**18])
def test_the_bits_of_any_length_are_counted_without_a_block(d):
    assert SharedScale(12, block=256).bits_of_rounds(d, 3) == (32 * math.ceil(Fraction(d, 256)), 12 * d)
    assert SharedScale(12).bits_of_rounds(d, 3) == (32, 12 * d)


def test_every_block_has_the_scale_of_its_own_peaks():
    vectors = list(torch.randn(M, 8, generator=torch.Generator().manual_seed(1)))
    far = [torch.cat([1e9 * x, x]) for x in vectors]

    mean, common = (sum_of_ranks(far, method, key=Key(2)).mean for method in (SharedScale(12, 8), SharedScale(12)))

    exact = torch.stack(vectors).mean(0)
    assert (mean[8:] - exact).abs().max() < 0.01
    assert (common[8:] - exact).abs().max() > 0.1


@pytest.mark.parametrize("block", [None, 16])
def test_exact_error_is_measured_and_lies_below_the_claim(block):
    m, d, draws = 4, 50, 600
    vectors = list(torch.randn(m, d, generator=torch.Generator().manual_seed(2)) * torch.arange(1.0, m + 1)[:, None])
    method, mean = SharedScale(6, block=block), torch.stack(vectors).double().mean(0)
    exact = method.square_error([x.numpy() for x in vectors])

    errors = [float(((sum_of_ranks(vectors, method, key=Key(3, step=i)).mean - mean) ** 2).sum()) for i in range(draws)]

    assert abs(np.mean(errors) - exact) <= 3.3 * np.std(errors) / math.sqrt(draws)
    assert np.std(errors) / math.sqrt(draws) < 0.02 * exact
    claim = method.claim_mean(d, m)
    assert exact <= claim.of_squares * float(torch.stack(vectors).double().square().sum()) / m


def test_claim_is_the_bound_at_the_peak_ratio_of_the_vectors():
    m, d, method = 5, 40, SharedScale(9)
    vectors = np.random.default_rng(0).standard_normal((m, d)).astype(np.float32)
    square_of_mean = float((vectors.astype(float).mean(0) ** 2).sum())
    peak_ratio = float(np.abs(vectors).max(1).sum()) / m / math.sqrt(square_of_mean / d)

    bound = theorems.shared_scale_error(m=m, word_bits=9, square_of_mean=square_of_mean, peak_ratio=peak_ratio)

    assert method.square_error(list(vectors)) <= bound * (1 + 1e-5)
    assert bound <= method.claim_mean(d, m).of_squares * float((vectors.astype(float) ** 2).sum()) / m


@pytest.mark.every(2)
@pytest.mark.parametrize("method", SharedScale.examples(), ids=str)
def test_joint_claim_is_kept(method):
    report = check_mean(exchange(method), m=M, claim=method.claim_mean, budget=BUDGET, seed=1)

    assert report.ok, str(report)


def errors_of_parts(vectors, word_bits):
    """``E|y_i - x_i|^2`` of every rank, from the fractional parts."""
    m = len(vectors)
    h = sum(float(np.abs(x).max()) for x in vectors) / (2 ** (word_bits - 1) - m)
    return [sum((f := v / h % 1) * (1 - f) for v in map(float, x)) * h**2 for x in vectors]


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_parts_of_all_ranks_together_keep_the_claim_that_one_alone_breaks(spread):
    m, d, word_bits = 4, 64, 5
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((m, d)) * np.exp(spread * draw.standard_normal((m, 1)))
    squares = (vectors**2).sum(1)

    errors, omega = errors_of_parts(vectors, word_bits), SharedScale(word_bits).claim(d, m).omega

    assert np.sum(errors) <= omega * squares.sum()
    assert omega == pytest.approx(m * SharedScale(word_bits).claim_mean(d, m).of_squares)
    assert (max(errors / squares) > omega) == (spread > 0)


def test_claim_of_parts_is_nearly_reached_by_one_peak_among_halves_of_a_step():
    m, word_bits, d = 3, 10, 40
    room = 2 ** (word_bits - 1) - m
    x = np.full((m, d), 0.5 * m / room)
    x[:, 0] = 1.0

    reached = sum(errors_of_parts(x, word_bits)) / (SharedScale(word_bits).claim(d, m).omega * (x**2).sum())

    assert 0.97 < reached <= 1


def test_diana_over_shared_integers_comes_as_near_as_its_theorem_says():
    m, d, kappa, epsilon, runs = 4, 6, 8, 0.01, 30
    draw, method = np.random.default_rng(1), SharedScale(4)
    omega = method.claim(d, m).omega
    rounds = math.ceil(theorems.diana_distance(kappa=kappa, m=m, omega=omega, epsilon=epsilon))
    curvature, minima = np.geomspace(1 / kappa, 1, d), draw.standard_normal((m, d))
    best, eta, left = minima.mean(0), 1 / (1 + 6 * omega / m), []
    for run in range(runs):
        x = np.zeros(d)
        shifts = curvature * (x - minima)
        x = x - eta * shifts.mean(0)
        for step in range(1, rounds):
            moved = (curvature * (x - minima) - shifts).astype(np.float32)
            h = np.repeat(float(np.abs(moved).max(1).sum()) / (2**3 - m), d)
            parts = [module.rounded(v, h, Key(run, step=step, rank=i)) * h for i, v in enumerate(moved)]
            x = x - eta * (shifts.mean(0) + np.mean(parts, axis=0))
            shifts = shifts + np.array(parts) / (1 + omega)
        left.append(((x - best) ** 2).sum() / (best**2).sum())

    assert omega > 1
    assert np.mean(left) <= epsilon


@pytest.mark.parametrize("word_bits", [3, 4, 5, 8])
def test_no_sum_overflows_where_all_coordinates_are_at_the_peak(word_bits):
    m = (1 << (word_bits - 1)) - 1  # as many ranks as there is room for: a single step each way
    vectors = [torch.full((3,), 1.7) for _ in range(m)]

    for step in range(20):
        mean = sum_of_ranks(vectors, SharedScale(word_bits), key=Key(5, step=step)).mean
        assert mean.min() >= 0  # a sum that wraps round is negative


class NoRoom(SharedScale):
    """The sum may reach 2^(k-1), which wraps round."""

    def _room(self, m):
        return 1 << (self.word_bits - 1)


class ShortWords(SharedScale):
    """Words of a bit less than the scale is made for."""

    def rounds(self, state, x, **settings):
        rounds = super().rounds(state, x, **settings)
        total = yield next(rounds)
        (words,) = rounds.send(total)
        short = summed.Words(words.values, self.word_bits - 1)
        total = yield (short,)
        try:
            rounds.send(replace(total, values=(short.signed(total.values[0]) & ((1 << self.word_bits) - 1),)))
        except StopIteration as stop:
            return stop.value


class OwnScale(SharedScale):
    """A rank rounds by m times its own peak, and the sum is read by the common one."""

    def rounds(self, state, x, *, key, m, member):
        rounds = super().rounds(state, x, key=key, m=m, member=member)
        (peaks,) = next(rounds)
        total = yield (peaks,)
        rounds.send(total)
        own = self._scale(np.repeat(m * peaks.values, x.size), self._room(m))
        words = summed.Words(module.rounded(x, own, key), self.word_bits)
        h = self._scale(total.values[0], self._room(m))
        sums = yield (words,)
        return state, (words.signed(sums.values[0]) * (h / m)).astype(np.float32)


class DividedTwice(SharedScale):
    """The mean of a mean."""

    def rounds(self, state, x, *, m, **settings):
        state, mean = yield from super().rounds(state, x, m=m, **settings)
        return state, mean / np.float32(m)


class NearestInteger(SharedScale):
    """Rounding without a coin."""

    coin = staticmethod(lambda key, n: np.full(n, 0.5))


class OneCoin(SharedScale):
    """All ranks round with the same numbers."""

    coin = staticmethod(lambda key, n: uniform(key.shared(), n))


class StaleCoin(SharedScale):
    """The same numbers in every step."""

    coin = staticmethod(lambda key, n: uniform(replace(key, step=0), n))


class Unsigned(SharedScale):
    """The sum's sign is forgotten."""

    def rounds(self, state, x, **settings):
        state, mean = yield from super().rounds(state, x, **settings)
        return state, np.abs(mean)


WRONG = {
    NoRoom: {"error", "unbiasedness"},
    ShortWords: {"error", "unbiasedness"},
    OwnScale: {"error", "unbiasedness"},
    DividedTwice: {"error", "unbiasedness"},
    NearestInteger: {"unbiasedness", "steps"},
    OneCoin: {"error"},
    StaleCoin: {"error"},
    Unsigned: {"error", "unbiasedness"},
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_every_mistake_is_accused(wrong, monkeypatch):
    method = wrong(6)
    if hasattr(wrong, "coin"):
        monkeypatch.setattr(module, "uniform_of_rows", lambda keys, n: np.stack([wrong.coin(key, n) for key in keys]))

    report = check_mean(exchange(method), m=M, claim=SharedScale(6).claim_mean, budget=BUDGET, seed=2)

    assert WRONG[wrong] & {failure.law for failure in report.failures}, str(report)
    if wrong is StaleCoin:  # the bound on the error fails first; the report names the steps as well
        assert "draws must vary from step to step" in report["steps"].text


def test_too_many_ranks_for_a_word_are_refused_before_anything_is_sent():
    with pytest.raises(ValueError, match=r"2\^\(word_bits - 1\) > m; got word_bits = 3 for m = 4"):
        sum_of_ranks([torch.ones(2)] * 4, SharedScale(3), key=Key(0))


@pytest.mark.parametrize("settings", [{"word_bits": 1}, {"word_bits": 25}, {"block": 0}])
def test_wrong_settings_are_refused(settings):
    with pytest.raises(ValueError, match=r"word_bits must|block must"):
        SharedScale(**settings)


def test_peaks_beyond_binary32_are_told():
    with pytest.raises(ValueError, match="exceeds binary32"):
        sum_of_ranks([torch.full((2,), 3e38)] * 2, SharedScale(8), key=Key(0))
