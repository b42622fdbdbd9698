"""The judge of vector quantisers: honest ones pass with the power that is asked for, the usual defects are accused."""

import math

import numpy as np
import pytest
import torch

import operators
from bounds import limits
from operators.laws import Budget, Outcome, check_inner_product

from . import vector_quantisers as published

BUDGET = Budget().untimed()
D = 32


def judge(quantise, d, bits, omega_ip=None, seed=1, **given):
    given = {"seeded": True, "library": "numpy", "budget": BUDGET} | given
    return check_inner_product(quantise, d, bits, omega_ip=omega_ip, seed=seed, **given)


def rabitq_constant(d, bits=1):
    """RaBitQ's error at every query is at most this."""
    return operators.RaBitQ(bits).claim(d).omega * d / (d - 1)


@pytest.mark.parametrize(
    ("quantise", "d", "bits", "omega_ip"),
    [
        (published.with_bits(published.TurboQuant, 1), D, 1, None),
        (published.TurboQuant, D, 2, None),
        (published.TurboQuant, 1, 2, None),
        (published.TurboQuant, 23, 2, None),
        (published.with_bits(published.TurboQuant, 4), D, 4, None),
        (published.rabitq, D, 1, rabitq_constant(D)),
        (published.EDEN, D, 2, 0.192),  # at q = x, see eden_inner_product
    ],
)
def test_honest_quantisers_pass_with_the_power_that_is_asked_for(quantise, d, bits, omega_ip):
    report = judge(quantise, d, bits, omega_ip)

    assert report.ok, str(report)
    assert report.power.along_x <= BUDGET.bias
    assert report.power.excess < 0.4


@pytest.mark.parametrize(
    ("quantise", "d", "bits", "omega_ip", "laws"),
    [
        (published.DeadSigns, D, 2, None, {"unbiasedness"}),
        (published.NoResidualNorm, D, 2, None, {"unbiasedness"}),
        (published.NoGain, D, 2, None, {"unbiasedness"}),
        (published.RootTwoLarge, D, 2, None, {"unbiasedness"}),
        (published.RootTwoSmall, D, 2, None, {"unbiasedness"}),
        (published.RotationUsedTwice, D, 2, None, {"unbiasedness"}),
        (published.SameSigns, D, 2, None, {"unbiasedness"}),
        (published.NormOfOne, D, 2, None, {"unbiasedness"}),
        (published.MeanSquare, D, 2, rabitq_constant(D, 2), {"unbiasedness"}),
        (published.with_bits(published.MeanSquare, 1), D, 1, rabitq_constant(D), {"unbiasedness"}),
        (published.Renormalised, D, 2, rabitq_constant(D, 2), {"unbiasedness"}),
        (published.InertSigns, D, 1, rabitq_constant(D), {"unbiasedness", "error"}),
        (published.StructuredEDEN, 128, 1, rabitq_constant(128), {"unbiasedness", "error"}),
        (published.PowerOfTwo, 48, 2, None, {"unbiasedness"}),
        (published.Padded, 48, 2, None, {"estimates"}),
        (published.SampleDeviation, 1, 2, None, {"estimates"}),
        (published.with_bits(published.TurboQuant, 1), D, 1, 0.8 * math.pi / 2, {"error"}),
        (published.TurboQuant, D, 1, 0.01, {"limit"}),
        (lambda seed: np.zeros_like, D, 1, None, {"unbiasedness"}),
        (lambda seed: lambda x: 0.5 * published.TurboQuant(seed)(x), D, 2, None, {"unbiasedness"}),
    ],
)
def test_usual_defects_are_accused(quantise, d, bits, omega_ip, laws):
    report = judge(quantise, d, bits, omega_ip)

    assert laws <= {failure.law for failure in report.failures}, str(report)


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
def test_norm_kept_in_16_bits_is_accused_where_it_overflows_and_not_within_its_range():
    assert "nan at |x| = 1.311e+05" in judge(published.HalfNorm, D, 2)["estimates"].text
    assert judge(published.HalfNorm, D, 2, norms=(0.01, 1000.0)).ok


def test_structured_rotation_is_right_along_x_and_wrong_at_a_coordinate():
    text = judge(published.StructuredEDEN, 128, 1, rabitq_constant(128))["unbiasedness"].text

    assert "q = e_" in text


