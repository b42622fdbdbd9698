"""What every operator inherits: input checks, conversion, padding, shared keys."""

import re

import numpy as np
import pytest
import torch

from operators import CorruptMessage, Identity, Key, Message, ScaledSign, all_operators
from operators.operator import canonical
from tests.pooled import pooled

INSTANCES = [operator for cls in all_operators().values() for operator in cls.examples()]
everyone = pooled("operator", INSTANCES, ids=repr)


@everyone
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_round_trip_keeps_library_shape_and_dtype(operator, dtype, key):
    x = torch.linspace(-1, 1, 12).reshape(3, 4).to(dtype)
    y = operator(x, key=key)
    assert (y.shape, y.dtype) == (x.shape, dtype)
    if dtype is not torch.bfloat16:
        array = operator(x.numpy(), key=key)
        assert (array.shape, array.dtype) == (tuple(x.shape), x.numpy().dtype)
        assert (array == y.numpy()).all()


@everyone
def test_strides_and_gradients_do_not_matter_and_input_stays_as_it_was(operator, key):
    x = torch.linspace(-1, 1, 24).reshape(4, 6)
    before = x.clone()
    strided = x.t().requires_grad_()
    dense = x.t().contiguous()
    assert operator.encode(strided, key=key).payload.tolist() == operator.encode(dense, key=key).payload.tolist()
    assert (x == before).all()


@everyone
def test_what_is_decoded_may_be_overwritten(operator, key):
    message = operator.encode(torch.linspace(-1, 1, 50), key=key)
    payload, first = message.payload.clone(), operator.decode(message, d=50, key=key)
    expected = first.clone()
    first.fill_(7.0)
    assert torch.equal(message.payload, payload)
    assert torch.equal(operator.decode(message, d=50, key=key), expected)


@everyone
def test_same_key_same_bytes_and_global_randomness_is_untouched(operator, key):
    x = torch.linspace(-1, 1, 50)
    before = torch.get_rng_state()
    one, two = operator.encode(x, key=key), operator.encode(x, key=key)
    assert (one.payload.tolist(), one.bits) == (two.payload.tolist(), two.bits)
    assert (before == torch.get_rng_state()).all()


@everyone
def test_decoded_vector_is_float32_and_zero_stays_zero_where_promised(operator, key):
    y = operator.decode(operator.encode(torch.zeros(11), key=key), d=11, key=key)
    assert (y.dtype, y.shape) == (torch.float32, (11,))
    if type(operator.claim(11)).__name__ != "NoClaim":
        assert not y.any()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("size", [3, 5000])
def test_not_finite_input_is_an_error_that_names_the_first_index(bad, size, key):
    x = torch.zeros(size)
    x[2] = bad
    for given in (x, x.numpy()):
        with pytest.raises(ValueError, match=rf"must be finite in binary32; got {re.escape(str(bad))} at index 2"):
            Identity().encode(given, key=key)


def test_overflow_of_binary32_is_an_error(key):
    for given in (np.array([1e300]), torch.tensor([1e300], dtype=torch.float64)):
        with pytest.raises(ValueError, match="got inf at index 0"):
            Identity().encode(given, key=key)


def test_empty_and_integer_input_are_errors(key):
    with pytest.raises(ValueError, match="at least one entry"):
        Identity().encode(torch.zeros(0), key=key)
    for given in (torch.ones(3, dtype=torch.int64), np.ones(3, int)):
        with pytest.raises(TypeError, match="float"):
            Identity().encode(given, key=key)


def test_largest_finite_numbers_pass_the_check():
    x = np.full(9, np.finfo(np.float32).max, np.float32)
    assert (canonical(x) == x).all()


def test_set_padding_bits_are_refused():
    x = torch.ones(3)
    sent = ScaledSign().encode(x, key=Key(0))
    payload = sent.payload.clone()
    payload[-1] |= 1
    with pytest.raises(CorruptMessage, match="padding"):
        ScaledSign().decode(Message(payload, sent.bits), d=3)


def test_impossible_dimension_is_an_error():
    with pytest.raises(ValueError, match="d = 0"):
        Identity().decode(Message(torch.zeros(0, dtype=torch.uint8), 0), d=0)


@everyone
def test_only_shared_randomness_needs_the_key_to_decode(operator, key):
    message = operator.encode(torch.linspace(-1, 1, 9), key=key)
    if operator.randomness == "shared":
        with pytest.raises(ValueError, match="shared randomness"):
            operator.decode(message, d=9)
    else:
        assert operator.decode(message, d=9).equal(operator.decode(message, d=9, key=key.fold_in(1)))


@pytest.mark.parametrize("bits", [0, 31, 64])
def test_identity_refuses_other_lengths(bits):
    with pytest.raises(CorruptMessage, match="32 bits"):
        Identity().decode(Message(torch.zeros((bits + 7) // 8, dtype=torch.uint8), bits), d=1)


def test_identity_refuses_numbers_that_nobody_sends():
    with pytest.raises(CorruptMessage, match="NaN"):
        Identity().decode(Message(torch.full((4,), 255, dtype=torch.uint8), 32), d=1)
