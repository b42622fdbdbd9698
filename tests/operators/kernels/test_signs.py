"""Sign bits: equal bits everywhere, and against a text of zeros and ones."""

import pytest
import torch
from hypothesis import given

from .equality import FEW, OTHERS, assert_equal, norms, run, signs, vectors


@pytest.mark.parametrize("other", OTHERS)
@FEW
@given(vectors())
def test_back_ends_agree(other, x):
    packed = run("cpu", signs.pack, x)
    assert_equal(packed, run(other, signs.pack, x))
    for backend in ("cpu", other):
        assert_equal(run(backend, signs.pack_with_sum, x), (packed, norms.absolute_sum(x, x.numel()).item()))
    arguments = (packed, x.numel(), 0.1, -0.1)
    assert_equal(run("cpu", signs.unpack, *arguments), run(other, signs.unpack, *arguments))


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 100, 4095, 4096, 4097, 4105, 9000])
def test_bits_are_those_of_the_signs_and_come_back(n):
    x = torch.randn(n, generator=torch.Generator().manual_seed(n))
    text = "".join("1" if v < 0 else "0" for v in x.tolist())
    packed = signs.pack(x)
    assert "".join(f"{b:08b}" for b in packed.tolist()) == text.ljust(8 * packed.numel(), "0")
    assert signs.unpack(packed, n).tolist() == [-1.0 if v < 0 else 1.0 for v in x.tolist()]


@pytest.mark.parametrize("backend", ["cpu", *OTHERS])
def test_sign_of_special_patterns(backend):
    x = torch.tensor([0.0, -0.0, 2.0**-149, -(2.0**-149), -1.0])
    assert run(backend, signs.pack, x).tolist() == [0b00011000]
