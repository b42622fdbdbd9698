"""Quantisers for torch: torchao, turboquant-torch, gradient-compression."""

from __future__ import annotations

import importlib
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import torch

from bounds.claims import StrictlyContractive, Unbiased
from operators.laws import Domain, Subject, adapt

from .published import Computed, Published, attribute, mean_of, one_call

AO = "torchao."
COLUMNS = 3


def _rowwise(quantise: Any) -> Any:
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        codes, scale = quantise(x.reshape(1, -1), stochastic_rounding=True)
        return (codes * scale[:, None]).reshape(-1)

    return there_and_back


def _bfloat(rounded: Any) -> tuple[Computed, ...]:
    x = torch.full((100_000,), 1 + 2.0**-10)
    y = rounded(x).double()
    up = float((y > 1).double().mean())
    return (Computed("share rounded up at x = 1 + 2^-10", up, 0.125, "Monte Carlo", 100_000, _share(up, 100_000)),)


def _share(p: float, n: int) -> tuple[float, float]:
    half = 3.29 * float(np.sqrt(p * (1 - p) / n))
    return p - half, p + half


def _int8(quantise: Any) -> tuple[Computed, ...]:
    f = _rowwise(quantise)
    x = torch.tensor([1e-11, -0.5e-11])
    return (
        mean_of(lambda: float(f(x)[0]), 400, "E C(x)[0] at x = (1, -1/2) 10^-11", 1e-11),
        Computed(
            "the same, 1 / max(scale, 10^-12) in closed form", 1e-11 * (1e-11 / 127) / 1e-12, 1e-11, "closed form"
        ),
    )


INT8 = Published(
    name="quantize_int8_rowwise, stochastic",
    package="torchao",
    license="BSD-3-Clause",
    source=attribute(AO + "prototype.quantized_training.int8", "quantize_int8_rowwise"),
    says='"stochastic rounding also approximates the floating point value exactly"',
    judged="unbiased, omega = d/(4 127^2), 2^-30 <= max|x| <= 2^100",
    subject=lambda q: adapt(_rowwise(q), claim=lambda d: Unbiased(d / (4 * 127**2)), domain=Domain(2.0**-30, 2.0**100)),
    computed=lambda q: (
        mean_of(lambda: float(_rowwise(q)(torch.tensor([1.0, 0.3]))[1]), 2000, "E C(x)[1] at x = (1, 0.3)", 0.3),
    ),
)


# -- TurboQuant ---------------------------------------------------------------------------------------------------
def _turbo(cls: Any, bits: int) -> Any:
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        quantiser = cls(x.numel(), bits, seed=int(torch.randint(0, 1 << 40, ())))
        return quantiser.dequantize(quantiser.quantize(x))

    there_and_back.__name__ = cls.__name__
    return there_and_back


def _turbo_subject(cls: Any, bits: int, claim: Any) -> Subject:
    return adapt(_turbo(cls, bits), claim=claim, domain=Domain(2.0**-10, 2.0**20, longest=128))


def _distortion(cls: Any) -> tuple[Computed, ...]:
    x = torch.zeros(64)
    x[0] = 1.0
    error = float(((_turbo(cls, 2)(x) - x) ** 2).sum())
    bound = float(np.sqrt(3) * np.pi / 2 / 4**2)
    return (Computed("|C(x) - x|^2 at x = e_0, d = 64, 2 bits", error, bound, "one call"),)


TURBO = Published(
    name="TurboQuant, 3 bits, unbiased=True",
    package="turboquant-torch",
    license="MIT",
    source=attribute("turboquant", "TurboQuant"),
    says='"an unbiased inner product estimator" (Zandieh et al. 2025)',
    judged="unbiased, omega = 1, fresh seed in every call, d <= 128",
    subject=lambda cls: _turbo_subject(cls, 3, Unbiased(1.0)),
    computed=lambda cls: (
        mean_of(lambda: float(_turbo(cls, 3)(torch.eye(8)[0])[0]), 1000, "E C(x)[0] at x = e_0, d = 8", 1.0),
    ),
)


# -- random projection --------------------------------------------------------------------------------------------
def _projected(encoding: Any, *, again: bool) -> Any:
    module = importlib.import_module("gradient_compression.rp_compression")

    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        matrix = module.gen_random_matrix(x.numel(), COLUMNS, seed=7)
        message = encoding(x.reshape(1, -1), matrix)
        other = module.gen_random_matrix(x.numel(), COLUMNS, seed=7) if again else matrix
        return module.decoding(message, other).reshape(-1)

    return there_and_back


