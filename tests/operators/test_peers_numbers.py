"""Numbers that other projects publish or record for the computations of our operators."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm

import operators.summed.power_sgd as power_sgd
from operators import EDEN, QSGD, QUICFL, FloatCast, Key
from operators.summed import SumEnd, SummedPowerSGD, sum_of_ranks


def relative_errors(operator, n, d=4096):
    x = torch.from_numpy(np.random.default_rng(3).standard_normal((n, d)).astype(np.float32))
    return np.array([float(((operator(v, key=Key(i)) - v) ** 2).sum() / (v @ v)) for i, v in enumerate(x)])


@pytest.mark.parametrize(("bits", "theirs"), [(1, 0.5704), (2, 0.1330), (3, 0.03571), (4, 0.009583)])
def test_eden_has_the_error_of_its_authors_code(bits, theirs):
    """Theirs is a mean over 1500 Gaussian vectors of 4096 coordinates, with a standard error of 0.1 %."""
    assert relative_errors(EDEN(bits), 200).mean() == pytest.approx(theirs, rel=0.015)


@pytest.mark.parametrize(("bits", "theirs"), [(1, 1.466), (2, 0.2154), (3, 0.04316), (4, 0.009688)])
def test_quic_fl_has_at_most_the_error_of_its_authors_code(bits, theirs):
    """The mean over 150 Gaussian vectors lies at most 2 % below theirs, within 4 standard errors."""
    errors = relative_errors(QUICFL(bits), 150)
    slack = 4 * errors.std() / math.sqrt(errors.size)
    assert slack < 0.04 * theirs
    assert 0.98 * theirs - slack < errors.mean() < theirs + slack


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_power_iterations_are_those_of_the_published_algorithm(rank, monkeypatch):
    """PowerSGD (Vogels et al. 2019) on two workers, ten steps.

    Each worker keeps its input less the mean, as PyTorch's communication hook does.
    """
    monkeypatch.setattr(power_sgd, "nudged", lambda start, key: start)
    rows, columns, m = 24, 40, 2
    rng, d = np.random.default_rng(1), rows * columns
    start = np.linalg.qr(rng.standard_normal((columns, rank)))[0]
    method = SummedPowerSGD(rank, (rows, columns))
    ends = [SumEnd(method, Key(0), rank=r, m=m, d=d) for r in range(m)]
    for end in ends:
        end.state = {"residual": torch.zeros(d), "start": torch.from_numpy(start).float()}
    q, residuals = start, [np.zeros((rows, columns)) for _ in range(m)]
    for step in range(10):
        gradients = [rng.standard_normal((rows, columns)).astype(np.float32) for _ in range(m)]
        vectors = [torch.from_numpy(g).reshape(-1) for g in gradients]
        ours = sum_of_ranks(vectors, method, key=Key(0, step), ends=ends).mean
        inputs = [g + r for g, r in zip(gradients, residuals, strict=True)]
        p = np.linalg.qr(sum(a @ q for a in inputs))[0]
        right = sum(a.T @ p for a in inputs) / m
        theirs = p @ right.T
        residuals = [a - theirs for a in inputs]
        q = np.linalg.qr(right)[0]
        np.testing.assert_allclose(ours.numpy().reshape(rows, columns), theirs, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("name", "dtype", "top"), [("e4m3", torch.float8_e4m3fn, 7), ("e5m2", torch.float8_e5m2, 14)])
def test_eight_bit_floats_are_those_of_torch(name, dtype, top):
    x = torch.from_numpy(np.random.default_rng(7).laplace(size=4096).astype(np.float32))
    scale = 2.0 ** (top - math.floor(math.log2(x.abs().max().item())))
    assert torch.equal(FloatCast(name)(x, key=Key(0)), (x * scale).to(dtype).float() / scale)


def omega_length(n):
    """Bits of the Elias omega code of n >= 1."""
    bits = 1
    while n > 1:
        bits += n.bit_length()
        n = n.bit_length() - 1
    return bits


def test_dense_qsgd_needs_more_bits_on_gaussian_vectors_than_published():
    """Alistarh et al. 2017 state 2.8 d + 32 bits at s = sqrt(d); the normal law gives 2.942 d.

    There a normal v is rounded to level k with the mean probability E max(0, 1 - abs(abs(v) - k)).  The code word of
    level k is omega(k + 1), and a sign if k > 0.
    """
    share = [
        2 * quad(lambda v, k=k: (1 - abs(v - k)) * norm.pdf(v), max(0, k - 1), k + 1, points=[k])[0] for k in range(9)
    ]
    expected = sum(p * (omega_length(k + 1) + (k > 0)) for k, p in enumerate(share))
    assert expected == pytest.approx(2.9424, abs=1e-4)
    d = 10**6
    x = torch.from_numpy(np.random.default_rng(0).standard_normal(d).astype(np.float32))
    assert QSGD(1000, code="dense").encode(x, key=Key(0)).bits / d == pytest.approx(expected, abs=0.003)
