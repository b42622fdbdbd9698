"""Communication hooks that come with torch (``torch.distributed.algorithms.ddp_comm_hooks``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from bounds.claims import StrictlyContractive
from operators.laws import Domain, adapt

from .published import Computed, Published, attribute, one_call, returns

HOOKS = "torch.distributed.algorithms.ddp_comm_hooks."


def half(d: int) -> StrictlyContractive:
    """Round to nearest with 11 bits; subnormals of max|x| >= 2^-8 with it."""
    return StrictlyContractive(2.0**-22 + d * 2.0**-34)


def output(hook: Any, *values: float) -> torch.Tensor:
    """What a group of one makes of a gradient."""
    return adapt(hook, claim=None).target(torch.tensor(values))


def _half(hook: Any) -> tuple[Computed, ...]:
    x = 1 + 2.0**-11 + 2.0**-20
    return one_call("C(1 + 2^-11 + 2^-20)", output(hook, x), 1 + 2.0**-10)


def _overflow(hook: Any) -> tuple[Computed, ...]:
    return one_call("finite entries of C(70000)", output(hook, 70000.0).isfinite().sum(), 1.0)


def _bfloat(hook: Any) -> tuple[Computed, ...]:
    x = 1 + 2.0**-8 + 2.0**-20
    return one_call("C(1 + 2^-8 + 2^-20)", output(hook, x), 1 + 2.0**-7)


def _on_gloo(hook: Any) -> tuple[Computed, ...]:
    return returns(lambda: output(hook, 1.0, 0.3, -1.0), "calls on gloo that return, of 1", RuntimeError)


FP16 = Published(
    name="fp16_compress_hook",
    package="torch",
    license="BSD-3-Clause",
    source=attribute(HOOKS + "default_hooks", "fp16_compress_hook"),
    says="casts the gradient to float16; no constant is stated",
    judged="|C(x) - x|^2 <= (2^-22 + d 2^-34) |x|^2, 2^-8 <= max|x| <= 2^15",
    subject=lambda hook: adapt(hook, claim=half, domain=Domain(2.0**-8, 2.0**15)),
    computed=_half,
)
BF16 = Published(
    name="bf16_compress_hook",
    package="torch",
    license="BSD-3-Clause",
    source=attribute(HOOKS + "default_hooks", "bf16_compress_hook"),
    says="casts the gradient to bfloat16; no constant is stated",
    judged="|C(x) - x|^2 <= 2^-16 |x|^2, 2^-60 <= max|x| <= 2^60",
    subject=lambda hook: adapt(hook, claim=StrictlyContractive(2.0**-16), domain=Domain(2.0**-60, 2.0**60)),
    computed=_bfloat,
)
PER_TENSOR = Published(
    name="quantization_pertensor_hook",
    package="torch",
    license="BSD-3-Clause",
    source=attribute(HOOKS + "quantization_hooks", "quantization_pertensor_hook"),
    says="torch.quantize_per_tensor on the gradient; experimental; no backend is named",
    judged="returns a finite gradient, backend gloo",
    subject=lambda hook: adapt(hook, domain=Domain(2.0**-15, 2.0**60)),
    computed=_on_gloo,
    finding="raises IndexError on the gloo backend, with two processes too: it expects the future of all_gather to "
    "hold one tensor for all ranks; gloo's holds a list of them",
)

PUBLISHED = (
    FP16,
    replace(
        FP16,
        name="fp16_compress_hook, any magnitude",
        judged="the same, 2^-126 <= max|x| <= 2^100",
        subject=lambda hook: adapt(hook, claim=half),
        computed=_overflow,
        finding="beyond 65504 the gradient becomes infinite, below 2^-25 zero: it casts without a scale",
    ),
    BF16,
    PER_TENSOR,
    replace(
        PER_TENSOR,
        name="quantization_perchannel_hook",
        source=attribute(HOOKS + "quantization_hooks", "quantization_perchannel_hook"),
        says="torch.quantize_per_channel on buckets of 512; experimental; no backend is named",
    ),
)
