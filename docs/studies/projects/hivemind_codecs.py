"""Codecs of hivemind (``hivemind.compression``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from bounds.claims import StrictlyContractive
from operators.laws import Domain, Subject, adapt

from .published import Computed, Published, attribute, one_call, returns


def output(codec: Any, *values: float) -> torch.Tensor:
    """Compress and extract."""
    return adapt(codec()).target(torch.tensor(values))


NORMAL = Domain(2.0**-30, 2.0**60)
NUMPY = (
    "extract raises TypeError with numpy 2.4: int() of an array of one entry, where the metadata ask for numpy >= 1.17"
)


def looked_up(codec: Any) -> Subject:
    """codebook[indices], without extract."""

    def decoded(x: torch.Tensor) -> torch.Tensor:
        indices, codebook = codec().quantize(x)
        return torch.from_numpy(codebook[indices])

    decoded.__name__ = codec.__name__
    return adapt(decoded, claim=lambda d: StrictlyContractive(1 - 1 / d), domain=Domain(2.0**-30, 2.0**60, shortest=2))


def _extracted(codec: Any) -> tuple[Computed, ...]:
    calls = "calls of extract(compress(x)) that return, of 1"
    return returns(lambda: output(codec, 1.0, -0.5, 0.25), calls, TypeError)


def _flat(codec: Any) -> tuple[Computed, ...]:
    indices, codebook = codec().quantize(torch.ones(8))
    return one_call("C(1, 1, ..., 1)[0], d = 8", codebook[indices][0], 1.0)


FLOAT16 = Published(
    name="Float16Compression",
    package="hivemind",
    license="MIT",
    source=attribute("hivemind.compression", "Float16Compression"),
    says="casts to float16, clamped to its range; no constant is stated",
    judged="|C(x) - x|^2 <= (2^-22 + d 2^-34) |x|^2, 2^-8 <= max|x| <= 2^15",
    subject=lambda codec: adapt(
        codec(), claim=lambda d: StrictlyContractive(2.0**-22 + d * 2.0**-34), domain=Domain(2.0**-8, 2.0**15)
    ),
    computed=lambda codec: one_call("C(70000)", output(codec, 70000.0), 65504.0),
)

UNIFORM = replace(
    FLOAT16,
    name="Uniform8BitQuantization",
    source=attribute("hivemind.compression", "Uniform8BitQuantization"),
    says="256 uniform bins over six standard deviations; each entry becomes the mean of its bin",
    judged="extract(compress(x)) returns a finite tensor",
    subject=lambda codec: adapt(codec(), domain=NORMAL),
    computed=_extracted,
    finding=NUMPY,
)

PUBLISHED = (
    FLOAT16,
    replace(
        FLOAT16,
        name="ScaledFloat16Compression",
        source=attribute("hivemind.compression", "ScaledFloat16Compression"),
        says="subtracts the mean and divides by the standard deviation before it casts to float16",
        judged="|C(x) - x|^2 <= 2^-21 |x|^2, 2^-30 <= max|x| <= 2^60",
        subject=lambda codec: adapt(codec(), claim=StrictlyContractive(2.0**-21), domain=NORMAL),
        computed=lambda codec: one_call("C(70000, 69999)[0]", output(codec, 70000.0, 69999.0)[0], 70000.0),
    ),
    UNIFORM,
    replace(
        UNIFORM,
        finding="",
        name="Uniform8BitQuantization.quantize",
        judged="|C(x) - x|^2 <= (1 - 1/d) |x|^2, codebook[indices], d >= 2",
        subject=looked_up,
        computed=_flat,
    ),
    replace(
        FLOAT16,
        name="Quantile8BitQuantization.quantize",
        source=attribute("hivemind.compression", "Quantile8BitQuantization"),
        says="256 bins between quantiles; each entry becomes the mean of its bin",
        judged="|C(x) - x|^2 <= (1 - 1/d) |x|^2, codebook[indices], d >= 2",
        subject=looked_up,
        computed=_flat,
    ),
    replace(
        UNIFORM,
        name="BlockwiseQuantization",
        source=attribute("hivemind.compression", "BlockwiseQuantization"),
        says="8-bit block quantisation by bitsandbytes",
    ),
)
