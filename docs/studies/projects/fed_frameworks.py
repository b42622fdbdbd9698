"""Compressors of the federated frameworks FedLab, FedML, Flower, OpenFL and NVIDIA FLARE."""

from __future__ import annotations

import contextlib
import importlib
import io
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from bounds.claims import Contractive, StrictlyContractive, Unbiased
from operators.laws import Domain, Subject, adapt

from .published import Computed, Published, attribute, by_path, mean_of, one_call

FLARE = "nvflare.app_opt.pt.quantization.ada_quant"
FLOWER = "flwr.common.secure_aggregation.quantization"
PIPELINES = "openfl.pipelines."


# -- QSGD of FedLab and FedML ------------------------------------------------------------------------------------
def qsgd(levels: int, d: int) -> float:
    """Lemma 3.1 of Alistarh et al. (2017)."""
    return min(d / levels**2, d**0.5 / levels)


def _largest_level(cls: Any) -> tuple[Computed, ...]:
    x = torch.tensor([1.0, -0.3, 0.02])
    compressor = cls(4)
    return (
        mean_of(lambda: float(compressor.decompress(compressor.compress(x))[1]), 2000, "E C(x)[1]", -0.3),
        *one_call("largest level sent, of which the docstring says 2^4 - 1", compressor.compress(x)[2].max(), 15.0),
    )


def _biased(cls: Any, *x: float) -> torch.Tensor:
    return cls().compress(torch.tensor(x), quantize_level=4)


def _zero(cls: Any) -> tuple[Computed, ...]:
    y = cls().compress(torch.zeros(4), quantize_level=4, is_biased=False)
    return one_call("finite entries of C(0, 0, 0, 0)", torch.isfinite(y).sum(), 4.0)


FEDML = Published(
    name="FedML QSGDCompressor, is_biased=False",
    package="fedml",
    license="Apache-2.0",
    source=lambda: by_path("fedml", "fedml/utils/compression.py").QSGDCompressor,
    says='QSGD: "stochastic quantization, to preserve the value in expectation"',
    judged="unbiased, omega = min(d/s^2, sqrt(d)/s), s = 15",
    subject=lambda cls: adapt(
        lambda x: cls().compress(x, quantize_level=4, is_biased=False), claim=lambda d: Unbiased(qsgd(15, d))
    ),
    computed=_zero,
    finding="the zero vector becomes NaN (0/0)",
)


# -- Flower -------------------------------------------------------------------------------------------------------
def _flower(quantize: Any, clip: float, levels: int) -> Any:
    dequantize = importlib.import_module(FLOWER).dequantize

    def there_and_back(x: np.ndarray) -> np.ndarray:
        return dequantize(quantize([x], clip, levels), clip, levels)[0]

    return there_and_back


def _flower_subject(quantize: Any, levels: int, domain: Domain) -> Subject:
    omega = (8.0 / levels / domain.smallest) ** 2  # a quarter of a step squared, over the least max|x|
    claim = lambda d: Unbiased(d * omega)  # noqa: E731
    return adapt(_flower(quantize, 8.0, levels), library="numpy", claim=claim, domain=domain)


def _sixteen(quantize: Any) -> tuple[Computed, ...]:
    f, x = _flower(quantize, 8.0, 16), np.array([0.3, -1.7], np.float32)
    return (mean_of(lambda: float(f(x)[0]), 4000, "E C(x)[0] at x = (0.3, -1.7)", 0.3),)


def _lost(quantize: Any) -> tuple[Computed, ...]:
    f = _flower(quantize, 8.0, 1 << 22)
    small, wide = np.full(100_000, 4e-7, np.float32), np.full(100_000, 4e-7)
    return (
        *one_call("mean of 10^5 outputs at x = 4 10^-7, float32", f(small).mean(), 4e-7, 100_000),
        *one_call("the same, float64", f(wide).mean(), 4e-7, 100_000),
    )


FLOWER_16 = Published(
    name="Flower quantize/dequantize, 16 steps",
    package="flwr",
    license="Apache-2.0",
    source=attribute(FLOWER, "quantize"),
    says="stochastic rounding to target_range + 1 levels on [-clipping_range, clipping_range]",
    judged="unbiased, omega = d/4, 1 <= max|x| <= 8",
    subject=lambda quantize: _flower_subject(quantize, 16, Domain(1.0, 8.0)),
    computed=_sixteen,
)


# -- OpenFL -------------------------------------------------------------------------------------------------------
def pipeline(transformers: Any) -> Any:
    """forward and backward of a pipeline, silently."""
    with contextlib.redirect_stdout(io.StringIO()):
        made = transformers()

    def there_and_back(x: np.ndarray) -> np.ndarray:
        return np.asarray(made.backward(*made.forward(x)), np.float32)

    there_and_back.__name__ = type(made).__name__
    return there_and_back


def _at_threshold(cls: Any) -> tuple[Computed, ...]:
    function = pipeline(lambda: cls(n_bits=8))
    returned = 0
    for d in (99, 100, 101):
        with contextlib.suppress(Exception):
            returned += function(np.ones(d, np.float32)).size == d
    return one_call("calls that return at d = 99, 100, 101 (dim_threshold = 100)", returned, 3, 3)


def _ternary(cls: Any) -> tuple[Computed, ...]:
    x = np.zeros(64, np.float32)
    x[5] = 1.0
    y = pipeline(lambda: cls(p_sparsity=0.01))(x)
    z = pipeline(lambda: cls(p_sparsity=0.01))(np.zeros(64, np.float32))
    return (
        Computed("C(x)[5] at x = e_5, d = 64, one entry kept", float(y[5]), 1.0, "one call"),
        Computed("the same, mean of |.| over all d entries instead of the k kept", 1 / 64, 1.0, "closed form"),
        Computed("C(0), largest entry", float(np.abs(z).max()), 0.0, "one call"),
    )


