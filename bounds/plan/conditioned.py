"""Cost of a candidate by a rate in the condition number, without local steps."""

from __future__ import annotations

import math

from .. import total_communication
from ..properties import Property
from ..runtime.model import RuntimeModel
from .records import Candidate, Conditioned, Option, Refused, refuse_recalled, refuse_unmet

DENSE_START = frozenset({"diana_distance"})  # theorems whose first round averages uncompressed gradients


def conditioned_option(
    candidate: Candidate,
    runtime: RuntimeModel,
    problem: Conditioned,
    target: float,
    allow_recalled: bool,
    setting: frozenset[Property] | None = None,
) -> Option:
    """Return the cost by a rate in the condition number, synchronous."""
    theorem = total_communication.methods()[problem.method]
    refuse_recalled(theorem, allow_recalled)
    refuse_unmet(theorem, setting)
    try:
        level = total_communication.level_of(theorem, candidate.claim)
    except ValueError as failure:
        raise Refused(str(failure)) from None
    steps = math.ceil(
        theorem.enclose(kappa=str(problem.kappa), m=runtime.workers(), epsilon=str(target), omega=level).hi
    )
    round_s = runtime.seconds_per_iteration(tau=1, bits=candidate.bits)
    seconds, bits = steps * round_s, steps * candidate.bits
    if theorem.name in DENSE_START and level > total_communication.SMALLEST:
        dense_s, dense_bits = _dense(runtime, problem)
        seconds += dense_s - runtime.seconds_per_averaging(bits=candidate.bits)
        bits += dense_bits - candidate.bits
    return Option(
        name=candidate.name,
        feasible=True,
        theorem=theorem.name,
        status=theorem.status,
        tau=1,
        rounds=steps,
        steps=steps,
        seconds=seconds,
        bits=bits,
        error=target,
    )


def _dense(runtime: RuntimeModel, problem: Conditioned) -> tuple[float, float]:
    """Return seconds and bits of the uncompressed averaging that the first round does."""
    if problem.dense_bits is None:
        raise ValueError(
            f"{problem.method} sends one uncompressed gradient; got dense_bits = None: give its length, 32 d bits"
        )
    if problem.dense_s is not None:
        return problem.dense_s, problem.dense_bits
    return runtime.seconds_per_averaging(bits=problem.dense_bits), problem.dense_bits


def conditioned_methods() -> list[str]:
    """Return rates in the condition number and omega alone."""
    arguments = {"kappa", "m", "omega", "epsilon"}
    methods = total_communication.methods().items()
    return [name for name, bound in methods if {symbol.name for symbol in bound.parameters} == arguments]
