"""Which compressor and how many local steps reach a target error first, or the lowest error within a time budget.

``plan`` is pure: candidates (name, claim, bits of a message) and a runtime model in, a ranking out.  A number in the
ranking is on the certified side: ``error`` is the upper end of an enclosure of the theorem's value at the returned
learning rate, tau and whole number of rounds.  It is at most the target if one was asked for.  The bounds are
worst-case; the seconds are the runtime model's means.  Floats are read as the decimals they print.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..bound import AssumptionViolated
from ..properties import Property
from ..runtime.model import RuntimeModel
from ..setting import properties
from ..tau.compressed import CompressedOptimum, compressed_optimum
from .conditioned import conditioned_methods, conditioned_option
from .local_updates import Search, theorems_for
from .records import Candidate, Conditioned, Infeasible, Option, Plan, Refused, Smooth, refuse_recalled, refuse_unmet


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
    setting: Iterable[Property | str] | None = None,
) -> Plan:
    """Rank compressors, each with its best learning rate and tau.

    Give either target (the error to reach, > 0; ranked by seconds) or time_s (the budget, > 0; ranked by error).

    Parameters
    ----------
    candidates : iterable of Candidate
        The operators to choose from.
    runtime : RuntimeModel
        Must hold m.
    problem : Smooth or Conditioned
        What is minimised, and what is known of it.
    target : float or None, optional
        Error to reach.
    time_s : float or None, seconds, optional
        Wall-clock budget, seconds; 0 < time_s.
    eta : float or None, optional
        Fixes the learning rate (of a Smooth problem).
    dense_bits : float or None, bits, optional
        Length of an uncompressed message; adds ``Plan.joint`` (Smooth problems).  RECALLED theorems need
        ``allow_recalled=True``.
    allow_recalled : bool, optional
        Whether theorems that were not verified count too.
    setting : iterable of Property or str or None, optional
        What is known of problem and gradients; then theorems that need more are refused.  The constants of the problem
        say that F is smooth, and so on; None takes for granted what the theorem needs.

    Raises
    ------
    Infeasible
        If no candidate is feasible.
    ValueError
        For wrong arguments.

    Notes
    -----
    For time_s the error is the mean over the rounds that end by then (of one at least), by a bound on E
    1/rounds.  Unbiased claims use ``pasgd_compressed``, at omega = 0 ``pasgd_iterations``, and with a second stage
    ``pasgd_two_shot``.  On a convex problem they use ``pasgd_convex_sharp`` at omega = 0, and else the better of
    ``pasgd_compressed`` and its convex form.  They need randomness that is independent between workers.  Contractive
    ones use ``qsparse``, whose error averages over the workers' own iterates and whose form never favours compression.
    tau is worst-case safe: smooth problems allow more (``tau.tau_smooth``).
    """
    _check_arguments(target, time_s, eta, problem)
    hypotheses = None if setting is None else properties(setting) | _said(problem)
    if not 0 < runtime.step.mean_s < math.inf:
        raise ValueError(
            f"plan needs a finite mean step time > 0; got {runtime.step.mean_s}: without it no tau is too large, "
            "give the mean seconds of a step"
        )
    options = [_option(c, runtime, problem, target, time_s, eta, allow_recalled, hypotheses) for c in candidates]
    feasible = sorted((o for o in options if o.feasible), key=lambda o: _criterion(o, target))
    if not feasible:
        raise Infeasible({o.name: o.reason for o in options} or {"candidates": "none was given"})
    cost = _criterion(feasible[0], target)[0]
    ranking = [replace(o, relative_cost=_criterion(o, target)[0] / cost if cost else 1.0) for o in feasible]
    joint = _joint(feasible[0], runtime, problem, dense_bits) if dense_bits is not None else None
    return Plan((*ranking, *(o for o in options if not o.feasible)), joint)


def _said(problem: Smooth | Conditioned) -> frozenset[Property]:
    """Return what the constants of a problem say."""
    if isinstance(problem, Conditioned):
        return frozenset({Property.SMOOTH, Property.STRONGLY_CONVEX})
    stated = {Property.SMOOTH, Property.BOUNDED_BELOW, Property.BOUNDED_VARIANCE}
    if problem.convex:
        stated.add(Property.CONVEX)
    return frozenset(stated if problem.G is None else stated | {Property.SECOND_MOMENT})


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
    known: frozenset[Property] | None,
) -> Option:
    try:
        if isinstance(problem, Conditioned):
            return conditioned_option(candidate, runtime, problem, float(target or 0), allow_recalled, known)
        theorems, constants = theorems_for(candidate.claim, problem, runtime.workers(), candidate.second)
    except (Refused, AssumptionViolated) as failure:
        return Option(candidate.name, feasible=False, reason=str(failure))
    options = []
    for theorem in theorems:
        try:
            refuse_recalled(theorem, allow_recalled)
            refuse_unmet(theorem, known)
            search = Search(candidate, theorem, constants, runtime, target, time_s, eta)
            with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
                options.append(search.certified(search.best()))
        except (Refused, AssumptionViolated) as failure:
            options.append(Option(candidate.name, feasible=False, reason=str(failure)))
    return min(options, key=lambda option: (not option.feasible, *_criterion(option, target)))


def _joint(best: Option, runtime: RuntimeModel, problem: Smooth | Conditioned, dense_bits: float) -> CompressedOptimum:
    """Return the ideal (tau, u) at the best option's rate and time, with the model's latency and transmission time."""
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
