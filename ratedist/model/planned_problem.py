"""The problem that a plan is for, from what its user knows of it."""

from __future__ import annotations

from typing import Any

from bounds import plan as planner

from ..numbers import real, refusal
from .constants import in_words, read_constants
from .curvature import is_convex

CONDITION = 100
METHOD = "diana_distance"


def problem_of(known: dict[str, Any], **rest: Any) -> tuple[planner.Smooth | planner.Conditioned, str]:
    """Return the problem that the arguments describe, and its assumptions in words.

    Parameters
    ----------
    known : dict
        L, sigma2 and gap, None where not given.
    **rest
        G, target, time_s, eta, condition and curvature, as in ``plan``.

    Raises
    ------
    ValueError
        For arguments that do not go together.
    """
    missing = [name for name, value in known.items() if value is None]
    if missing and len(missing) < len(known):
        raise ValueError(f"give all of L, sigma2 and gap, or none; missing: {', '.join(missing)}: add them")
    if missing and rest["curvature"] is not None:
        raise ValueError(
            f"curvature goes with L, sigma2 and gap; got curvature = {rest['curvature']!r}: without them F is strongly "
            "convex, leave it out"
        )
    if missing:
        conditioned = _conditioned(rest["condition"], rest["target"], rest["time_s"], rest["eta"])
        return conditioned, (
            f"epsilon = {rest['target']}, condition number L/mu = {conditioned.kappa:g} with L of every F_i and mu of "
            "F; a step computes one full local gradient"
        )
    convex = is_convex(rest["curvature"])
    if rest["condition"] is not None:
        raise ValueError(
            f"condition goes without L, sigma2 and gap; got condition = {rest['condition']}: drop one or the others"
        )
    root = None if rest["G"] is None else real("G", rest["G"])
    texts, uncertain = read_constants(known)
    smooth = planner.Smooth(**{name: real(name, value) for name, value in texts.items()}, G=root, convex=convex)
    words = ", ".join(f"{name} = {value:g}" for name, value in _constants(smooth).items())
    return smooth, "; ".join((words, *["F is convex"] * convex, *in_words(uncertain)))


def _constants(problem: planner.Smooth) -> dict[str, float]:
    constants = {"L": problem.L, "sigma2": problem.sigma2, "gap": problem.gap}
    return constants if problem.G is None else {**constants, "G": problem.G}


def _conditioned(condition: Any, target: Any, time_s: Any, eta: Any) -> planner.Conditioned:
    if time_s is not None or eta is not None:
        raise ValueError(
            f"without L, sigma2 and gap the plan takes target only; got time_s = {time_s}, eta = {eta}: add those three"
        )
    if target is None or not real("target", target) < 1:
        raise refusal("target", "0 < target < 1", target)
    return planner.Conditioned(kappa=CONDITION if condition is None else real("condition", condition), method=METHOD)