def _two_ends(encoding: Any) -> tuple[Computed, ...]:
    f, x = _projected(encoding, again=True), torch.tensor([1.0, 0.5])
    return (
        mean_of(lambda: float(f(x)[0]), 4000, "E C(x)[0] at x = (1, 1/2), each end makes the matrix of seed 7", 1.0),
    )


def _all_signs(encoding: Any) -> tuple[Computed, ...]:
    x, total = np.array([1.0, 0.5]), 0.0
    outcomes = list(product((-1.0, 1.0), repeat=2 * COLUMNS))
    for signs in outcomes:
        matrix = np.reshape(signs, (2, COLUMNS)) / np.sqrt(COLUMNS)
        total += float(np.sum((x @ matrix @ matrix.T - x) ** 2))
    omega = total / len(outcomes) / 1.25
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = _projected(encoding, again=False)(torch.tensor([1.003]))[0]
    return (
        Computed("omega at d = 2, k = 3", omega, 1 / COLUMNS, "enumeration", len(outcomes)),
        *one_call("C(1.003) at d = 1 under torch.autocast", rounded, 1.003),
    )


PROJECTION = Published(
    name="random projection, one matrix",
    package="gradient-compression",
    license="MIT",
    source=attribute("gradient_compression.rp_compression", "encoding"),
    says="random projection and back; nothing is stated",
    judged="unbiased, omega = (d - 1)/k, reached, k = 3, d <= 64",
    subject=lambda f: adapt(
        _projected(f, again=False),
        claim=lambda d: Unbiased((d - 1) / COLUMNS, tight=True),
        domain=Domain(2.0**-30, 2.0**60, longest=64),
    ),
    computed=_all_signs,
    finding="under torch.autocast its products are rounded to bfloat16, which is a bias; elsewhere nothing is found",
)

PUBLISHED = (
    Published(
        name="_fp32_to_bf16_sr",
        package="torchao",
        license="BSD-3-Clause",
        source=attribute(AO + "optim.quant_utils", "_fp32_to_bf16_sr"),
        says="stochastic rounding from float32 to bfloat16",
        judged="unbiased, omega = 2^-16, 2^-60 <= max|x| <= 2^60",
        subject=lambda f: adapt(lambda x: f(x).float(), claim=Unbiased(2.0**-16), domain=Domain(2.0**-60, 2.0**60)),
        computed=_bfloat,
    ),
    INT8,
    replace(
        INT8,
        name="quantize_int8_rowwise, stochastic, tiny rows",
        judged="the same, 2^-40 <= max|x| <= 2^-36",
        subject=lambda q: adapt(
            _rowwise(q), claim=lambda d: Unbiased(d / (4 * 127**2)), domain=Domain(2.0**-40, 2.0**-36)
        ),
        computed=_int8,
        finding="below max|x| = 1.27 10^-10 the scale that divides is floored at 10^-12, the one that is sent is not: "
        "the decoded row is too small",
    ),
    TURBO,
    replace(
        TURBO,
        name="TurboQuantMSE, 2 bits",
        source=attribute("turboquant", "TurboQuantMSE"),
        says="MSE <= (sqrt(3) pi/2) 4^-b for unit vectors; the theorem is about uniform rotations",
        judged="|C(x) - x|^2 <= .17004 |x|^2, d = 64",
        subject=lambda cls: adapt(
            _turbo(cls, 2),
            claim=StrictlyContractive(float(np.sqrt(3) * np.pi / 2 / 16)),
            domain=Domain(2.0**-10, 2.0**20, shortest=64, longest=64),
        ),
        computed=_distortion,
        finding="a unit vector along an axis is flat after one Hadamard transform: every entry takes the outer level, "
        "and the error is .2387 whatever the signs",
    ),
    PROJECTION,
    replace(
        PROJECTION,
        name="random projection, a matrix at each end from one seed",
        says="gen_random_matrix(row_d, col_d, seed)",
        judged="unbiased, omega = (d - 1)/k, k = 3, d <= 64",
        subject=lambda f: adapt(
            _projected(f, again=True),
            claim=lambda d: Unbiased((d - 1) / COLUMNS),
            domain=Domain(2.0**-30, 2.0**60, longest=64),
        ),
        computed=_two_ends,
        finding="the seed is given to numpy's generator and the entries are drawn from Python's, so that two ends with "
        "one seed hold different matrices and the mean is zero",
    ),
)