def test_rotation_that_is_drawn_once_is_inconclusive_and_says_what_to_pass():
    fixed = np.random.default_rng(0).integers(1 << 30)
    report = judge(lambda x: published.TurboQuant(fixed)(x), D, 2, seeded=False)

    assert not report.ok
    assert report["unbiasedness"].outcome is Outcome.INCONCLUSIVE
    assert "seeded=True" in report["unbiasedness"].text


def test_operators_are_judged_with_fresh_keys():
    quick = Budget.quick().untimed()
    for operator, claim in [(operators.TurboQuant(2), None), (operators.RaBitQ(2), rabitq_constant(8, 2))]:
        assert judge(operator, 8, 2, claim, seeded=False, budget=quick).ok
    report = judge(operators.EDEN(2, "mse"), 8, 2, rabitq_constant(8, 2), seeded=False)
    assert report["unbiasedness"].outcome is Outcome.FAIL


def test_torch_functions_and_pairs_get_torch_vectors():
    def encode(x):
        assert x.dtype is torch.float32
        return x + x.norm() * torch.randn(x.shape) * math.sqrt(0.3 / x.numel())

    def estimate(q, code):
        return q @ code

    quick = Budget.quick().untimed()
    torch.manual_seed(0)
    for quantise in (encode, (encode, estimate)):
        assert judge(quantise, 8, 1, 0.35, seeded=False, library="torch", budget=quick).ok


def noisy(bias):
    """Of known law, and fast: (1 - bias) x and Gaussian noise of omega = .3."""

    def make(seed):
        rng = np.random.default_rng(seed)

        def quantise(x):
            noise = rng.standard_normal(x.size) * math.sqrt(0.3 / x.size) * np.linalg.norm(x.astype(float))
            return (1 - bias) * x.astype(float) + noise

        return quantise

    return make


def test_no_alarm_at_the_edge_of_the_claim_and_all_of_the_stated_bias_are_found():
    """Gaussian noise of exactly the claimed size: 8 honest runs, 8 at 1.1 times the stated bias."""
    quick = Budget.quick().untimed()
    honest = [judge(noisy(0.0), 8, 1, 0.3, seed=seed, budget=quick) for seed in range(8)]
    assert all(report.ok for report in honest)

    stated = max(report.power.along_x for report in honest)
    assert 0.01 < stated <= quick.bias
    wrong = [judge(noisy(1.1 * stated), 8, 1, 0.3, seed=100 + seed, budget=quick) for seed in range(8)]
    assert all(report["unbiasedness"].outcome is Outcome.FAIL for report in wrong)


def test_two_exact_values_need_no_luck():
    """Nothing lost at all: also omega_ip = 0 can be claimed, unless no code of that length can do it."""
    report = judge(lambda x: x, D, 32, 0.0, seeded=False)
    assert {v.law for v in report.failures} == {"limit"}
    assert report["unbiasedness"].outcome is Outcome.PASS
    at = {"bits": 32 * D + 64, "d": D}
    assert judge(lambda x: x, D, 32, limits.inner_product_limit(**at), seeded=False).ok


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"quantise": published.TurboQuant, "seeded": False}, TypeError, "seeded=True"),
        ({"quantise": 3}, TypeError, "got 3"),
        ({"quantise": operators.RaBitQ()}, TypeError, "function of a seed"),
        ({"d": 0}, ValueError, "got d = 0"),
        ({"bits": 0}, ValueError, "got bits = 0"),
        ({"bits": 2.5}, ValueError, "pass omega_ip"),
        ({"omega_ip": -1.0}, ValueError, "got omega_ip = -1.0"),
        ({"library": "jax"}, ValueError, "got 'jax'"),
    ],
)
def test_meaningless_calls_are_refused(given, error, text):
    with pytest.raises(error, match=text):
        judge(**{"quantise": published.TurboQuant, "d": D, "bits": 2} | given)


def test_report_names_the_law_the_vector_and_the_call():
    text = str(judge(published.NoResidualNorm, D, 2))

    assert "FAILS" in text
    assert "q = x/|x|" in text
    assert "operators.laws.check_inner_product(NoResidualNorm, 32, 2, omega_ip=" in text
    assert "seed=1, budget=" in text
