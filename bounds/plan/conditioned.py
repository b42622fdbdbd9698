"""Cost of a candidate by a rate in the condition number, without local steps."""

from __future__ import annotations

import math

from .. import total_communication
from ..bound import Bound
from ..claims import Unbiased
from ..properties import Property
from ..runtime.model import RuntimeModel
from .records import UNBIASED_STAGES, Candidate, Conditioned, Option, Refused, refuse_recalled, refuse_unmet

IN_TWO_SHOTS = {"diana": "two_shot_diana", "diana_distance": "two_shot_diana_distance"}
DENSE_START = frozenset({"diana_distance", "two_shot_diana_distance"})  # the first round averages dense gradients


def conditioned_option(
    candidate: Candidate,
    runtime: RuntimeModel,
    problem: Conditioned,
    target: float,
    allow_recalled: bool,
    setting: frozenset[Property] | None = None,
) -> Option:
    """Return the cost by a rate in the condition number, synchronous."""
    theorem, levels = _theorem(candidate, problem.method)
    refuse_recalled(theorem, allow_recalled)
    refuse_unmet(theorem, setting)
    constants: dict[str, str | int] = {"kappa": str(problem.kappa), "m": runtime.workers(), "epsilon": str(target)}
    steps = math.ceil(theorem.enclose(**constants, **levels).hi)
    round_s = runtime.seconds_per_iteration(tau=1, bits=candidate.bits)
    seconds, bits = steps * round_s, steps * candidate.bits
    if theorem.name in DENSE_START and max(levels.values()) > total_communication.SMALLEST:
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


def _theorem(candidate: Candidate, method: str) -> tuple[Bound, dict[str, float]]:
    """Return the rate that covers a candidate, and its constants."""
    theorem = total_communication.methods()[method if candidate.second is None else IN_TWO_SHOTS.get(method, method)]
    if candidate.second is not None:
        if theorem.name == method or not isinstance(candidate.claim, Unbiased):
            raise Refused(UNBIASED_STAGES if theorem.name != method else f"{method} has no rate here in two shots")
        return theorem, {"omega1": candidate.claim.omega, "omega2": candidate.second.omega}
    try:
        return theorem, {"omega": total_communication.level_of(theorem, candidate.claim)}
    except ValueError as failure:
        raise Refused(str(failure)) from None


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
