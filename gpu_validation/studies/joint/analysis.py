"""What follows from the records of the ``joint`` study: bounds, times and bits to a loss, seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bounds import AssumptionViolated
from bounds.claims import Contractive
from bounds.theorems import pasgd_compressed_variable, pasgd_memory, pasgd_variable
from operators import ErrorFeedback, Feedback

from ...records.storage import Record
from ...verdicts.comparisons import NO_RANGE, mean_row, unjudged_row
from ...verdicts.simulation_agreement import agreement_rows
from ...verdicts.verdict import Comparison
from ...workloads import LogisticRegression
from .problems import (
    METHODS,
    STEP_S,
    TAU_0,
    WORKLOADS,
    Combination,
    Real,
    Virtual,
    dimension,
    gradient_limit,
    joint_bound,
)

TIME = "no theorem bounds the time to a loss; the joint bound is on the mean of |grad F|^2"
NO_G = "pasgd_memory needs E|g|^2 <= G^2 for every gradient, and those of a quadratic grow without bound"


def bound_row(unit: Virtual, record: Record, m: int, level: float) -> Comparison:
    """Return the theorem that covers the compressor, for the schedules that the runs had."""
    if isinstance(METHODS[unit.method], Feedback):
        return _memory_row(unit, record, m, level)
    values, bounds, about = _weighed(unit, record, m)
    if not all(map(math.isfinite, bounds)):
        words = "the learning-rate condition of the joint bound fails: eta L (1 + 2 omega tau/m) + ... > 1"
        return unjudged_row(values, words, **about)
    if len(set(bounds)) == 1:
        return mean_row(values, bounds[0], "upper", level=level, **about)
    return unjudged_row(values, NO_RANGE, **about)


def _memory_row(unit: Virtual, record: Record, m: int, level: float) -> Comparison:
    w, feedback = WORKLOADS[unit.problem], METHODS[unit.method]
    weights = _weights(record)
    values = (weights * [run["local_gradient2"] for run in record["runs"]]).tolist()
    about = {**described(unit), "quantity": "mean of |grad F|^2 over the steps, at the workers' own models"}
    if not isinstance(w, LogisticRegression):
        return unjudged_row(values, NO_G, theorem=pasgd_memory.name, **about)
    assert isinstance(feedback, ErrorFeedback)  # the only one here
    claim = feedback.operator.claim(dimension(w))
    assert isinstance(claim, Contractive)
    tau = TAU_0[unit.problem] if unit.tau is None else unit.tau  # the largest of the run
    done = [run["steps_done"] for run in record["runs"]]
    c = w.constants()
    arguments = {
        "gap": c.gap,
        "eta": w.eta,
        "L": c.L,
        "sigma2": c.sigma2,
        "tau": tau,
        "m": m,
        "K": math.floor(np.mean(done)),
    }
    G = gradient_limit(w, claim.alpha, tau, max(done))
    try:
        bound = float(pasgd_memory(**arguments, alpha=claim.alpha, G=G))
    except AssumptionViolated as error:
        return unjudged_row(values, str(error), theorem=pasgd_memory.name, **about)
    return mean_row(values, bound, "upper", level=level, theorem=pasgd_memory.name, **about)


def described(unit: Combination) -> dict[str, Any]:
    """Return the fields of a row that name the compressor, the problem and the schedule."""
    return {"operator": unit.method, "workload": f"{unit.problem}, {unit.title}", "tau": unit.tau}


def _weights(record: Record) -> np.ndarray:
    """Return every seed's number of steps over their mean."""
    steps = np.array([run["steps_done"] for run in record["runs"]], float)
    return steps / steps.mean()


def _weighed(unit: Virtual, record: Record, m: int) -> tuple[list[float], np.ndarray, dict[str, Any]]:
    """Return every seed's sum of ``|grad F|^2`` and bound on it, both over the seeds' mean number of steps.

    The number of steps and the schedule of AdaComm are random; what is bounded is the mean of the sum.
    """
    weights = _weights(record)
    values = weights * [run["gradient2"] for run in record["runs"]]
    bounds = weights * [joint_bound(unit.problem, unit.method, run["rounds"], m) for run in record["runs"]]
    theorem = pasgd_variable.name if unit.method == "whole" else pasgd_compressed_variable.name
    about = {**described(unit), "quantity": "mean of |grad F|^2 over the steps", "theorem": theorem}
    return values.tolist(), bounds, about


def seconds_to(run: Record, loss: float) -> float:
    """Return the time of the first recorded averaging at or below a loss; infinite if there is none."""
    return next((s for s, value in zip(run["seconds"], run["losses"], strict=True) if value <= loss), math.inf)


def time_rows(unit: Virtual, records: Mapping[Virtual, Record]) -> list[Comparison]:
    """Return how much faster, and with how many fewer bits, than synchronous SGD with whole messages."""
    synchronous = Virtual(unit.problem, "1", "whole")
    base = records.get(synchronous)
    if base is None or unit == synchronous:
        return []
    ratios, fewer = [], []
    for run, plain in zip(records[unit]["runs"], base["runs"], strict=True):
        target = plain["losses"][-1]
        reached = seconds_to(run, target)
        ratios.append(seconds_to(plain, target) / reached)
        fewer.append(plain["bits"][-1] / run["bits"][run["seconds"].index(reached)] if reached < math.inf else 0.0)
    about = described(unit)
    words = "synchronous whole messages' final loss"
    return [
        unjudged_row(ratios, TIME, quantity=f"times faster at {words}", **about),
        unjudged_row(fewer, TIME, quantity=f"times fewer bits at {words}", **about),
    ]


def real_rows(unit: Real, record: Record) -> list[Comparison]:
    """Return equal losses decide, seconds do not; AdaComm's decisions depend on the clock and are only shown."""
    if "compared" not in record:
        return []
    return agreement_rows(record, steps=record["steps_done"], step_s=STEP_S, **described(unit))
