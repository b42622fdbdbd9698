"""Layers: messages, claims, and what is and is not true of layer-wise use."""

import math

import numpy as np
import pytest
import torch

from bounds.claims import Contractive, NoClaim, StrictlyContractive, Unbiased
from operators import QSGD, CorruptMessage, RandomK, ScaledSign, SignSGD, SparseDithering, TernGrad, TopK
from operators.combinators.scope import LayerWise, combine_claims, flatten

from ..buckets import Bucketed

SIZES = (5, 1, 40, 64)
OPERATORS = [QSGD(levels=4), RandomK(fraction=0.3), ScaledSign(), SparseDithering(0.1), TopK(fraction=0.2), SignSGD()]


def elias(n):
    text = "0"
    while n > 1:
        text, n = f"{n:b}" + text, len(f"{n:b}") - 1
    return text


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_message_is_the_prefixed_messages_of_the_layers(operator, key, bitstring):
    x, scope = torch.randn(110, generator=torch.Generator().manual_seed(0)), LayerWise(operator, SIZES)
    text, values = "", []
    for number, part in enumerate(torch.split(x, SIZES)):
        message = operator.encode(part, key=key.fold_in(number))
        if operator.bits(part.numel()).exact is None:
            text += elias(message.bits + 1)
        text += bitstring(message)
        values += operator.decode(message, d=part.numel(), key=key.fold_in(number)).tolist()
    message = scope.encode(x, key=key)
    assert bitstring(message) == text
    assert scope.decode(message, d=110, key=key).tolist() == values
    size = scope.bits(110)
    assert message.bits == size.exact if size.exact else message.bits <= size.worst_case


@pytest.mark.parametrize("operator", OPERATORS, ids=repr)
def test_one_layer_has_the_claim_and_the_entries_of_the_entire_model(operator, key):
    x = torch.randn(110, generator=torch.Generator().manual_seed(0))
    layer = LayerWise(operator, (110,))
    assert layer.claim(110) == operator.claim(110)
    assert layer(x, key=key).equal(operator(x, key=key.fold_in(0)))


def test_claim_is_the_worst_of_the_layers():
    assert LayerWise(QSGD(levels=4), SIZES).claim(110) == Unbiased(QSGD(levels=4).claim(64).omega)
    assert LayerWise(ScaledSign(), SIZES).claim(110) == StrictlyContractive(1 - 1 / 64)
    assert LayerWise(TopK(fraction=0.2), (5, 10)).claim(15) == StrictlyContractive(0.8)
    assert isinstance(LayerWise(SignSGD(), SIZES).claim(110), NoClaim)
    assert LayerWise(RandomK(k=2), (4, 4)).claim(8) == Unbiased(1.0, tight=True)
    assert not LayerWise(RandomK(k=2), (4, 6)).claim(10).tight
    assert combine_claims([Contractive(0.5), StrictlyContractive(0.7)]) == Contractive(0.7)
    assert isinstance(combine_claims([Contractive(0.5), Unbiased(0.5)]), NoClaim)


@pytest.mark.parametrize("operator", [QSGD(levels=1), QSGD(levels=7), TernGrad(), ScaledSign(), RandomK(fraction=0.1)])
def test_layer_wise_constant_is_never_above_that_of_the_entire_model(operator):
    constant = lambda claim: claim.omega if isinstance(claim, Unbiased) else claim.alpha  # noqa: E731
    assert constant(LayerWise(operator, SIZES).claim(110)) <= constant(operator.claim(110)) + 1e-12


def split_error(operator, x, sizes):
    """Sum of the exact errors of the layers over |x|^2."""
    parts = np.split(x, np.cumsum(sizes)[:-1])
    value = lambda c: c.omega if isinstance(c, Unbiased) else c.alpha  # noqa: E731
    return sum(value(operator.claim_at(p)) * (p @ p) for p in parts if p.any()) / (x @ x)


@pytest.mark.parametrize("operator", [ScaledSign(), TernGrad(), QSGD(levels=1)], ids=repr)
def test_layer_wise_is_never_worse_for_any_vector_where_norms_are_monotone(operator):
    rng = np.random.default_rng(0)
    for _ in range(200):
        x = rng.standard_cauchy(60) * np.repeat(10.0 ** rng.uniform(-3, 3, 3), 20)
        assert split_error(operator, x, (20, 20, 20)) <= split_error(operator, x, (60,)) + 1e-9


def test_layer_wise_can_be_worse_for_a_vector_when_there_are_many_levels():
    """Levels that the whole vector hits exactly are missed by a layer's own scale."""
    x = np.array([3.0, 4.0, 12.0, 84.0])  # norm 85
    assert split_error(QSGD(levels=85), x, (4,)) == pytest.approx(0, abs=1e-15)
    assert split_error(QSGD(levels=85), x, (3, 1)) > 1e-6


def test_entire_model_top_k_captures_at_least_the_energy_of_layer_wise_at_equal_k(key):
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = rng.standard_cauchy(100)
        whole = TopK(k=20)(x, key=key)
        layers = LayerWise(TopK(k=10), (50, 50))(x, key=key)
        assert layers @ layers <= whole @ whole


def test_each_layer_costs_its_scale():
    assert LayerWise(ScaledSign(), SIZES).bits(110).exact == ScaledSign().bits(110).exact + 32 * 3


def test_layers_use_independent_streams(key):
    x = torch.ones(64)
    y = LayerWise(QSGD(levels=1), (32, 32))(x, key=key)
    assert not y[:32].equal(y[32:])


def test_a_model_is_one_vector_with_a_layer_for_each_tensor():
    model = [torch.randn(3, 4), torch.randn(5), torch.randn(2, 2, 2)]
    layers = LayerWise.of(ScaledSign(), model)
    assert layers.sizes == (12, 5, 8)
    for part, tensor in zip(torch.split(flatten(model), layers.sizes), model, strict=True):
        assert part.reshape(tensor.shape).equal(tensor)


def test_wrong_dimensions_and_empty_layers_are_errors(key):
    with pytest.raises(ValueError, match="the sum of the layer sizes, 110; got d = 111"):
        LayerWise(ScaledSign(), SIZES).encode(torch.ones(111), key=key)
    for sizes in ((), (3, 0)):
        with pytest.raises(ValueError, match="at least"):
            LayerWise(ScaledSign(), sizes)


def test_every_truncation_and_extension_is_refused(key, bitstring, message_of):
    scope = LayerWise(TopK(k=1), (5, 9))
    text = bitstring(scope.encode(torch.arange(14.0), key=key))
    assert scope.decode(message_of(text), d=14).count_nonzero() == 2
    for bad in [text[:n] for n in range(len(text))] + [text + "0", text + "1"]:
        with pytest.raises(CorruptMessage):
            scope.decode(message_of(bad), d=14)


def test_unbounded_parts_leave_the_size_open():
    from operators import SphericalCompression

    size = Bucketed(SphericalCompression(), bucket=16).bits(64)
    assert (size.exact, size.worst_case) == (None, None)
    assert math.isfinite(Bucketed(QSGD(), bucket=16).bits(64).expected_upper)
