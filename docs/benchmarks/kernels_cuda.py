"""On a GPU: every primitive and operator gives the CPU's bits, and how much of the memory's speed each one reaches.

    python docs/measure.py benchmarks/kernels_cuda.py [--d 100000000]

Prints one JSON line for the machine, one for each equality (exit status 1 if any fails) and one for each timing.
A timing's bytes are those that the work cannot do without (input read once, output written once); its share is of
the speed of a copy on the same device, which is measured first.  With TRITON_INTERPRET=1 and no GPU the equalities
are checked in the interpreter at small d, and nothing is timed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from importlib.metadata import version
from itertools import chain
from typing import Any

import numpy as np
import torch

from operators import Key, Message, Operator, all_operators, parse
from operators.catalogue import specification
from operators.kernels import elias, hadamard, kernels_for, levels
from operators.kernels.backend import use
from operators.kernels.philox import Stream
from operators.random import bits32
from operators.tcdq import dispatch as tcdq
from operators.tcdq.model import Plan
from operators.tcdq.trellis import SEGMENT, seeds

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
SIZES = (1, 63, 64, 65, 4097) if INTERPRETED else (1, 63, 64, 65, 4097, 10**5 + 3, 10**7 + 1)
STREAM = Stream(12345, 2**32 - 678)
TIMED = (
    "signsgd",
    "scaled_sign",
    "terngrad",
    "qsgd:127,norm=max,bucket=128,code=fixed",
    "block_integer:8",
    "topk:0.01",
    "tcdq:1.0",
    "tcdq:0.0667",
    "tcdq:1.0,states=64",
)
Call = Callable[..., Any]


def vector(d: int, kind: str) -> torch.Tensor:
    """Gaussian entries, or few values with zeros, ties and subnormal numbers."""
    rng = np.random.default_rng(d)
    if kind == "gauss":
        return torch.from_numpy(rng.standard_normal(d).astype(np.float32))
    palette = np.array([0.0, -0.0, 1, -1, 3, -3, 2.0**-149, -(2.0**-127), 2.0**60], np.float32)
    return torch.from_numpy(palette[rng.integers(0, palette.size, d)])


def words_for(d: int) -> torch.Tensor:
    """The sign words of two Hadamard rounds."""
    return torch.from_numpy(bits32(Key(1), hadamard.word_count(d, 2)).view(np.int32))


def kernel(name: str) -> Call:
    """A kernel, "signs.pack", of the back end that is in force for its first tensor when it is called."""
    primitive, function = name.split(".")

    def call(*arguments: Any) -> Any:
        x = next(a for a in arguments if isinstance(a, torch.Tensor))
        return getattr(getattr(kernels_for(x), primitive), function)(*arguments)

    return call


def calls(x: torch.Tensor) -> Iterator[tuple[str, Call, tuple[Any, ...]]]:
    """(name, primitive, arguments) of every primitive at one vector."""
    d, step, kernels = x.numel(), 128, kernels_for(x)
    top = kernels.norms.largest(x, step).double()
    yield "philox", kernel("philox.fill"), (d, 5, 1, 2**32 - 1, x)
    for norm in ("largest", "absolute_sum", "energy", "euclidean"):
        yield f"norms.{norm}", kernel(f"norms.{norm}"), (x * 2.0**-40, d)
        yield f"norms.{norm} of runs", kernel(f"norms.{norm}"), (x * 2.0**-40, step)
    packed = kernels.signs.pack(x)
    yield "signs.pack", kernel("signs.pack"), (x,)
    yield "signs.unpack", kernel("signs.unpack"), (packed, d, 0.5, -0.5)
    for most in (1, 7, 127, 1000):
        yield f"levels.encode {most}", kernel("levels.encode"), (x, step, top, most, STREAM)
        payload = kernels.levels.encode(x, step, top, most, STREAM)
        yield f"levels.decode {most}", kernel("levels.decode"), (payload, d, step, top / most, most)
        values, width = kernels.levels.signed(x, step, top, most, STREAM) + most, levels.width_of(most)
        yield f"fields.pack {most}", kernel("fields.pack"), (values, width)
        yield f"fields.unpack {most}", kernel("fields.unpack"), (payload, d, width)
    yield "levels.signed", kernel("levels.signed"), (x, step, top, 1000, STREAM)
    for code in elias.CODES:
        level = kernels.levels.signed(x, step, top, 4, STREAM)
        yield f"elias.encode {code}", kernel("elias.encode"), (level, top.float(), step, code, 4)
    rate = float(levels.rate_of(1, top.max()))
    yield "trits.encode", kernel("trits.encode"), (x, rate, STREAM)
    yield "trits.decode", kernel("trits.decode"), (kernels.trits.encode(x, rate, STREAM), d, 1.5)
    k = max(1, d // 100)
    index = kernels.selection.largest(x, k)
    yield "selection", kernel("selection.largest"), (x, k)
    yield "rice", kernel("rice.pack"), (index, x[index], d, 5, 7)
    widths = torch.from_numpy(np.random.default_rng(0).integers(0, 33, min(d, 10**6)))
    yield "codewords", kernel("codewords.pack"), ((torch.ones_like(widths) << widths) - 1, widths)
    yield "hadamard.rotate", kernel("hadamard.rotate"), (x * 2.0**-40, words_for(d), 2)
    yield "hadamard.unrotate", kernel("hadamard.unrotate"), (x * 2.0**-40, words_for(d), 2)


def calls_of_tcdq(x: torch.Tensor) -> Iterator[tuple[str, Call, tuple[Any, ...]]]:
    """Both directions of TCDQ's codec in the long format, and its subsets; in the interpreter, of short segments."""
    d, key = x.numel(), Key(9)
    segment = 64 if INTERPRETED else SEGMENT
    for states, omega in ((1, 0.01), (4, 1.0), (8, 1.0), (8, 0.0667), (8, 1e-5), (64, 0.1)):
        plan, words = Plan(d, omega, states, segment), seeds(key)
        payload = tcdq.encode(x, plan, words)
        yield f"tcdq.encode {states} states, omega {omega}", tcdq.encode, (x, plan, words)
        yield f"tcdq.decode {states} states, omega {omega}", tcdq.decode, (payload, 8 * payload.numel(), plan, words)
    k = (d + 1) // 2
    yield "tcdq.gather", tcdq.gather, (x, k, key)
    yield "tcdq.scatter", tcdq.scatter, (x[:k], d, key, 2.0)


