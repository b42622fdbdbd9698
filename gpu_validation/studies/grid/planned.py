"""What the plan of a grid fixes in its records; where a record deviates from it, or contradicts itself.

Each rule on contradictions is an identity or an inequality of what was measured twice: bits by message and by round,
losses by round and at the end, seconds by step and by round, payload and the bytes of TCP streams.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from operators import Operator, specification

from ...records.compression import Compression, Declared, Sample
from ...records.storage import plain
from ...workloads import Constants, Workload
from .records import Cells, Design, Probe, Training
from .theory import covered

SAME = 1e-6  # relative difference of equal constants
NORM_LEVEL = 1e-9  # probability that the norms of honest Gaussian vectors are rejected, outside the budget of the run
PER_SEED = ("gradient_norm2", "final_loss", "local_gradient_norm2")


@dataclass(frozen=True)
class Planned:
    """What a unit's record must have.

    Parameters
    ----------
    fields : dict
        Fields of ``Probe`` or ``Training``.
    messages : dict
        Fields of its ``Compression``.
    n : int
        Number of its messages.
    step_s, delay_s : float, seconds, optional
        Padding of its local steps, and the imposed part of an averaging.
    """

    fields: Mapping[str, Any]
    messages: Mapping[str, Any]
    n: int
    step_s: float = 0.0
    delay_s: float = 0.0

    @classmethod
    def probe(cls, design: Design, operator: Operator, source: str) -> Self:
        """Return what the plan fixes of a probe.

        Parameters
        ----------
        design : Design
            Of the grid.
        operator : Operator
            Compressor that is probed.
        source : str
            Name of the source of its vectors.
        """
        messages = of_messages(operator, source, design.probe_d)
        return cls({"operator": specification(operator)}, messages, design.processes * design.probe_messages)

    @classmethod
    def training(cls, cells: Cells, operator: Operator, tau: int, processes: int) -> Self:
        """Return what the plan fixes of a cell.

        Parameters
        ----------
        cells : Cells
            Its workload, seeds and number of steps.
        operator : Operator
            Compressor of the movements.
        tau : int
            Local steps per round.
        processes : int
            Number of real ranks.
        """
        workload = cells.workload
        d = sum(p.numel() for p in workload.model().parameters())
        messages = of_messages(operator, f"round deltas of {workload.name}", d)
        simulated = cells.virtual_seeds if covered(messages["declared"]) else ()
        fields = {
            "workload": workload.name,
            "operator": specification(operator),
            "tau": tau,
            "processes": processes,
            "steps": cells.steps,
            "seeds": (*cells.seeds, *simulated),
            "virtual": len(simulated),
            "parameters": _parameters(workload),
            "exact_constants": _constants(workload).exact,
            "inexact_reason": _constants(workload).reason,
            "data": asdict(workload.description()),
            "problem": asdict(workload) if workload.description().synthetic else {},  # type: ignore[call-overload]
        }
        n = len(cells.seeds) * (cells.steps // tau) * processes
        return cls(fields, messages, n, cells.step_s, cells.delay_s)

    def deviations(self, record: Probe | Training) -> Iterator[str]:
        """Yield a sentence for each field that is not as planned, or that contradicts another one.

        Parameters
        ----------
        record : Probe or Training
            What was measured.
        """
        as_planned = True
        for of, fields in ((record, self.fields), (record.compression, self.messages)):
            for name, value in fields.items():
                if not _equal(getattr(of, name), value):
                    as_planned = False
                    yield f"{name} must be {value!r} as planned; got {getattr(of, name)!r}"
        if isinstance(record, Training) and as_planned:
            if not _equal(record.timing.wanted_step_s, self.step_s):
                yield f"wanted_step_s must be {self.step_s} as planned; got {record.timing.wanted_step_s}"
            if record.timing.delay_s.low < self.delay_s * (1 - SAME):
                yield f"delay_s must be at least {self.delay_s} as planned; got {record.timing.delay_s.low}"
            yield from contradictions(record)
        for name in ("bits", "ratio", "error_per_coordinate"):
            flaw = _flaw(getattr(record.compression, name), self.n)
            if flaw:
                yield f"{name} of the messages must have {flaw}"
        yield from _norms(record.compression)


def of_messages(operator: Operator, source: str, d: int) -> dict[str, Any]:
    """Return the fields of ``Compression`` that are known before anything is measured."""
    are_stated = operator.carried_bits(d) > 0
    declared = Declared.of(operator.claim(d), operator.codec_size(d), are_stated=are_stated)
    return {"source": source, "d": d, "declared": declared}


@lru_cache
def _constants(workload: Workload) -> Constants:
    return workload.constants()


def _parameters(workload: Workload) -> dict[str, float]:
    """Return numeric fields of the workload, and its constants under their names in the notation table."""
    constants = _constants(workload)
    numbers = {k: float(v) for k, v in asdict(workload).items() if isinstance(v, int | float)}  # type: ignore[call-overload]
    return {**numbers, "eta": workload.eta, "L": constants.L, "sigma2": constants.sigma2, "gap": constants.gap}


def _equal(value: Any, planned: Any) -> bool:
    """Return whether two values are equal, numbers up to rounding."""
    if isinstance(planned, dict):
        return value.keys() == planned.keys() and all(_equal(value[name], planned[name]) for name in planned)
    if isinstance(planned, float):
        return math.isclose(value, planned, rel_tol=SAME) or str(value) == str(planned)
    return bool(plain(value) == plain(planned))


def _flaw(sample: Sample, n: int) -> str:
    """Return what a sample of n draws must have and lacks; empty if nothing."""
    if sample.n != n:
        return f"{n} draws as planned; got {sample.n}"
    if sum(times for *_, times in sample.atoms) != n:
        return f"groups of {n} draws; got {sum(times for *_, times in sample.atoms)}"
    if (sample.low, sample.high) != (sample.atoms[0][0], sample.atoms[-1][1]):
        return f"the extremes of its groups; got {sample.low} and {sample.high}"
    if (sample.sd > SAME * abs(sample.mean)) != (sample.high - sample.low > SAME * abs(sample.mean) and n > 1):
        return f"a standard deviation that is 0 only for equal draws; got {sample.sd}"
    least, most = (sum(times * atom[end] for *atom, times in sample.atoms) / n for end in (0, 1))
    if not least - SAME * abs(least) <= sample.mean <= most + SAME * abs(most):
        return f"a mean from {least} to {most}, as its groups; got {sample.mean}"
    return ""


def _norms(c: Compression) -> Iterator[str]:
    """Yield a sentence if the two errors of synthetic vectors cannot be of the same vectors."""
    from scipy.stats import chi2

    if c.source not in ("gaussian", "flat"):
        return
    tail = NORM_LEVEL / (2 * c.bits.n)
    norms = (1.0, 1.0) if c.source == "flat" else (chi2.ppf(tail, c.d) / c.d, chi2.isf(tail, c.d) / c.d)
    least, most = (c.ratio.mean * norm for norm in norms)
    if not least * (1 - SAME) <= c.error_per_coordinate.mean <= most * (1 + SAME):
        yield (
            f"error_per_coordinate must have a mean from {least:.6g} to {most:.6g}, by the errors relative to the "
            f"norm; got {c.error_per_coordinate.mean:.6g}"
        )


ROUNDED = 1e-5  # relative difference of a number that is computed twice in binary32
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
    return math.isclose(one, other, rel_tol=ROUNDED) or not (math.isfinite(one) or math.isfinite(other))


def _whole(number: float, scale: float) -> bool:
    return abs(number - round(number)) <= ROUNDED * scale
