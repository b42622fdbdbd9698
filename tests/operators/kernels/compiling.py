"""Compile every Triton kernel for a real GPU, without one: launches are caught and compiled instead."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

import operators.kernels
import operators.tcdq
from operators import CorruptMessage, Key
from operators.kernels.backend import kernels_for, use
from operators.kernels.hadamard import word_count
from operators.kernels.philox import Stream
from operators.tcdq import cuda
from operators.tcdq import dispatch as tcdq
from operators.tcdq.fit import gaussian
from operators.tcdq.model import Model, Plan, build

TYPES = {
    torch.float32: "fp32", torch.float64: "fp64", torch.int8: "i8", torch.uint8: "u8", torch.int32: "i32",
    torch.int64: "i64", torch.bool: "i1",
}  # fmt: skip
OPTIONS = ("num_warps", "enable_fp_fusion")


def compiler(capability: int, compiled: set[str]) -> Callable[..., None]:
    """What takes the place of a launch."""

    def run(kernel: JITFunction, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> None:
        options = {name: keywords.pop(name) for name in OPTIONS if name in keywords}
        given = {**dict(zip(kernel.arg_names, args, strict=False)), **keywords}
        constants = {p.name: given[p.name] for p in kernel.params if p.is_constexpr}
        signature = {name: "constexpr" if name in constants else _type(given[name]) for name in kernel.arg_names}
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        binary = triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
        assert binary.asm["cubin"]
        compiled.add(f"{kernel.fn.__module__}.{kernel.fn.__name__}")

    return run


def _type(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_type(part) for part in value)
    if isinstance(value, torch.Tensor):
        return "*" + TYPES[value.dtype]
    if isinstance(value, float):
        return "fp32"
    return "i32" if -(2**31) <= value < 2**31 else "i64"


def launched() -> set[str]:
    """Names of all kernels: their names begin with an underscore, those of their parts do not."""
    names = set()
    packages = operators.kernels, operators.tcdq
    for found in (m for p in packages for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")):
        if "cuda" not in found.name.rpartition(".")[2]:
            continue
        module = importlib.import_module(found.name)
        kernels = {n for n, v in vars(module).items() if isinstance(v, JITFunction) and n.startswith("_")}
        names |= {f"{found.name}.{name}" for name in kernels}
    return names


def call_tcdq(plan: Plan) -> None:
    """The codec's steps one by one, with and without mixtures; empty results of kernels that did not run are zero."""
    x, seeds, norm = torch.ones(plan.d), (np.uint32(1), np.uint32(2**32 - 1)), 1.0
    tcdq.gather(x, 5, Key(0))
    with patch("torch.empty", torch.zeros):
        packed = cuda.symbols(x, plan, norm, seeds)
        for model in (gaussian(plan), Model(plan.sigma, (0,) * 15 + (1,), ((255,), (1, 255)))):
            groups, _ = cuda.classify(packed, model, plan)
            tables = build(model, plan.form)
            cuda.write(packed, model.low, groups, tables, plan, 2000)
            with suppress(CorruptMessage):
                cuda.read(torch.zeros(2000, dtype=torch.uint8), 5, model, tables, plan, norm, seeds)


def main(capability: int) -> None:
    """Call every primitive once; raises unless each kernel was compiled."""
    compiled: set[str] = set()
    JITFunction.run = compiler(capability, compiled)
    x, ones = torch.ones(9000), torch.ones(1, dtype=torch.float64)
    with use("cuda"):
        k = kernels_for(x)
        k.philox.fill(10, 0, 1, 2**32 - 1, x)
        for norm in (k.norms.largest, k.norms.absolute_sum, k.norms.energy):
            norm(x, 9000)
        k.signs.unpack(k.signs.pack(x), 9000)
        k.fields.unpack(k.fields.pack(torch.ones(9, dtype=torch.int32), 5), 9, 5)
        for most in (1, 127):
            payload = k.levels.encode(x, 9000, ones, most, Stream(1, 2))
            k.levels.decode(payload, 9000, 9000, ones, most)
        k.levels.signed(x, 9000, ones, 1, Stream(1, 2))
        k.trits.decode(k.trits.encode(x, 1.0, Stream(1, 2)), 9000, 1.0)
        k.selection.largest(x, 5)
        k.codewords.pack(torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64))
        k.elias.encode(torch.ones(9, dtype=torch.int32), torch.ones(1), 9, "dense", 1)
        k.rice.pack(torch.arange(3), torch.ones(3), 9)
        for d in (5, 9000, 40000):
            words = torch.zeros(word_count(d, 1), dtype=torch.int32)
            k.hadamard.unrotate(k.hadamard.rotate(torch.ones(d), words, 1), words, 1)
        for states, omega in ((1, 1e-5), (8, 0.1), (64, 0.1)):
            call_tcdq(Plan(1000, omega, states, 512))
    missing = launched() - compiled
    if missing:
        raise AssertionError(f"never compiled: {sorted(missing)}")