def tcdq_vectors() -> Iterator[tuple[str, torch.Tensor]]:
    """Segment ends, a segment of zeros, contexts and escapes."""
    segment = 64 if INTERPRETED else SEGMENT
    for d in (segment, 2 * segment - 1, 2 * segment + 43) + (() if INTERPRETED else (10**7 + 1,)):
        yield "gauss", vector(d, "gauss")
        yield "special", vector(d, "special")
        yield "waves", vector(d, "gauss") * (4 * torch.sin(torch.arange(d) / 150)).exp()
        yield "zeros first", vector(d, "gauss") * (torch.arange(d) >= segment)


def moved(value: Any, device: str) -> Any:
    """Tensors, also within tuples, on the device."""
    if isinstance(value, tuple):
        return tuple(moved(v, device) for v in value)
    return value.to(device) if isinstance(value, torch.Tensor) else value


def same(left: Any, right: Any) -> bool:
    """Equal bits."""
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, torch.Tensor):
        bits = {torch.float32: torch.int32, torch.float64: torch.int64}.get(left.dtype, left.dtype)
        return (
            left.shape == right.shape and left.dtype == right.dtype and torch.equal(left.view(bits), right.view(bits))
        )
    return bool(left == right)


def equal_primitives(device: str) -> Iterator[dict[str, Any]]:
    """Triton, and torch on the device, against the CPU."""
    for d in SIZES:
        for kind in ("gauss", "special"):
            for name, primitive, arguments in calls(vector(d, kind)):
                ours = primitive(*arguments)
                for backend in ("cuda", "reference"):
                    with use(backend):  # type: ignore[arg-type]
                        theirs = primitive(*moved(arguments, device))
                    equal = same(ours, moved(theirs, "cpu"))
                    yield {"equality": name, "back_end": backend, "d": d, "vector": kind, "equal": equal}


