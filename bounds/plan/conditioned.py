"""Cost of a candidate by a rate in the condition number, without local steps."""

from __future__ import annotations

import math

from .. import total_communication
from ..runtime.model import RuntimeModel
from .records import Candidate, Conditioned, Option, Refused, refuse_recalled


def conditioned_option(
    candidate: Candidate, runtime: RuntimeModel, problem: Conditioned, target: float, allow_recalled: bool
) -> Option:
    """The cost by a rate in the condition number, synchronous."""
    theorem = total_communication.methods()[problem.method]
    refuse_recalled(theorem, allow_recalled)
    try:
        level = total_communication.level_of(theorem, candidate.claim)
    except ValueError as failure:
        raise Refused(str(failure)) from None
    steps = math.ceil(
        theorem.enclose(kappa=str(problem.kappa), m=runtime.workers(), epsilon=str(target), omega=level).hi
    )
    seconds = steps * runtime.seconds_per_iteration(tau=1, bits=candidate.bits)
    return Option(
        name=candidate.name,
        feasible=True,
        theorem=theorem.name,
        status=theorem.status,
        tau=1,
        rounds=steps,
        steps=steps,
        seconds=seconds,
        bits=steps * candidate.bits,
        error=target,
    )


def conditioned_methods() -> list[str]:
    """Rates in the condition number and omega alone."""
    wanted = {"kappa", "m", "omega", "epsilon"}
    found = total_communication.methods().items()
    return [name for name, bound in found if {symbol.name for symbol in bound.parameters} == wanted]
