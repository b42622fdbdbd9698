"""Numbers of a cell's record that contradict other numbers of the same record.

Each rule is an identity or an inequality of what was measured twice: bits by message and by round, losses by round and
at the end, seconds by step and by round, payload and the bytes of TCP streams.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from .records import Training

SAME = 1e-5  # relative difference of a number that is computed twice in binary32
CLOCK = 1e-6  # relative difference of sums of the same seconds


def contradictions(record: Training) -> Iterator[str]:
    """Yield a sentence for each number that another one of the record rules out."""
    wrong_lengths = list(_lengths(record))
    yield from wrong_lengths
    if not wrong_lengths:
        yield from _bits(record)
        yield from _losses(record)
        yield from _accuracies(record)
        yield from _interface(record)
        yield from _seconds(record)


def _lengths(record: Training) -> Iterator[str]:
    """Yield a sentence for each list that has not one number per seed, round or step."""
    rounds, seeds = record.steps // record.tau, len(record.seeds)
    curve, timing = record.curve, record.timing
    numbers = {
        "gradient_norm2": (record.gradient_norm2, seeds, "seed"),
        "final_loss": (record.final_loss, seeds, "seed"),
        "local_gradient_norm2": (record.local_gradient_norm2, seeds if record.local_gradient_norm2 else 0, "seed"),
        "accuracy": (record.accuracy, seeds - record.virtual, "real seed"),
        "seconds of the curve": (curve.seconds, rounds, "round"),
        "codec_bits of the curve": (curve.codec_bits, rounds, "round"),
        "loss of the curve": (curve.loss, rounds, "round"),
        "round_s": (timing.round_s, rounds, "round"),
        "step_s": (timing.step_s, record.steps * record.processes, "step and rank"),
    }
    for name, (values, n, each) in numbers.items():
        if len(values) != n:
            yield f"{name} must have {n} numbers, one per {each}; got {len(values)}"


def _bits(record: Training) -> Iterator[str]:
    """Compare the bits of every round of the first seed with those of the messages and of all seeds."""
    bits, others = record.compression.bits, len(record.seeds) - record.virtual - 1
    least, most = record.processes * bits.low, record.processes * bits.high
    of_rounds = np.diff([0, *record.curve.codec_bits])
    outside = of_rounds[(of_rounds < math.floor(least)) | (of_rounds > math.ceil(most))]
    if outside.size:
        yield f"codec_bits of a round must be from {least:g} to {most:g}, as its messages; got {outside[0]:g}"
    total, rest = record.curve.codec_bits[-1], others * len(of_rounds)
    if not total + rest * least <= record.traffic.codec_bits <= total + rest * most:
        yield (
            f"codec_bits of the curve must be those of the cell less {others} further seeds of {rest} rounds; got "
            f"{total} of {record.traffic.codec_bits}"
        )


def _losses(record: Training) -> Iterator[str]:
    """Compare the last loss of the curve with that of its seed, and both norms where all workers are at the mean."""
    first, last = record.final_loss[0], record.curve.loss[-1]
    if not _same(first, last):
        yield f"the curve must end at the final loss {first} of the first seed; got {last}"
    if record.tau == 1:
        pairs = zip(record.gradient_norm2, record.local_gradient_norm2, strict=False)
        for i, (at_mean, at_workers) in enumerate(pairs):
            if not _same(at_mean, at_workers):
                yield (
                    f"local_gradient_norm2 must equal gradient_norm2 at tau = 1; got {at_workers} and {at_mean} for "
                    f"seed {record.seeds[i]}"
                )
                return


def _accuracies(record: Training) -> Iterator[str]:
    """Require accuracies to be shares of the held-out samples."""
    held_out = record.data.get("held_out", 0)
    for accuracy in record.accuracy:
        if accuracy is not None and held_out and not _whole(accuracy * held_out, held_out):
            yield f"accuracy must be a multiple of 1/{held_out}, the held-out samples; got {accuracy}"


def _interface(record: Training) -> Iterator[str]:
    """Compare the bytes of the interface with those of the TCP streams that it carries."""
    t = record.traffic
    if t.stream_bytes is not None and t.interface_bytes is not None and t.interface_bytes < t.stream_bytes:
        yield f"interface_bytes must be at least the stream_bytes {t.stream_bytes}; got {t.interface_bytes}"


def _seconds(record: Training) -> Iterator[str]:
    """Compare the seconds of rounds with those of the curve and of the first rank's steps, and steps with padding."""
    timing = record.timing
    ends = np.cumsum(timing.round_s)
    if not np.allclose(ends, record.curve.seconds, rtol=CLOCK, atol=0):
        yield f"seconds of the curve must be sums of round_s, {ends[-1]:.6g} at the end; got {record.curve.seconds[-1]}"
    steps = np.reshape(timing.step_s[: record.steps], (-1, record.tau)).sum(axis=1)
    if (np.array(timing.round_s) < steps * (1 - CLOCK)).any():
        yield "round_s must be at least the local steps of its round; got less"
    if min(timing.step_s) < timing.wanted_step_s * (1 - CLOCK):
        yield f"step_s must be at least the padding of {timing.wanted_step_s} s; got {min(timing.step_s)}"


def _same(one: float, other: float) -> bool:
    """Return whether two values of one number are equal up to rounding; values of a diverged run are."""
    return math.isclose(one, other, rel_tol=SAME) or not (math.isfinite(one) or math.isfinite(other))


def _whole(number: float, scale: float) -> bool:
    return abs(number - round(number)) <= SAME * scale