def equal_tcdq(device: str) -> Iterator[dict[str, Any]]:
    """Triton's codec against the CPU's; the plain one is too slow for long vectors."""
    for kind, x in tcdq_vectors():
        for name, primitive, arguments in calls_of_tcdq(x):
            with use("cuda"):
                theirs = primitive(*moved(arguments, device))
            equal = same(primitive(*arguments), moved(theirs, "cpu"))
            yield {"equality": name, "back_end": "cuda", "d": x.numel(), "vector": kind, "equal": equal}


def equal_operators(device: str) -> Iterator[dict[str, Any]]:
    """Message and decoded vector of every example of every operator."""
    examples = [example for cls in all_operators().values() for example in cls.examples()]
    for operator in examples:
        for d in SIZES[:5]:
            x, key = vector(d, "gauss"), Key(3, step=d)
            with use("cuda") if INTERPRETED else nullcontext():
                there = operator.encode(x.to(device), key=key)
                back = operator.decode(there, d=d, key=key)
            here = operator.encode(x, key=key)
            equal = here.bits == there.bits and same(here.payload, there.payload.cpu())
            equal = equal and same(operator.decode(here, d=d, key=key), back.cpu())
            where = there.payload.device.type == torch.device(device).type == back.device.type
            yield {"equality": specification(operator), "back_end": "operator", "d": d, "equal": equal and where}


def seconds(call: Callable[[], Any], repetitions: int = 20) -> float:
    """The median of device times, after three calls that warm up."""
    times = []
    for i in range(repetitions + 3):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3 if i >= 3 else 0.0)
    return float(np.median(times[3:]))


def needed(value: Any) -> int:
    """Bytes of all tensors."""
    if isinstance(value, Message):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(needed, value))
    return value.numel() * value.element_size() if isinstance(value, torch.Tensor) else 0


def timings(d: int) -> Iterator[dict[str, Any]]:
    """Primitives and operators against a copy."""
    x = vector(d, "gauss").cuda()
    target = torch.empty_like(x)
    copy = 2 * needed(x) / seconds(lambda: target.copy_(x))
    yield {"timing": "copy", "d": d, "GB_per_s": round(copy / 1e9, 1), "share_of_copy": 1.0}
    for name, primitive, arguments in (*calls(x), *calls_of_tcdq(x)):
        spent, traffic = seconds(lambda: primitive(*arguments)), needed(arguments) + needed(primitive(*arguments))  # noqa: B023
        yield record(name, d, spent, traffic, copy)
    for text in TIMED:
        yield from operator_timings(text, parse(text), x, copy)


def operator_timings(text: str, operator: Operator, x: torch.Tensor, copy: float) -> Iterator[dict[str, Any]]:
    """Both directions of one operator."""
    d, key = x.numel(), Key(0)
    message = operator.encode(x, key=key)
    traffic = needed(x) + needed(message)
    yield record(f"{text} encode", d, seconds(lambda: operator.encode(x, key=key)), traffic, copy)
    yield record(f"{text} decode", d, seconds(lambda: operator.decode(message, d=d, key=key)), traffic, copy)


def record(name: str, d: int, spent: float, traffic: int, copy: float) -> dict[str, Any]:
    """One line: time, input speed, and the share of a copy's memory speed."""
    return {
        "timing": name,
        "d": d,
        "ms": round(1e3 * spent, 4),
        "input_GB_per_s": round(4e-9 * d / spent, 1),
        "share_of_copy": round(traffic / spent / copy, 4),
    }


def main(d: int = 10**8) -> Iterator[dict[str, Any]]:
    """All equalities, then all timings."""
    if not torch.cuda.is_available() and not INTERPRETED:
        raise SystemExit("there is no GPU here; set TRITON_INTERPRET=1 to check equality in the interpreter")
    device, unequal = "cpu" if INTERPRETED else "cuda", 0
    yield {"device": "interpreter" if INTERPRETED else torch.cuda.get_device_name(), "triton": version("triton")}
    for line in chain(equal_primitives(device), equal_tcdq(device), equal_operators(device)):
        unequal += not line["equal"]
        yield line
    if not INTERPRETED:
        yield from timings(d)
    if unequal:
        raise SystemExit(f"{unequal} equalities failed")
