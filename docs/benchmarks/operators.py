"""Speed, size and distortion of every operator on Gaussian vectors, one thread, as JSON lines.

    python docs/measure.py benchmarks/operators.py [--d 1000000 10000000] [--only qsgd topk]
    python docs/measure.py benchmarks/operators.py --peers [--d 10000000]

Times are CPU time of the one thread, so that another process on the core does not count.  MB/s counts the
binary32 input.  With --peers every operator and its peer take turns, and the ratio of the medians has its 95 %
bootstrap interval; without, the ratio compares with copying the same vector in the same run (read and
written bytes of the copy count once, like those of the operator).  The gap is the difference, in bits a
coordinate, between the real message and the limit of the operator's class at the measured distortion.
Extra memory is the peak of the process during a call beyond its start, message or result included, over the input
(Linux only).  Where a speed is below GOAL_GB_PER_S or a peak above GOAL_MEMORY at d = 10^7, the record says why.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

# This file has the name of the package it measures: its own folder must be searched last.
import numba
import numpy as np
import torch
from comparing import in_turns, quotient
from peers import GOALS, Peer

from bounds.claims import Contractive, Unbiased
from gpu_validation.records.environment import environment
from operators import Key, Operator, all_operators, parse
from operators.catalogue import specification
from operators.kernels import kernels_for
from operators.kernels.philox.cpu import fill_planes

SPECIFICATIONS = (
    "identity",
    "signsgd",
    "scaled_sign",
    "one_bit_sgd",
    "topk:0.01",
    "randomk:0.01",
    "scaled_randomk:0.01",
    "hard_threshold:2.5",
    "terngrad",
    "qsgd:1",
    "qsgd:16",
    "qsgd:4,norm=max,bucket=512,code=dense",
    "qsgd:127,norm=max,bucket=128,code=dense",
    "qsgd:127,norm=max,bucket=128,code=fixed",
    "qsgd:7,norm=max,bucket=512,code=fixed",
    "qsgd:23,bucket=512,code=flag",
    "sparse_dithering:0.1",
    "arithmetic_sparse_dithering:0.1",
    "randomised_sparse_dithering:1",
    "spherical_compression:0.5",
    "unbiased_spherical_compression:0.5",
    "eden:1",
    "eden:1,scale=mse",
    "eden:2",
    "eden:4",
    "quic_fl:1",
    "quic_fl:2",
    "quic_fl:4",
)
FLOORS = {  # passes and words that an operator needs at least: encode, decode
    "scaled_sign": (("read",), ("write",)),
    "qsgd": (("read", "words"), ("write",)),
    "terngrad": (("read", "words"), ("write",)),
    "topk": (("read",), ("write",)),
    "block_integer": (("read",), ("write",)),
    "eden": (("copy",), ("copy",)),
}
GOAL_GB_PER_S, GOAL_MEMORY, GOAL_D = 0.3, 2.5, 10**7
REASONS = {  # what keeps an operator from the goals
    "kashin": "mathematics: 21 Hadamard transforms of 1.7 times as many coefficients: 42 passes, and 31 between",
    "spherical_compression": "mathematics: the encoder tries 1/P random directions a block, P the share of its cap",
    "unbiased_spherical_compression": "mathematics: the encoder tries 1/P random directions a block",
    "e8": "an adaptive range coder: each of 9 symbols a block of 8 waits for the one before",
    "eden": "four Hadamard rotations of two parts each; every part is read and written twice",
    "drive": "the rotation, as for eden",
    "turboquant": "two independent rotations, three of them to encode several bits",
    "rabitq": "the rotation, as for eden; several bits sort all places at which a level changes",
    "quic_fl": "positions of exact entries: a range coder, a division a coordinate, one after the other",
    "sparse_dithering": "positions: a range coder, a division a coordinate, one after the other",
    "arithmetic_sparse_dithering": "a range coder, a division a coordinate, one after the other",
    "randomised_sparse_dithering": "positions: a range coder, a division a coordinate, one after the other",
}
SECONDS = 0.5  # spent at least on each measurement, and at least 3 repetitions


def specifications() -> list[str]:
    """Those above, and the first example of every other operator of the catalogue."""
    named = {text.partition(":")[0] for text in SPECIFICATIONS}
    rest = [specification(cls.examples()[0]) for name, cls in all_operators().items() if name not in named]
    return [*SPECIFICATIONS, *rest]


def best_seconds(call: Callable[[], Any]) -> float:
    """CPU time of this thread, the least of at least three repetitions, after one that warms up."""
    call()
    times: list[float] = []
    while len(times) < 3 or sum(times) < SECONDS:
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return min(times)


def extra_memory(call: Callable[[], Any]) -> float | None:
    """Bytes of the process at its peak during the call, beyond those before; None where Linux does not count them."""

    def kilobytes(name: str) -> int:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(name))

    if not os.path.exists("/proc/self/clear_refs"):
        return None
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # forget the peak so far
    before = kilobytes("VmRSS")
    call()
    return 1024.0 * (kilobytes("VmHWM") - before)


def missed(record: dict[str, Any]) -> dict[str, str]:
    """The reason, if the record is of a goal's dimension and misses one."""
    slow = min(record["encode_MB_per_s"], record["decode_MB_per_s"]) < 1000 * GOAL_GB_PER_S
    peaks = [record[f"{side}_memory_over_input"] or 0 for side in ("encode", "decode")]
    if record["d"] < GOAL_D or not (slow or max(peaks) > GOAL_MEMORY):
        return {}
    return {"misses_goal_because": REASONS.get(record["operator"].partition(":")[0], "not yet looked into")}


