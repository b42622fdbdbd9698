"""What a plan costs at the ends of what is known of L, sigma^2 and the gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from bounds import plan as planner
from bounds.estimate import Estimate

from .ranking import Choice


def of_estimates(
    choices: Sequence[Choice],
    choices_for: Callable[[planner.Smooth], list[Choice]],
    problem: planner.Smooth,
    uncertain: Mapping[str, Estimate],
    by: Literal["seconds", "error"],
) -> list[Choice]:
    """Return the choices at the values of estimates, with their cost at the ends of all intervals.

    Parameters
    ----------
    choices : sequence of Choice
        At the values.
    choices_for : callable
        From a problem to its choices.
    problem : Smooth
        At the values.
    uncertain : mapping of str to Estimate
        What is estimated.
    by : {"seconds", "error"}
        What choices cost.
    """
    costs = []
    for end in (_at_ends(problem, uncertain, "lo"), _at_ends(problem, uncertain, "hi")):
        costs.append([0.0] * len(choices) if end is None else [getattr(choice, by) for choice in choices_for(end)])
    names = ", ".join(uncertain)
    return [_of_uncertain(choice, cost, by, names) for choice, *cost in zip(choices, *costs, strict=True)]


def _at_ends(
    problem: planner.Smooth, uncertain: Mapping[str, Estimate], end: Literal["lo", "hi"]
) -> planner.Smooth | None:
    """Return the problem at one end of every estimate; None if L or gap is not positive there, so that nothing is to be
    done.

    Every theorem of the planner grows with L, sigma2 and gap, and so does the least over tau and eta.
    """
    ends: dict[str, Any] = {name: float(getattr(estimate.interval, end)) for name, estimate in uncertain.items()}
    if min(ends.get("L", 1.0), ends.get("gap", 1.0)) <= 0:
        return None
    return replace(problem, **ends | ({"sigma2": max(0.0, ends["sigma2"])} if "sigma2" in ends else {}))


def _of_uncertain(choice: Choice, between: Sequence[float], by: str, names: str) -> Choice:
    """Return the same, computed at the values of estimates: no theorem speaks for those.

    Parameters
    ----------
    between : sequence of float
        The cost at their ends, in what it is counted by.
    names : str
        Of what is estimated.
    """
    if not choice.feasible:
        return choice
    status = f"{choice.status} for true constants, not for assumed or estimated ones"
    first, *rest = choice.reasons
    low, high = between
    span = f"{by} from {low:.4g} to {high:.4g} over {names}, not known exactly"
    return replace(
        choice,
        status=status,
        cost_between=(low, high),
        reasons=(first.replace(f"({choice.status})", f"({status})", 1), span, *rest),
    )
