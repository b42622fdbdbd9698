"""Speed of TCDQ beside EDEN and a library's coder, and its gap to the limit by the number of states, as JSON lines.

    python docs/measure.py benchmarks/tcdq.py --speed 4000000 > docs/data/tcdq_speed.jsonl
    python docs/measure.py benchmarks/tcdq.py --gaps 1000000 > docs/data/tcdq_gaps.jsonl

Processor time of one thread; everything that is compared takes turns.  "over" is a ratio of medians, with its 95 %
bootstrap interval over the turns.  ``gap`` is R - log2(1 + 1/NMSE)/2, R the bits of the message a coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from comparing import in_turns, quotient
from messages import bits_and_nmse

from operators import EDEN, TCDQ, Key, Operator

SECONDS = 0.5  # of a call that is measured
PART = 10  # the library, which is slower, codes one of so many coordinates


def measured(calls: Mapping[str, Callable[[], object]]) -> dict[str, np.ndarray]:
    """Name -> processor seconds of its turns."""
    return dict(zip(calls, in_turns(list(calls.values()), SECONDS), strict=True))


def both_ways(name: str, operator: Operator, x: np.ndarray) -> dict[str, Callable[[], object]]:
    """Encoding and decoding a vector, by their names."""
    message = operator.encode(x, key=Key(1))
    return {
        f"{name}encode": lambda: operator.encode(x, key=Key(1)),
        f"{name}decode": lambda: operator.decode(message, d=x.size, key=Key(1)),
    }


def over(seconds: Mapping[str, np.ndarray], above: str, below: str, name: str) -> dict[str, Any]:
    """The ratio of two medians and its interval."""
    ratio, interval = quotient(seconds[above], seconds[below])
    return {name: ratio, f"{name}_interval": interval}


# -- speed -------------------------------------------------------------------------------------------------------
def speeds(d: int) -> Iterator[dict[str, Any]]:
    """TCDQ against a memory copy, EDEN, and a library's coder on the same symbols (of a part of them)."""
    x = np.random.default_rng(0).standard_normal(d).astype(np.float32)
    target = np.empty_like(x)
    for rate in (1.0, 2.0, 3.0, 4.0):
        operator = TCDQ.for_bits(rate)
        seconds = measured(
            both_ways("", operator, x)
            | both_ways("eden_", EDEN(bits_per_coordinate=int(rate)), x)
            | library(x[: d // PART], operator)
            | {"copy": lambda: np.copyto(target, x)}
        )
        counts = {name: d // PART if name.startswith("library") else d for name in seconds}
        ns = {name: 1e9 * float(np.median(own)) / counts[name] for name, own in seconds.items()}
        yield {
            "d": d,
            "rate": rate,
            "bits": round(operator.encode(x, key=Key(1)).bits / d, 4),
            **{f"{name}_ns": round(own, 2) for name, own in ns.items()},
            **over(seconds, "encode", "eden_encode", "encode_over_eden"),
            **over(seconds, "decode", "eden_decode", "decode_over_eden"),
        }


def library(x: np.ndarray, operator: TCDQ) -> dict[str, Callable[[], object]]:
    """Either way of constriction's coder, given the symbols, under one quantised Gaussian."""
    import constriction

    from operators.tcdq import codec
    from operators.tcdq.model import plan_of
    from operators.tcdq.trellis import seeds

    plan = plan_of(x.size, operator.omega, 8)
    k = (codec.quantised(x, plan, seeds(Key(1)))[1] >> 6).astype(np.int32)
    edge = int(np.abs(k).max()) + 1
    model = constriction.stream.model.QuantizedGaussian(-edge, edge, 0.5, plan.sigma)

    def encode() -> Any:
        coder = constriction.stream.stack.AnsCoder()
        coder.encode_reverse(k, model)
        return coder

    words = encode().get_compressed()
    return {
        "library_encode": encode,
        "library_decode": lambda: constriction.stream.stack.AnsCoder(words).decode(model, k.size),
    }


# -- gaps --------------------------------------------------------------------------------------------------------
def gap(operator: TCDQ, d: int, together: int = 4_000_000) -> tuple[float, float]:
    """Bits per coordinate above the limit at the measured error, and its standard error, from Gaussian vectors.

    Vectors and keys are none that the codes were chosen with.
    """
    gaps = []
    for draw in range(max(4, together // d)):
        x, key = np.random.default_rng([2026, draw]).standard_normal(d).astype(np.float32), Key(7, step=draw)
        bits, nmse = bits_and_nmse(operator, x, key)
        gaps.append(bits - math.log2(1 + 1 / nmse) / 2)
    return round(float(np.mean(gaps)), 4), round(float(np.std(gaps, ddof=1)) / math.sqrt(len(gaps)), 5)


def all_gaps(d: int) -> Iterator[dict[str, Any]]:
    """Gap of TCDQ on long and short vectors, and speed beside that of 8 states."""
    x = np.random.default_rng(0).standard_normal(d).astype(np.float32)
    for omega in (1.0, 1 / 3, 1 / 15, 1 / 255):
        operators = {states: TCDQ(omega=omega, states=states) for states in (8, 64, 128, 256)}
        calls: dict[str, Callable[[], object]] = {}
        for states, operator in operators.items():
            calls |= both_ways(f"{states} ", operator, x)
        seconds = measured(calls)
        for states, operator in operators.items():
            (long, error), (short, error_of_short) = gap(operator, d), gap(operator, 10_000, 1_000_000)
            yield {
                "states": states,
                "omega": round(omega, 5),
                "d": d,
                "gap": long,
                "standard_error": error,
                "gap_at_10000": short,
                "standard_error_at_10000": error_of_short,
                "encode_MB_per_s": round(4e-6 * d / float(np.median(seconds[f"{states} encode"]))),
                "decode_MB_per_s": round(4e-6 * d / float(np.median(seconds[f"{states} decode"]))),
                **over(seconds, f"{states} encode", "8 encode", "encode_over_8_states"),
            }


def main(speed: int = 0, gaps: int = 0) -> Iterator[dict[str, Any]]:
    """Speed beside EDEN and a library's coder; gap and speed with 8 to 256 states; at so many coordinates."""
    yield from speeds(speed) if speed else ()
    yield from all_gaps(gaps) if gaps else ()
