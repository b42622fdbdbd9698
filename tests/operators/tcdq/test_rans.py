"""The entropy coder against a library's: the same symbols, and as short up to the known loss."""

import constriction
import numpy as np
import pytest

from operators import CorruptMessage, Key
from operators.tcdq import codec
from operators.tcdq.fit import coder_overhead, overhead
from operators.tcdq.model import build, plan_of
from operators.tcdq.trellis import seeds

from . import oracle

SEEDS = seeds(Key(4))


def library(plan, k, phase):
    """(bits of the library's stream, the symbols that it decodes): one categorical model for each phase bin."""
    row = build(codec.Model(plan.sigma), plan.form).rows(0)
    probabilities = row / 2.0**plan.form.precision
    top = row.shape[1] // 2
    index = np.where((k >= 1 - top) & (k <= top), k + top - 1, 2 * top).astype(np.int32)
    rows = probabilities[phase >> plan.form.shift].astype(np.float32)
    family = constriction.stream.model.Categorical(perfect=False)
    coder = constriction.stream.stack.AnsCoder()
    coder.encode_reverse(index, family, rows)
    bits = 32 * coder.get_compressed().size
    return bits, coder.decode(family, rows) - top + 1


@pytest.mark.parametrize(("d", "omega"), [(20_000, 1.0), (20_000, 0.02), (140_000, 0.02)])
def test_stream_is_as_short_as_the_library_says(d, omega):
    """Long format: 32-bit states of precision 12 lose .004 bit a symbol on average; .006 is allowed.

    ``overhead`` counts the states in full, which hold up to 512 bits of the stream.
    """
    plan = plan_of(d, omega, 8)
    x = np.random.default_rng(d).standard_normal(d).astype(np.float32)
    _, packed = codec.quantised(x, plan, SEEDS)
    k, phase = packed >> 6, packed & 63
    bits, decoded = library(plan, k, phase)
    top = build(codec.Model(plan.sigma), plan.form).rows(0).shape[1] // 2
    inside = (k >= 1 - top) & (k <= top)
    assert (decoded[inside] == k[inside]).all()
    escapes = (~inside).sum()
    own = 8 * codec.encode(x, plan, SEEDS, mixtures=0).size - overhead(plan)
    allowed = 0.006 * d if plan.form.streams > 1 else coder_overhead(plan.form) * d
    assert bits - 512 <= own <= bits + allowed + 40 * escapes


def test_streams_cut_anywhere_or_extended_are_refused():
    plan = plan_of(1500, 0.1, 8)
    payload = codec.encode(np.random.default_rng(1).standard_cauchy(1500).astype(np.float32), plan, SEEDS)
    for n in range(payload.size):
        with pytest.raises(CorruptMessage):
            codec.decode(payload[:n], 8 * n, plan, SEEDS)
    for n in (1, 2, 4, 8, 64):
        longer = np.append(payload, np.zeros(n, np.uint8))
        with pytest.raises(CorruptMessage):
            codec.decode(longer, 8 * longer.size, plan, SEEDS)


def test_reference_refuses_a_missing_word():
    plan = plan_of(300, 0.1, 8)
    payload = oracle.encode(np.ones(300, np.float32), plan, SEEDS)
    with pytest.raises(CorruptMessage, match=r"missing|end"):
        oracle.decode(payload[:-4], plan, SEEDS)


def fuzz(rounds, seed):
    """Random and damaged payloads: each is refused or gives a finite vector; returns how many were refused."""
    rng = np.random.default_rng(seed)
    plans = [plan_of(d, omega, s) for d in (1, 3, 20, 70) for omega in (1.0, 1e-3) for s in (1, 8)]
    honest = {p: codec.encode(rng.standard_cauchy(p.d).astype(np.float32), p, SEEDS) for p in plans}
    refused = 0
    for i in range(rounds):
        plan = plans[i % len(plans)]
        payload = honest[plan].copy()
        if i % 3 == 0:
            payload = rng.integers(0, 256, rng.integers(0, 40)).astype(np.uint8)
        elif i % 3 == 1:
            payload[rng.integers(payload.size)] ^= rng.integers(1, 256)
        else:
            payload[4:] = rng.integers(0, 256, payload.size - 4)
        try:
            assert np.isfinite(codec.decode(payload, 8 * payload.size, plan, SEEDS)).all()
        except CorruptMessage:
            refused += 1
    return refused


def test_damaged_payloads_are_refused_or_finite():
    assert fuzz(6000, 0) > 4500


@pytest.mark.slow
def test_a_million_damaged_payloads_neither_crash_nor_hang():
    assert fuzz(1_000_000, 1) > 800_000


@pytest.mark.parametrize("omega", [0.01, 1e-5])
def test_damaged_models_are_refused_or_finite(omega):
    """Random bytes within the model field of an honest message, which then hardly ever ends where it began."""
    plan, rng = plan_of(1030, omega, 8), np.random.default_rng(5)
    honest = codec.encode(rng.standard_t(1.5, 1030).astype(np.float32), plan, SEEDS)
    end = codec.read_model(honest.tobytes(), plan)[1]
    refused = 0
    for _ in range(150):
        payload = honest.copy()
        payload[rng.integers(4, end)] = rng.integers(256)
        try:
            assert np.isfinite(codec.decode(payload, 8 * payload.size, plan, SEEDS)).all()
        except CorruptMessage:
            refused += 1
    assert refused > 100
