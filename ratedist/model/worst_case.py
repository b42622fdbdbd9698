"""The worst case beside a prediction: what theorems guarantee, against synchronous uncompressed training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bounds import plan

from .choosing import Asked, Way, choice_of
from .cluster import Cluster
from .codec import Codec
from .compressors import operator_of
from .planned_problem import problem_of
from .travel import DENSE_BITS

if TYPE_CHECKING:
    from operators import Operator

CERTIFIED_TARGET = 0.1


def worst_case(
    operator: Operator | None, codec: Codec | None, d: int, cluster: Cluster, exchange: Way, *, at_every_step: bool
) -> tuple[float | None, str]:
    """Return the ratio of seconds that theorems guarantee on any strongly convex problem, or why there is none.

    Parameters
    ----------
    operator : Operator or None
        The compressor; None without compression.
    codec : Codec or None
        Its seconds a coordinate.
    d : int
        Trained parameters.
    cluster : Cluster
        Workers and links.
    exchange : {"gather", "two_shot", "node_gather", "node_two_shot"}
        How compressed messages travel.
    at_every_step : bool
        Whether workers average after every step and wait for it.
    """
    if not at_every_step:
        return None, "no worst case: theorems for local steps need L, sigma^2 and a gap, which a pilot does not certify"
    if operator is None:
        return 1.0, "certified worst case: this is the synchronous training that it is compared with"
    nothing: dict[str, Any] = {"L": None, "sigma2": None, "gap": None}
    rest: dict[str, Any] = {"G": None, "time_s": None, "eta": None, "condition": None, "curvature": None}
    problem, _ = problem_of(nothing, target=CERTIFIED_TARGET, **rest)
    assert isinstance(problem, plan.Conditioned)
    dense_bits = DENSE_BITS * d
    problem = replace(problem, dense_bits=dense_bits, dense_s=cluster.averaging_s(dense_bits).midpoint)
    goal = {"target": CERTIFIED_TARGET, "time_s": None, "eta": None}
    asked = Asked(d, cluster, problem, goal, codec, None, exchange)
    choice, plainly = choice_of(operator, asked), choice_of(operator_of("identity"), asked)
    if not (choice.feasible and plainly.feasible and choice.seconds and plainly.seconds):
        return None, f"no worst case: {choice.reasons[0]}"
    return choice.seconds / plainly.seconds, (
        f"certified worst case, by {choice.theorem} with the claimed error of a message: full gradients of a strongly "
        f"convex F with L/mu = {problem.kappa:g}, to {CERTIFIED_TARGET:g} of the squared distance"
    )
