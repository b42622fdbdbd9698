"""The compiled codec and the plain one write the same payload and read the same vector."""

import numpy as np
import pytest

from operators import Key
from operators.tcdq import codec
from operators.tcdq.model import Model, build, plan_of
from operators.tcdq.trellis import SEGMENT, seeds

from . import oracle

SEEDS = seeds(Key(20260, step=3, rank=1))


def vectors(d):
    rng = np.random.default_rng(d)
    one_hot = np.zeros(d)
    one_hot[d // 2] = -3
    yield "gauss", rng.standard_normal(d)
    yield "one-hot", one_hot
    yield "cauchy", rng.standard_cauchy(d) * 2.0**-100
    yield "waves", rng.standard_normal(d) * np.exp(4 * np.sin(np.arange(d) / 150))


def assert_same(x, plan):
    x = x.astype(np.float32)
    payload = codec.encode(x, plan, SEEDS)
    assert payload.tobytes() == oracle.encode(x, plan, SEEDS)
    decoded = codec.decode(payload, 8 * payload.size, plan, SEEDS)
    assert decoded.tobytes() == oracle.decode(payload.tobytes(), plan, SEEDS).tobytes()
    return payload


def formats():
    """Every pair of a dimension, a distortion and a number of states; nightly every triple."""
    for i, d in enumerate([1, 2, 7, 63, 64, 65, 1000, 1024, 2061]):
        for j, omega in enumerate([1.0, 0.01, 1e-6]):
            for k, states in enumerate([1, 4, 8, 64, 256]):
                yield pytest.param(d, omega, states, marks=[] if (i + j + k) % 3 == 0 else [pytest.mark.slow])


@pytest.mark.every(3)
@pytest.mark.parametrize(("d", "omega", "states"), list(formats()))
def test_short_format_equals_the_reference(states, omega, d):
    for _, x in vectors(d):
        assert_same(x, plan_of(d, omega, states))


@pytest.mark.parametrize(
    ("states", "omega", "name"), [pytest.param(8, 0.01, "waves", marks=pytest.mark.thorough), (1, 1e-6, "cauchy")]
)
def test_long_format_equals_the_reference(states, omega, name):
    d = SEGMENT + 1029
    assert_same(dict(vectors(d))[name], plan_of(d, omega, states))


@pytest.mark.slow
@pytest.mark.parametrize("omega", [0.3, 1e-6])
def test_two_segments_equal_the_reference(omega):
    d = 2 * SEGMENT + 1029
    assert_same(dict(vectors(d))["waves"], plan_of(d, omega, 8))


def test_every_kind_of_model_and_escapes_occur_in_these_tests():
    plan = plan_of(2061, 0.01, 8)
    kinds = {name: codec.read_model(assert_same(x, plan).tobytes(), plan)[0].groups for name, x in vectors(2061)}
    flat = codec.read_model(assert_same(np.ones(2061), plan).tobytes(), plan)[0]
    assert flat.mixtures == ()
    assert kinds["waves"] > 1
    short = plan_of(1000, 0.01, 8)
    one_hot = dict(vectors(1000))["one-hot"].astype(np.float32)
    k, _ = oracle.quantise(one_hot, 3.0, short, SEEDS)
    assert np.abs(k).max() > build(Model(short.sigma), short.form).widest[0]


def test_vectors_of_many_scales_keep_bits_that_a_gaussian_sends_as_they_are():
    plan = plan_of(2061, 1e-5, 8)
    model = codec.read_model(assert_same(dict(vectors(2061))["waves"], plan).tobytes(), plan)[0]
    assert model.low < plan.low
