"""DRIVE: signs of the rotated vector, and what it shares with EDEN."""

import math

import numpy as np
import pytest

from operators import DRIVE, EDEN, CorruptMessage, Key

from ..rotations import rotated


@pytest.mark.parametrize("d", [1, 2, 7, 64, 70])
def test_payload_holds_the_signs_of_the_rotated_vector(d, key, bitstring):
    x = np.random.default_rng(d).standard_normal(d).astype(np.float32)
    z = rotated(x.tolist(), key)
    message = DRIVE("mse").encode(x, key=key)
    assert bitstring(message)[32:] == "".join("1" if v > 0 else "0" for v in z)
    best = sum(map(abs, z)) / d  # the least squares multiple of the signs
    signs = rotated([math.copysign(best, v) for v in z], key, forward=False)
    assert DRIVE("mse").decode(message, d=d, key=key).numpy() == pytest.approx(signs, abs=3e-6)


@pytest.mark.parametrize("scale", ["unbiased", "mse"])
def test_claim_and_size_are_those_of_eden(scale):
    for d in (1, 2, 64, 65):
        assert DRIVE(scale).claim(d) == EDEN(1, scale).claim(d)
        assert DRIVE(scale).bits(d).exact == d + 32


def test_decoded_mean_of_a_pair_is_the_pair():
    """The pair (1, 1/2) that no number of Hadamard rotations gets right; n = 4000, 6 standard errors."""
    n, x = 4000, np.array([1, 0.5])
    decoded = np.array([DRIVE()(x, key=Key(3, step=i)) for i in range(n)])
    assert (np.abs(decoded.mean(axis=0) - x) < 6 * decoded.std(axis=0) / math.sqrt(n)).all()


def test_unknown_scale_and_damage_are_refused(key):
    with pytest.raises(ValueError, match="scale must be one of unbiased, mse; got 'l2'"):
        DRIVE("l2")
    with pytest.raises(CorruptMessage, match=r"drive|eden"):
        DRIVE().decode(DRIVE().encode(np.ones(8), key=key), d=9, key=key)
