"""GRACE (sands-lab/grace, Xu et al. 2021): read from a clone, whose folder is given with --packages."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import torch

from bounds.claims import Contractive, Unbiased
from operators.laws import Domain, adapt

from .published import Computed, Published, attribute, mean_of, one_call

COMMON = {"package": "sands-lab/grace", "license": "BSD-2-Clause"}
LEVELS = 16


def twice(compressor: Any, x: torch.Tensor) -> torch.Tensor:
    """Compress and decompress."""
    return compressor.decompress(*compressor.compress(x.clone(), "layer"))


def qsgd_omega(d: int) -> Unbiased:
    """Lemma 3.1 of Alistarh et al. (2017)."""
    return Unbiased(min(d / LEVELS**2, d**0.5 / LEVELS))


def _half_a_level(cls: Any) -> tuple[Computed, ...]:
    x = torch.tensor([3.0, 4.0])
    return (mean_of(lambda: float(twice(cls(2), x)[0]), 4000, "E C(x)[0] at x = (3, 4), 2 levels", 3.0),)


def _clipped(cls: Any) -> tuple[Computed, ...]:
    x = torch.zeros(64)
    x[0] = 1.0
    std = float(np.sqrt(1 / 64 - 1 / 64**2))
    return (
        mean_of(lambda: float(twice(cls(), x)[0]), 200, "E C(x)[0] at x = (1, 0, ..., 0), d = 64", 1.0),
        Computed("2.5 standard deviations of that x, to which it is clipped", 2.5 * std, 1.0, "closed form"),
        *one_call("C(x) at x = (1, 1, 1, 1), largest entry", twice(cls(), torch.ones(4)).abs().max(), 1.0),
    )


def _coin(cls: Any) -> tuple[Computed, ...]:
    x = torch.full((1000,), 0.9)
    return (
        *one_call("C(1)", twice(cls(), torch.tensor([1.0]))[0], 1.0),
        mean_of(lambda: float(twice(cls(), x).mean()), 100, "E C(0.9), means of 1000 coordinates", 0.9),
    )


def _repeated(cls: Any) -> tuple[Computed, ...]:
    kept = [len(set(at)) for at in product(range(4), repeat=2)]
    lost = 1 - sum(kept) / len(kept) / 4
    x = torch.ones(4)
    compressor = cls(0.5)
    error = mean_of(lambda: float(((twice(compressor, x) - x) ** 2).sum() / 4), 4000, "the same of the code", 0.5)
    return Computed("E|C(x) - x|^2/|x|^2 at x = (1, 1, 1, 1), k = 2", lost, 0.5, "enumeration", len(kept)), error


PUBLISHED = (
    Published(
        name="GRACE QSGD",
        source=attribute("grace_dl.torch.compressor.qsgd", "QSGDCompressor"),
        says="QSGD (Alistarh et al. 2017): unbiased",
        judged="unbiased, omega = min(d/s^2, sqrt(d)/s), s = 16",
        subject=lambda cls: adapt(cls(LEVELS), claim=qsgd_omega),
        computed=_half_a_level,
        **COMMON,
    ),
    Published(
        name="GRACE TernGrad",
        source=attribute("grace_dl.torch.compressor.terngrad", "TernGradCompressor"),
        says="TernGrad (Wen et al. 2017), whose theorem needs an unbiased gradient; the paper clips as well",
        judged="unbiased, omega = sqrt(d) - 1",
        subject=lambda cls: adapt(cls(), claim=lambda d: Unbiased(max(d**0.5 - 1, 0.0))),
        computed=_clipped,
        finding="clipping at 2.5 standard deviations is always on: entries beyond are shrunk, and a gradient whose "
        "entries are all equal (any of one entry) becomes zero",
        **COMMON,
    ),
    Published(
        name="GRACE natural compression",
        source=attribute("grace_dl.torch.compressor.natural", "NaturalCompressor"),
        says="natural compression (Horvath et al. 2022): unbiased, omega = 1/8",
        judged="unbiased, omega = 1/8, 2^-8 <= max|x| <= 2^5, x != 0",
        subject=lambda cls: adapt(cls(), claim=Unbiased(0.125), domain=Domain(2.0**-8, 2.0**5, zero=False)),
        computed=_coin,
        finding="powers of two are doubled; below 1 the probability is 1/2 whatever the entry, because 2 ** int8 is 0 "
        "for negative exponents; from 64 on 2 ** int8 overflows",
        **COMMON,
    ),
    Published(
        name="GRACE random-k (dist)",
        source=attribute("grace_dl.dist.compressor.randomk", "RandomKCompressor"),
        says="random-k: k random entries are sent",
        judged="E|C(x) - x|^2 <= (1 - k/d) |x|^2, k = max(1, int(d/2))",
        subject=lambda cls: adapt(cls(0.5), claim=lambda d: Contractive(1 - max(1, int(0.5 * d)) / d)),
        computed=_repeated,
        finding="indices are drawn with replacement, so fewer than k entries arrive; each call reseeds torch's global "
        "generator with the step plus the sum of the bytes of the name",
        **COMMON,
    ),
)
