"""Natural dithering against a scalar oracle, its exact mean, the sharp constants by search, and damage."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from operators import CorruptMessage, Key, NaturalDithering, TernGrad
from operators.compressors.natural_dithering import omega_l2, omega_max
from operators.random import words_from

from ..oracles import assert_equals_oracle, refuses_payloads
from ..plain_philox import bits32_numpy

INSTANCES = [*NaturalDithering.examples(), NaturalDithering(20), NaturalDithering(2, "max")]


def oracle(x, operator, words, float_field):
    """(bits as text, decoded values) in plain Python."""
    x, s = [float(v) for v in x], operator.levels
    norm = max(map(abs, x)) if operator.norm == "max" else math.sqrt(math.fsum(v * v for v in x))
    scale = np.float32(norm)
    scale = float(scale if float(scale) >= norm else np.nextafter(scale, np.float32(np.inf)))
    ladder = [0.0] + [2.0 ** (i - s) for i in range(1, s + 1)]
    width = 1 + math.ceil(math.log2(s + 1))
    text, decoded = float_field(scale), []
    for v, word in zip(x, words, strict=True):
        index, t = 0, abs(v) / scale if scale else 0.0
        while index < s and ladder[index + 1] <= t:
            index += 1
        if index < s:
            index += int(word) / 2**32 < (t - ladder[index]) / (ladder[index + 1] - ladder[index])
        text += f"{int(v < 0 and index > 0)}{index:0{width - 1}b}"
        decoded.append(float(np.float32(math.copysign(scale * ladder[index], v))))
    return text, decoded


@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
def test_payload_and_values_equal_the_oracle(operator, vectors, d, key, float_field):
    words = bits32_numpy(key, d)
    assert_equals_oracle(operator, vectors, key, lambda x: oracle(x, operator, words, float_field))


@pytest.mark.parametrize("operator", INSTANCES, ids=repr)
def test_decoded_mean_equals_input_and_variance_is_the_exact_one(operator):
    x = np.array([3, -1, 0.25, 0, -0.0, 2, -2.5, 0.001], np.float32).astype(float)
    total, square, steps = np.zeros(8), 0.0, 1024
    for j in range(steps):  # every coordinate sees each quantile of its word once
        with words_from(lambda key, n, start, w=(2 * j + 1) * 2**32 // (2 * steps): np.full(n, w, np.uint32)):
            y = operator(x, key=Key(0))
        total += y
        square += ((y - x) ** 2).sum()
    assert np.abs(total / steps - x).max() <= 5 / steps
    assert square / steps / (x @ x) == pytest.approx(operator.claim_at(x).omega, rel=0.02)


def test_output_is_never_the_input_itself():
    x = np.full(9, 0.3)
    assert not np.isin(NaturalDithering()(x, key=Key(0)), x.astype(np.float32)).any()


@pytest.mark.parametrize("norm", ["l2", "max"])
@pytest.mark.parametrize("s", [1, 2, 3, 6, 7, 8, 30])
@pytest.mark.parametrize("d", [1, 2, 3, 5, 64, 1000, 10**5])
def test_witness_reaches_the_claim(norm, s, d):
    operator = NaturalDithering(s, norm)
    assert operator.claim_at(operator.witness(d)).omega == pytest.approx(operator.claim(d).omega, rel=1e-9, abs=1e-12)


@pytest.mark.every(3)
@pytest.mark.parametrize("norm", ["l2", "max"])
@pytest.mark.parametrize(("s", "d"), [(1, 4), (2, 2), (2, 5), (3, 3), (4, 6)])
def test_no_search_exceeds_the_claim(norm, s, d):
    """Nelder-Mead from random starts comes within 3 % and never above."""
    operator, rng, best = NaturalDithering(s, norm), np.random.default_rng(s * d), 0.0
    for _ in range(40):
        start = np.exp2(rng.uniform(-s - 1, 0, d))
        found = minimize(lambda x: -operator.claim_at(x + 1e-12).omega, start, method="Nelder-Mead")
        best = max(best, -found.fun)
    assert 0.97 * operator.claim(d).omega <= best <= operator.claim(d).omega * (1 + 1e-9)


@pytest.mark.parametrize(("d", "s"), [(64, 4), (10**4, 7), (10**4, 9), (10**6, 11), (1000, 3), (10**6, 5)])
def test_sharp_constant_is_just_below_the_relaxed_one(d, s):
    q = math.sqrt(d) * 2.0 ** (1 - s)
    relaxed = q - 1 if q >= 9 / 4 else 1 / 8 + 2 / 9 * q * q
    assert relaxed * (1 - 3 / d**0.5) < omega_l2(s, d) <= relaxed * (1 + 1e-12)
    assert omega_l2(s, d) <= 1 / 8 + q * min(1, q)


def test_ternary_case_is_terngrad():
    for d in (1, 2, 64, 10**6):
        assert omega_max(1, d) == pytest.approx(TernGrad().claim(d).omega)


@pytest.mark.parametrize("arguments", [{"levels": 0}, {"levels": 128}, {"norm": "l1"}])
def test_meaningless_parameters_are_refused(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        NaturalDithering(**arguments)


@pytest.mark.parametrize(
    ("norm", "scale", "tail"),
    [
        ("l2", 1.0, "011" + "00"),  # cut off
        ("l2", 1.0, "011" + "0000"),
        ("l2", 1.0, "100" + "000"),  # a signed zero
        ("l2", 0.0, "001" + "000"),
        ("l2", -1.0, "000" + "000"),
        ("l2", math.inf, "000" + "000"),
        ("max", 1.0, "010" + "010"),  # nothing reaches the maximum
        ("max", 0.0, "010" + "000"),
    ],
)
def test_payload_that_nobody_sends_is_refused(norm, scale, tail, message_of, float_field):
    refuses_payloads(NaturalDithering(3, norm), 2, message_of(float_field(scale) + tail))
    with pytest.raises(CorruptMessage):
        NaturalDithering(4).decode(message_of(float_field(1.0) + "0101" + "0000"), d=2)  # level 5 of 4
