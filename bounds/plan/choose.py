"""Which compressor and how many local steps reach a target error first, or the lowest error within a time budget.

``plan`` is pure: candidates (name, claim, bits of a message) and a runtime model in, a ranking out.  A number in the
ranking is on the certified side: ``error`` is the upper end of an enclosure of the theorem's value at the returned
learning rate, tau and whole number of rounds, and is at most the target if one was asked for.  The bounds are
worst-case; the seconds are the runtime model's means.  Floats are read as the decimals they print.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..bound import AssumptionViolated
from ..runtime.model import RuntimeModel
from ..tau.compressed import CompressedOptimum, compressed_optimum
from .conditioned import conditioned_methods, conditioned_option
from .local_updates import Search, theorem_for
from .records import Candidate, Conditioned, Infeasible, Option, Plan, Refused, Smooth, refuse_recalled


def plan(
    candidates: Iterable[Candidate],
    *,
    runtime: RuntimeModel,
    problem: Smooth | Conditioned,
    target: float | None = None,
    time_s: float | None = None,
    eta: float | None = None,
    dense_bits: float | None = None,
    allow_recalled: bool = False,
) -> Plan:
    """Rank compressors, each with its best learning rate and tau.

    Give either target (the error to reach, > 0; ranked by seconds) or time_s (the budget, > 0; ranked by error).
    runtime : must hold m.  eta : fixes the learning rate (of a Smooth problem).  dense_bits : length of an
    uncompressed message; adds ``Plan.joint`` (Smooth problems).  RECALLED theorems need ``allow_recalled=True``.
    Unbiased claims use ``pasgd_compressed`` (``pasgd_iterations`` at omega = 0), which needs randomness that is
    independent between workers; contractive ones ``qsparse``, whose error averages over the workers' own iterates and
    whose form never favours compression.  tau is worst-case safe: smooth problems bear more (``tau.tau_smooth``).
    Raises Infeasible if no candidate is feasible, ValueError for wrong arguments.
    """
    _check_arguments(target, time_s, eta, problem)
    if not 0 < runtime.step.mean_s < math.inf:
        raise ValueError(f"plan needs a finite mean step time > 0; got {runtime.step.mean_s}")
    options = [_option(c, runtime, problem, target, time_s, eta, allow_recalled) for c in candidates]
    feasible = sorted((o for o in options if o.feasible), key=lambda o: _criterion(o, target))
    if not feasible:
        raise Infeasible({o.name: o.reason for o in options} or {"candidates": "none was given"})
    cost = _criterion(feasible[0], target)[0]
    ranking = [replace(o, relative_cost=_criterion(o, target)[0] / cost if cost else 1.0) for o in feasible]
    joint = _joint(feasible[0], runtime, problem, dense_bits) if dense_bits is not None else None
    return Plan((*ranking, *(o for o in options if not o.feasible)), joint)


def _criterion(option: Option, target: float | None) -> tuple[float, ...]:
    if target is not None:
        return option.seconds, option.bits, option.error
    return option.error, option.bits, option.seconds


def _check_arguments(
    target: float | None, time_s: float | None, eta: float | None, problem: Smooth | Conditioned
) -> None:
    if (target is None) == (time_s is None):
        raise ValueError(f"give either target or time_s; got target = {target}, time_s = {time_s}")
    for name, value in (("target", target), ("time_s", time_s), ("eta", eta)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} must be finite and > 0; got {name} = {value}")
    if isinstance(problem, Conditioned) and (target is None or not target < 1 or eta is not None):
        raise ValueError("a Conditioned problem takes target < 1 and neither time_s nor eta, which its theorem sets")
    if isinstance(problem, Conditioned) and problem.method not in conditioned_methods():
        raise ValueError(f"method must be one of {', '.join(conditioned_methods())}; got {problem.method!r}")
    if isinstance(problem, Smooth) and not (
        0 < problem.gap < math.inf and 0 < problem.L < math.inf and 0 <= problem.sigma2 < math.inf
    ):
        raise ValueError(f"a Smooth problem needs gap > 0, L > 0 and sigma2 >= 0, all finite; got {problem}")


def _option(
    candidate: Candidate,
    runtime: RuntimeModel,
    problem: Smooth | Conditioned,
    target: float | None,
    time_s: float | None,
    eta: float | None,
    allow_recalled: bool,
) -> Option:
    try:
        if isinstance(problem, Conditioned):
            return conditioned_option(candidate, runtime, problem, float(target or 0), allow_recalled)
        theorem, at = theorem_for(candidate.claim, problem, runtime.workers())
        refuse_recalled(theorem, allow_recalled)
        search = Search(candidate, theorem, at, runtime, target, time_s, eta)
        with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
            return search.certified(search.best())
    except (Refused, AssumptionViolated) as failure:
        return Option(candidate.name, feasible=False, reason=str(failure))


def _joint(best: Option, runtime: RuntimeModel, problem: Smooth | Conditioned, dense_bits: float) -> CompressedOptimum:
    """The ideal (tau, u) at the best option's rate and time, with the model's latency and transmission time."""
    if isinstance(problem, Conditioned) or best.eta is None or problem.sigma2 == 0:
        raise ValueError("dense_bits needs a Smooth problem with sigma2 > 0, on which tau and compression compete")
    latency_s = runtime.seconds_per_averaging(bits=0)
    return compressed_optimum(
        gap=problem.gap,
        eta=best.eta,
        L=problem.L,
        sigma2=problem.sigma2,
        m=runtime.workers(),
        time_s=best.seconds,
        step_s=runtime.step.mean_s,
        message_s=runtime.seconds_per_averaging(bits=dense_bits) - latency_s,
        latency_s=latency_s,
    )
