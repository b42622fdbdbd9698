"""Which back ends are here, how to run one, and vectors on which they must agree bit for bit."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st

from operators.kernels.backend import kernels_for, use
from operators.kernels.philox import Stream

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
OTHERS = ["reference", *(["cuda"] if INTERPRETED or torch.cuda.is_available() else [])]  # compared with "cpu"
SIZES = (1, 63, 64, 65, 4097)
CPU_ONLY = {("elias", "decode"), ("rice", "unpack")}  # decoders of payloads on any device
FEW = settings(max_examples=4 if INTERPRETED else 25)


class Primitive:
    """A primitive's package, and its kernels as functions that find their back end by the first tensor."""

    def __init__(self, name: str) -> None:
        self._name, self._package = name, import_module(f"operators.kernels.{name}")

    def __getattr__(self, name: str) -> Any:
        if (self._name, name) in CPU_ONLY:
            return getattr(import_module(f"{self._package.__name__}.cpu"), name)
        return getattr(self._package, name) if hasattr(self._package, name) else partial(self._call, name)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        x = next(a for a in arguments if isinstance(a, torch.Tensor))
        return getattr(getattr(kernels_for(x), self._name), name)(*arguments, **options)


codewords, elias, fields, hadamard, levels, norms, philox, rice, selection, signs, trits = map(
    Primitive,
    ["codewords", "elias", "fields", "hadamard", "levels", "norms", "philox", "rice", "selection", "signs", "trits"],
)


def run(backend: str, primitive: Callable[..., Any], *arguments: Any) -> Any:
    """The primitive's result on the CPU; tensors go to the GPU for "cuda" unless Triton is interpreted."""
    device = "cuda" if backend == "cuda" and not INTERPRETED else "cpu"
    with use(backend):
        return _moved(primitive(*(_moved(a, device) for a in arguments)), "cpu")


def _moved(value: Any, device: str) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, Stream) and value.words is not None:
        return Stream(value.k0, value.k1, value.words.to(device))
    return tuple(_moved(v, device) for v in value) if isinstance(value, tuple) else value


def assert_equal(left: Any, right: Any) -> None:
    """Same types, shapes, and bits (so that -0.0 is not 0.0)."""
    if isinstance(left, tuple):
        assert len(left) == len(right)
        for a, b in zip(left, right, strict=True):
            assert_equal(a, b)
    elif isinstance(left, torch.Tensor):
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        if left.dtype.is_floating_point:
            left, right = (t.view(torch.int32 if t.dtype == torch.float32 else torch.int64) for t in (left, right))
        assert torch.equal(left, right)
    else:
        assert left == right


finite = st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100)
specials = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0**-149, -(2.0**-149), 2.0**-126, -(2.0**-127), 3.0, 1 + 2.0**-23])


@st.composite
def vectors(draw: st.DrawFn) -> torch.Tensor:
    """float32 vectors of the sizes that matter: few values, hence ties, mixed with Gaussian ones or not."""
    d = draw(st.sampled_from(SIZES))
    palette = np.array(draw(st.lists(st.one_of(finite, specials), min_size=1, max_size=8)), np.float32)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = palette[rng.integers(0, palette.size, d)]
    if draw(st.booleans()):
        x = np.where(rng.random(d) < 0.5, x, rng.standard_normal(d).astype(np.float32))
    return torch.from_numpy(x)


keys = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
