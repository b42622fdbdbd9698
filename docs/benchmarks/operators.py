"""Speed, size and distortion of every operator on Gaussian vectors, one thread, as JSON lines.

    python docs/measure.py benchmarks/operators.py [--d 1000000 10000000] [--only qsgd topk]
    python docs/measure.py benchmarks/operators.py --peers [--d 10000000]

Times are CPU time of the one thread, so that another process on the core does not count.  MB/s counts the
binary32 input.  With --peers every operator and its peer take turns, and the ratio of the medians has its 95 %
bootstrap interval.  The gap is the difference, in bits per coordinate, between the real message and the limit of the
operator's class at the measured distortion.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

# This file has the name of the package it measures: its own folder must be searched last.
import numba
import numpy as np
import torch
from comparing import in_turns, quotient
from messages import bits_and_nmse
from peers import GOALS, Peer

from bounds.claims import Contractive, Unbiased
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
    operator = parse(text)
    encode_s = best_seconds(lambda: operator.encode(x, key=key))
    message = operator.encode(x, key=key)
    decode_s = best_seconds(lambda: operator.decode(message, d=d, key=key))
    bits, nmse = bits_and_nmse(operator, x.numpy(), key)
    limit = limit_bits(operator, d, nmse)
    return {
        "operator": text,
        "d": d,
        "encode_MB_per_s": round(4e-6 * d / encode_s, 1),
        "decode_MB_per_s": round(4e-6 * d / decode_s, 1),
        "bits_per_coordinate": round(bits, 5),
        "nmse": float(f"{nmse:.5g}"),
        "claim": str(operator.claim(d)),
        "limit_bits_per_coordinate": None if limit is None else float(f"{limit:.5g}"),
        "gap_bits_per_coordinate": None if limit is None else round(bits - limit, 4),
    }


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


def compare(d: int, only: Sequence[str]) -> Iterator[dict[str, Any]]:
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


def main(
    d: tuple[int, ...] = (10**6, 10**7), only: tuple[str, ...] = (), peers: bool = False
) -> Iterator[dict[str, Any]]:
    """Measure every operator, or the goals beside the peers."""
    for length in d:
        if peers:
            yield from compare(length, only)
            continue
        for text in specifications():
            if not only or text.partition(":")[0] in only:
                yield measure(text, length)
