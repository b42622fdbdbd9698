"""What the plan of a grid fixes in its records, and where a record deviates from it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Self

from operators import Operator, specification

from ...records.compression import Compression, Declared
from ...records.sample import Sample
from ...records.storage import plain
from ...workloads import Constants, Workload
from .contradictions import contradictions
from .records import Probe, Training
from .spec import Cells, Design
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