# -- NVIDIA FLARE -------------------------------------------------------------------------------------------------
def _flare(cls: Any) -> Any:
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        codes, state = cls().quantize(x)
        if not state:  # sent as it is
            return codes
        return cls().dequantized(torch.as_tensor(codes), state)

    return there_and_back


def _levels(cls: Any) -> tuple[Computed, ...]:
    y = _flare(cls)(torch.tensor([1e-4, -1e-4, 0.0]))
    return (
        Computed("finite entries of C(10^-4, -10^-4, 0)", float(torch.isfinite(y).sum()), 3.0, "one call"),
        Computed("range below which there are 2^0 - 1 = 0 levels", 0.01 / (32 * float(np.log(4))), 0.0, "closed form"),
    )


PUBLISHED = (
    Published(
        name="FedLab QSGDCompressor",
        package="fedlab",
        license="Apache-2.0",
        source=attribute("fedlab.contrib.compressor.quantization", "QSGDCompressor"),
        says="QSGD (Alistarh et al. 2017): unbiased; levels in [0, 2^n_bit - 1]",
        judged="unbiased, omega = min(d/s^2, sqrt(d)/s), s = 2^n_bit = 16",
        subject=lambda cls: adapt(cls(4), claim=lambda d: Unbiased(qsgd(16, d))),
        computed=_largest_level,
        finding="nothing against the claim; the maximum is sent as level 2^n_bit, one more than the docstring allows",
    ),
    FEDML,
    replace(
        FEDML,
        name="FedML QSGDCompressor, is_biased=True",
        says="QSGD divided by 1 + omega (the default)",
        judged="E|C(x) - x|^2 <= omega/(1 + omega) |x|^2, x != 0",
        subject=lambda cls: adapt(
            lambda x: cls().compress(x, quantize_level=4),
            claim=lambda d: Contractive(qsgd(15, d) / (1 + qsgd(15, d))),
            domain=Domain(zero=False),
        ),
        computed=lambda cls: (
            mean_of(lambda: float(_biased(cls, 1.0, 2.0)[0]), 2000, "E C(x)[0] at x = (1, 2)", 1 / (1 + 2 / 225)),
            *one_call("finite entries of C(0, -5 10^19)", _biased(cls, 0.0, -5e19).isfinite().sum(), 2.0),
        ),
        finding="the norm is computed in float32 and overflows: at x = (0, -5 10^19) both values become NaN",
    ),
    FLOWER_16,
    replace(
        FLOWER_16,
        name="Flower quantize/dequantize, float32, defaults",
        says="stochastic rounding; clipping_range 8, target_range 2^22 by default",
        judged="unbiased, omega = 16 d, 2^-21 <= max|x| <= 2^-19, d <= 8",
        subject=lambda quantize: _flower_subject(quantize, 1 << 22, Domain(2.0**-21, 2.0**-19, longest=8)),
        computed=_lost,
        finding="in float32 x + 8 is rounded to multiples of 2^-20 before the stochastic rounding, so that entries "
        "below 4.8 10^-7 always decode to zero; float64 input is free of it",
    ),
    Published(
        name="OpenFL EdenPipeline, d = dim_threshold",
        package="openfl",
        license="Apache-2.0",
        source=attribute(PIPELINES + "eden_pipeline", "EdenPipeline"),
        says="layers of dim_threshold entries or less are not compressed",
        judged="returns a finite array, d >= 100 (the default threshold)",
        subject=lambda cls: adapt(
            pipeline(lambda: cls(n_bits=8)), library="numpy", domain=Domain(2.0**-20, 2.0**20, shortest=100)
        ),
        computed=_at_threshold,
        finding="raises KeyError at d = dim_threshold: forward compresses above it, backward expands from it on; "
        "below it raises TypeError with numpy 2.4, which has no reshape(newshape=)",
    ),
    Published(
        name="OpenFL STCPipeline",
        package="openfl",
        license="Apache-2.0",
        source=attribute(PIPELINES + "stc_pipeline", "STCPipeline"),
        says="sparse ternary compression (Sattler et al. 2019): the kept entries become their mean magnitude",
        judged="|C(x) - x|^2 <= (1 - 1/d) |x|^2, p_sparsity = .01, 2^-20 <= max|x| <= 2^20",
        subject=lambda cls: adapt(
            pipeline(lambda: cls(p_sparsity=0.01)),
            library="numpy",
            claim=lambda d: StrictlyContractive(1 - 1 / d),
            domain=Domain(2.0**-20, 2.0**20),
        ),
        computed=_ternary,
        finding="the magnitude is averaged over all d entries instead of the k kept, so it is k/d times the right one; "
        "zero entries that are kept are raised by 10^-7, so that zero does not decode to zero",
    ),
    Published(
        name="NVIDIA FLARE AdaQuantizer",
        package="nvflare",
        license="Apache-2.0",
        source=attribute(FLARE, "AdaQuantizer"),
        says="AdaQuant (Hoenig et al. 2022): the number of levels follows from the range",
        judged="returns a finite tensor, 2^-20 <= max|x| <= 2^10",
        subject=lambda cls: adapt(_flare(cls), domain=Domain(2.0**-20, 2.0**10)),
        computed=_levels,
        finding="a tensor whose range max - min is below 2.25 10^-4 but not zero gets 0 levels and becomes NaN (0/0)",
    ),
)