def limit_bits(operator: Operator, d: int, nmse: float) -> float | None:
    """Bits per coordinate that the class needs at this distortion; None without a claim or distortion."""
    claim = operator.claim(d)
    if not nmse > 0 or not isinstance(claim, Unbiased | Contractive):
        return None
    if isinstance(claim, Unbiased):
        from bounds.limits.unbiased import unbiased_bits

        return unbiased_bits(d=d, omega=nmse) / d
    from bounds.limits.worst_case import contractive_bits

    return contractive_bits(d=d, alpha=nmse) / d if nmse < 1 else None


def measure(text: str, d: int) -> dict[str, Any]:
    """One record."""
    x, key = torch.randn(d, generator=torch.Generator().manual_seed(0)), Key(0)
    operator, target = parse(text), torch.empty(d)
    copy_s = best_seconds(lambda: target.copy_(x))
    encode_s = best_seconds(lambda: operator.encode(x, key=key))
    message = operator.encode(x, key=key)
    decode_s = best_seconds(lambda: operator.decode(message, d=d, key=key))
    peaks = (
        extra_memory(lambda: operator.encode(x, key=key)),
        extra_memory(lambda: operator.decode(message, d=d, key=key)),
    )
    error = operator.decode(message, d=d, key=key).double() - x
    nmse = float(error.square().sum() / x.double().square().sum())
    limit, bits = limit_bits(operator, d, nmse), message.bits / d
    record = {
        "operator": text,
        "d": d,
        "encode_MB_per_s": round(4e-6 * d / encode_s, 1),
        "decode_MB_per_s": round(4e-6 * d / decode_s, 1),
        "encode_ns_per_coordinate": round(1e9 * encode_s / d, 3),
        "decode_ns_per_coordinate": round(1e9 * decode_s / d, 3),
        "encode_over_copy": round(encode_s / copy_s, 1),
        "decode_over_copy": round(decode_s / copy_s, 1),
        "encode_memory_over_input": None if peaks[0] is None else round(peaks[0] / (4 * d), 2),
        "decode_memory_over_input": None if peaks[1] is None else round(peaks[1] / (4 * d), 2),
        "bits_per_coordinate": round(bits, 5),
        "nmse": float(f"{nmse:.5g}"),
        "claim": str(operator.claim(d)),
        "limit_bits_per_coordinate": None if limit is None else float(f"{limit:.5g}"),
        "gap_bits_per_coordinate": None if limit is None else round(bits - limit, 4),
    }
    return record | missed(record)


