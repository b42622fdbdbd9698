"""Wrong at a few values of a coordinate: an entry of a table, a window, a border."""

from __future__ import annotations

import numpy as np
import torch

from bounds.claims import Claim, StrictlyContractive
from operators.random import uniform

from .base import ONE, Wrong, both, half, operator
from .vectors import levels, table_claim, where

Vector = np.ndarray


def window(centre: float, factor: float, width: float = 0.014):
    return where(lambda a, x: abs(a - centre) < width / 2, factor)


def raised_once(y: Vector, x: Vector) -> Vector:
    """A value just below one half counts as one half."""
    a = np.abs(x) / max(float(np.abs(x).max()), 1e-37)
    return np.where((a > 0.487) & (a < 0.5), y * np.float32(0.5) / np.maximum(a, 0.4), y)


CHANGES = {
    "halved around 0.95 of the largest": window(0.95, 0.5),
    "lost around 0.87 of the largest": window(0.87, 0.0),
    "negated around 0.74 of the largest": window(0.74, -1.0),
    "doubled around 0.62 of the largest": window(0.62, 2.0),
    "raised by a fifth around 0.41 of the largest": window(0.41, 1.2),
    "just below one half taken for one half": raised_once,
    "just below the largest rounded up": where(lambda a, x: (a > 0.985) & (a < 1), 1.02),
}


def fine_claim(d: int) -> Claim:
    return StrictlyContractive(min(0.9, d / (3.9 * 127**2)))


def table(entry: int) -> list[Wrong]:
    """127 levels, one of which repeats the one before it."""
    what = f"entry {entry} of a table of 127 levels"

    def drawn(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(levels(x.numpy(), torch.rand(x.shape).double().numpy(), entry))

    keyed = operator(
        claim=lambda self, d: table_claim(d),
        compressed=lambda self, x, key: levels(x, uniform(key, x.size), entry),
    )
    return [Wrong("one value", what, keyed), Wrong("one value", what, drawn, table_claim)]


def nearest(entry: int) -> list[Wrong]:
    """The same without randomness."""
    what = f"entry {entry} of a deterministic table"

    def rounded(x: Vector) -> Vector:
        return levels(x, np.full(x.size, 0.5), entry)

    keyed = operator(randomness="none", claim=lambda self, d: fine_claim(d), compressed=lambda self, x, key: rounded(x))
    return [
        Wrong("one value", what, keyed),
        Wrong("one value", what, lambda x: torch.from_numpy(rounded(x.numpy())), fine_claim),
    ]


WRONG = [*both("one value", CHANGES), *table(121), *table(97), *nearest(103), *nearest(45)]
HONEST = [Wrong("honest", "half", operator()), Wrong("honest", "half", half, ONE)]
