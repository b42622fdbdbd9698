"""Wrong plain functions: the kinds that measurements found acquitted, and ten with faults from public bug reports.

Each is (function, claim, library, domain).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bounds.claims import StrictlyContractive, Unbiased
from operators.laws import Domain
from operators.laws.kit.examples import EVERYTHING

NUMPY = np.random.default_rng(23)
ONE = Unbiased(omega=1.0)


@dataclass(frozen=True)
class Wrong:
    """A function, what is claimed of it, and the vectors that it is meant for."""

    function: Callable[[Any], Any]
    claim: Any = ONE
    library: str = "torch"
    domain: Domain = EVERYTHING


def keep_half(x: torch.Tensor) -> torch.Tensor:
    return 2 * x * (torch.rand(x.shape) < 0.5)


def at_one(i: int, factor: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """keep_half with one coordinate off."""

    def function(x: torch.Tensor) -> torch.Tensor:
        out = keep_half(x)
        if x.numel() > abs(i):
            out[i] *= factor
        return out

    return function


def rounding(up: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], levels: int = 4) -> Callable[[Any], Any]:
    """Levels of |x|/max|x|; ``up(fraction, u)`` says where to round up."""

    def function(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().max()
        if scale == 0:
            return torch.zeros_like(x)
        level = levels * x.abs() / scale
        whole = level.floor()
        return x.sign() * scale / levels * (whole + up(level - whole, torch.rand(x.shape)).to(x.dtype))

    return function


def linear(d: int) -> Unbiased:
    return Unbiased(d / 64)  # at most 1/4 of a squared step a coordinate, steps max|x|/4


def random_k(x: torch.Tensor, factor: Callable[[int, int], float]) -> torch.Tensor:
    d = x.numel()
    k = max(1, d // 2)
    out = torch.zeros_like(x)
    at = torch.randperm(d)[:k]
    out[at] = x[at] * factor(d, k)
    return out


def next_power(d: int, k: int) -> float:
    return (1 << (d - 1).bit_length()) / k


def half(d: int) -> Unbiased:
    return Unbiased(d / max(1, d // 2) - 1)


def biased_tail(x: np.ndarray) -> np.ndarray:
    """The last d mod 8 coordinates are dropped: a SIMD loop without its tail."""
    out = 2 * x * (NUMPY.random(x.size) < 0.5)
    out[x.size // 8 * 8 :] = 0
    return out.astype(np.float32)


def constant_seed(x: torch.Tensor) -> torch.Tensor:
    return 2 * x * (torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) < 0.5)


def one_coin(x: torch.Tensor) -> torch.Tensor:
    """Unbiased, but omega = 3: a coin of one quarter for the whole vector."""
    return 4 * x * (torch.rand(()) < 0.25)


MEASURED = {
    "zero": Wrong(torch.zeros_like),
    "half of x": Wrong(lambda x: 0.5 * x),
    ".9 of keep_half": Wrong(lambda x: 0.9 * keep_half(x)),
    ".98 of keep_half": Wrong(lambda x: 0.98 * keep_half(x)),
    "first coordinate halved": Wrong(at_one(0, 0.5)),
    "last coordinate halved": Wrong(at_one(-1, 0.5)),
    "coordinate 700 halved": Wrong(at_one(700, 0.5)),
    "last coordinate of a long vector doubled": Wrong(at_one(-900, 2.0)),
    "up-probability 2 % too large": Wrong(rounding(lambda p, u: u < 1.02 * p), linear),
    "up-probability 2 % too small": Wrong(rounding(lambda p, u: u < 0.98 * p), linear),
    "random-k scaled by the next power of two": Wrong(lambda x: random_k(x, next_power), half),
    "random-k unscaled": Wrong(lambda x: random_k(x, lambda d, k: 1.0), half),
    "random-k scaled by k/d": Wrong(lambda x: random_k(x, lambda d, k: k / d), half),
    "a tail of d mod 8 dropped": Wrong(biased_tail, library="numpy"),
    "the same mask in every call": Wrong(constant_seed),
    "one coin for all, omega three times the claim": Wrong(one_coin),
    "dropout without its factor": Wrong(lambda x: 0.5 * torch.nn.functional.dropout(x, 0.5)),
}


# -- public bug reports ------------------------------------------------------------------------------------------
def grace_23(x: torch.Tensor) -> torch.Tensor:
    """QSGD with the probabilities of both endpoints exchanged, as the formula of a survey had it."""
    return rounding(lambda p, u: u < 1 - p)(x)


def gfloat_36(x: torch.Tensor) -> torch.Tensor:
    """Stochastic rounding by 3 random bits and a comparison with <=: on average away from zero."""
    return rounding(lambda p, u: torch.floor(8 * u) / 8 <= p)(x)


def primus_365(x: torch.Tensor) -> torch.Tensor:
    """Stochastic rounding whose kernel starts from seed zero at every launch."""
    generator = torch.Generator().manual_seed(0)
    return rounding(lambda p, u: torch.rand(p.shape, generator=generator) < p)(x)


def terngrad_10(x: torch.Tensor) -> torch.Tensor:
    """Ternary gradients without their signs."""
    return x.abs().max() * (x / x.abs().max().clamp_min(1e-30) > torch.rand(x.shape))


def quantized_pytorch_4(x: torch.Tensor) -> torch.Tensor:
    """Arguments in another order: "stochastic" rounding rounds to the nearest."""
    return rounding(lambda p, u: p > 0.5)(x)


def theanets_123(x: torch.Tensor) -> torch.Tensor:
    """A mask that drops with probability 1/4 divides by 1/4, not by 3/4."""
    return x * (torch.rand(x.shape) >= 0.25) / 0.25


def pytorch_57410(x: torch.Tensor) -> torch.Tensor:
    """The sum over 16 workers is formed in float16 before it is divided."""
    return ((16 * x.to(torch.float16)).to(torch.float16) / 16).to(torch.float32)


def bitsandbytes_1884(x: torch.Tensor) -> torch.Tensor:
    """Blocks of 8 with nearest levels; the padding of the last block is not zero and takes part in its maximum."""
    d = x.numel()
    padded = torch.full((-(-d // 8) * 8,), 1e4)
    padded[:d] = x
    blocks = padded.reshape(-1, 8)
    scale = blocks.abs().amax(dim=1, keepdim=True).clamp_min(1e-30)
    return (torch.round(127 * blocks / scale) * scale / 127).reshape(-1)[:d]


def bitsandbytes_1540(x: torch.Tensor) -> torch.Tensor:
    """A type that the kernel does not know decodes to zeros."""
    return torch.zeros_like(x)


def tpu_inference_1926(x: torch.Tensor) -> torch.Tensor:
    """Quantisation that truncates."""
    return rounding(lambda p, u: torch.zeros_like(p))(x)


REPORTED = {
    "https://github.com/sands-lab/grace/issues/23": Wrong(grace_23, linear),
    "https://github.com/graphcore-research/gfloat/pull/36": Wrong(gfloat_36, linear),
    "https://github.com/AMD-AGI/Primus-Turbo/pull/365": Wrong(primus_365, linear),
    "https://github.com/wenwei202/terngrad/issues/10": Wrong(terngrad_10, lambda d: Unbiased(0.5 * (math.sqrt(d) - 1))),
    "https://github.com/eladhoffer/quantized.pytorch/issues/4": Wrong(quantized_pytorch_4, linear),
    "https://github.com/lmjohns3/theanets/pull/123": Wrong(theanets_123, Unbiased(1 / 3)),
    "https://github.com/pytorch/pytorch/pull/57410": Wrong(
        pytorch_57410, StrictlyContractive(2.0**-20), domain=Domain(2.0**-8, 2.0**15)
    ),
    "https://github.com/bitsandbytes-foundation/bitsandbytes/pull/1884": Wrong(
        bitsandbytes_1884, StrictlyContractive(1e-3)
    ),
    "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/1540": Wrong(
        bitsandbytes_1540, StrictlyContractive(1e-3)
    ),
    "https://github.com/vllm-project/tpu-inference/issues/1926": Wrong(tpu_inference_1926, linear),
}