@numba.njit(cache=False, nogil=True)
def draw(words: Any, tiles: int) -> None:
    """As many random words as ``tiles`` tiles hold, over and over into the same 16 KiB."""
    for tile in range(tiles):
        fill_planes(words, 1024 * tile, 1024, np.uint64(1), np.uint64(2))


def floors(x: torch.Tensor) -> dict[str, float]:
    """Seconds of what bounds every operator: reading, writing to new memory, copying, drawing a word each."""
    d, words, target = x.numel(), np.empty(4096, np.uint32), torch.empty(x.numel())
    return {
        "read": best_seconds(lambda: kernels_for(x).norms.largest(x, d)),
        "write": best_seconds(lambda: np.full(d, np.float32(1))),
        "copy": best_seconds(lambda: target.copy_(x)),
        "words": best_seconds(lambda: draw(words, -(-d // 4096))),
    }


def compare(d: int, only: list[str]) -> Iterator[dict[str, Any]]:
    """The goals: every operator beside its peer and its floor."""
    x = torch.randn(d, generator=torch.Generator().manual_seed(0))
    least = floors(x)
    yield {"floors_ns_per_coordinate": {name: round(1e9 * s / d, 3) for name, s in least.items()}, "d": d}
    for text, peer, *goals in GOALS:
        if not only or text.partition(":")[0] in only:
            yield beside(text, peer, goals, x, least)


def beside(
    text: str, peer: Peer, goals: Sequence[float | None], x: torch.Tensor, least: dict[str, float]
) -> dict[str, Any]:
    """One operator beside its peer; goals : ratios of encode and decode, then GB/s of both."""
    name, operator, d, key = text.partition(":")[0], parse(text), x.numel(), Key(0)
    message, (encode, decode) = operator.encode(x, key=key), peer
    theirs = encode(x)
    turns = (
        in_turns((lambda: operator.encode(x, key=key), lambda: encode(x)), SECONDS),
        in_turns((lambda: operator.decode(message, d=d, key=key), lambda: decode(theirs)), SECONDS),
    )
    record: dict[str, Any] = {"operator": text, "d": d, "bits_per_coordinate": round(message.bits / d, 5)}
    if name == "topk":
        record["bits_per_kept_value"] = round(message.bits / len(theirs[0]), 2)
    for i, side in enumerate(("encode", "decode")):
        ours_s, theirs_s = turns[i]
        ratio, interval = quotient(theirs_s, ours_s)
        record |= {
            f"{side}_GB_per_s": round(4e-9 * d / ours_s.min(), 2),
            f"{side}_goal_GB_per_s": goals[2 + i],
            f"{side}_over_peer": ratio,
            f"{side}_over_peer_interval": interval,
            f"{side}_turns": len(ours_s),
            f"{side}_goal_over_peer": goals[i],
            f"{side}_over_floor": round(float(ours_s.min()) / sum(least[part] for part in FLOORS[name][i]), 2),
        }
    return record


def records(dimensions: list[int], only: list[str]) -> Iterator[dict[str, Any]]:
    """All measurements, one after the other."""
    for d in dimensions:
        for text in specifications():
            if not only or text.partition(":")[0] in only:
                yield measure(text, d)


def main(
    d: tuple[int, ...] = (10**6, 10**7), only: tuple[str, ...] = (), peers: bool = False
) -> Iterator[dict[str, Any]]:
    """Measure every operator, or the goals beside the peers."""
    yield environment()
    yield from chain.from_iterable(compare(length, only) for length in d) if peers else records(d, only)
