"""Indices beyond 2^31: of x, of the dither, of the subset and of the output."""

import math
from itertools import count

import numpy as np
import pytest
import torch

from operators import TCDQ, Key
from operators.tcdq.subset import STREAM, _kth_least
from operators.tcdq.trellis import seeds

from .oracle import hashed

LARGE = (1 << 31) + 5
VALUES = 3.0, -2.0, 1.0, 4.0


def drawn_near(places, d, k, key):
    """The index in the subset from the first place up, from the second down, and so on in turn."""
    first, second = (int(s) for s in seeds(key.fold_in(STREAM)))
    last = int(_kth_least(*seeds(key.fold_in(STREAM)), d, k))
    steps = (1, -1) * (len(places) // 2)
    return [
        next(j for j in count(i, step) if hashed(j, first, second) <= last)
        for i, step in zip(places, steps, strict=True)
    ]


@pytest.mark.parametrize("d", [400_005, pytest.param(LARGE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("omega", [1.0, 200.0])
def test_entries_come_back_at_their_places(omega, d):
    """A drawn coordinate is multiplied by d/k; its error has deviation d/k sqrt(omega'/k) |x|, k = d at omega = 1."""
    operator, key = TCDQ(omega=omega), Key(9)
    k, within = operator._plan(d).d, operator._plan(d).omega
    around = 0, min(1 << 31, d // 2) - 1, min(1 << 31, d // 2), d - 1
    places = around if k == d else drawn_near(around, d, k, key)
    x = np.zeros(d, np.float32)  # the system gives it no memory but for its entries
    x[list(places)] = VALUES
    message = operator.encode(torch.from_numpy(x), key=key)
    start, energy, decoded = 0, 0.0, {}
    square = sum(v * v for v in VALUES)
    for piece in operator.decode_pieces(message, d=d, key=key):
        energy += float(piece.double().square().sum())
        decoded |= {i: float(piece[i - start]) for i in places if start <= i < start + piece.numel()}
        start += piece.numel()
    assert start == d
    expected = {i: v * d / k for i, v in zip(places, VALUES, strict=True)}
    assert decoded == pytest.approx(expected, abs=6 * d / k * math.sqrt(within * square / k))
    error = energy + sum(v * v - 2 * v * decoded[i] for i, v in zip(places, VALUES, strict=True))
    claimed = (d / k - 1) ** 2 + (d / k) ** 2 * within  # given that all entries are drawn
    assert error / square == pytest.approx(claimed, rel=6 * math.sqrt(1 / k))
