"""What holds without any step or message; a guarantee that is no better says nothing."""

from __future__ import annotations

from typing import Any

from bounds import plan as planner


def gradient_limit(L: float, gap: float, G: float | None = None) -> tuple[float, str]:
    """Return a limit of ``|grad F|^2`` that holds at the start, and its name.

    Parameters
    ----------
    L : float
        Smoothness constant of F; 0 < L.
    gap : float
        F(x_1) - inf F; 0 <= gap.
    G : float or None, optional
        Root of a bound on ``E|g|^2`` of every gradient.
    """
    start = 2 * L * gap
    if G is not None and start > G**2:
        return G**2, "G^2"
    return start, "2 L gap, which |grad F|^2 does not exceed at the start"


def vacuous(error: float, limit: float, name: str) -> str:
    """Return the words for an upper bound that is no better than what is trivial; empty if it is better.

    Parameters
    ----------
    error : float
        The upper bound.
    limit : float
        What holds anyway.
    name : str
        What that is, in words.
    """
    return "" if error < limit else f"says nothing: {error:.4g} is not below {limit:.4g} = {name}"


def vacuous_plan(problem: Any, option: planner.Option, target: float | None) -> str:
    """Return the words for a plan whose error, or target, is no better than the start; empty if it is.

    Parameters
    ----------
    problem : Smooth or Conditioned
        What is planned.
    option : Option
        A covered option.
    target : float or None
        The error that was asked for.
    """
    error = option.error if target is None else target
    if isinstance(problem, planner.Conditioned):
        return vacuous(error, 1.0, "the error at the start")
    return vacuous(error, *gradient_limit(problem.L, problem.gap, problem.G))
