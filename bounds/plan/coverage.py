"""Which theorems a plan rests on, and why it does not rest on the others."""

from __future__ import annotations

from ..catalogue import all_bounds
from ..properties import Conclusion
from ..provenance import Side, Status
from .conditioned import IN_TWO_SHOTS, conditioned_methods
from .local_updates import BY_THE_CLOCK

COVERED = "covered"
PROGRESS = {
    Conclusion.GRADIENT,
    Conclusion.LOCAL_GRADIENT,
    Conclusion.ROUND_GRADIENT,
    Conclusion.STEPS_TO_GRADIENT,
    Conclusion.STEPS_TO_LYAPUNOV,
    Conclusion.STEPS_TO_DISTANCE,
}
OTHER_FORM = "a plan uses another theorem for this method, whose constants its problem has"
NOT_OFFERED = "a plan offers no such method"


def coverage() -> dict[str, str]:
    """Return "covered" or the reason why not, for the name of every theorem."""
    from .. import theorems

    names = [name for name, bound in all_bounds().items() if getattr(theorems, name, None) is bound]
    return {name: _why(name) for name in names}


def _why(name: str) -> str:
    """Return why a plan does not rest on a theorem, or that it does."""
    bound = all_bounds()[name]
    used = {*BY_THE_CLOCK, *(by_time.name for by_time in BY_THE_CLOCK.values())}
    conditioned = conditioned_methods()
    if name in used | set(conditioned) | {IN_TWO_SHOTS[method] for method in conditioned if method in IN_TWO_SHOTS}:
        return COVERED if bound.status is not Status.RECALLED else "covered if recalled theorems are allowed"
    if bound.side is not Side.UPPER:
        return "it is no upper bound on progress"
    if bound.status is Status.RECALLED:
        return f"recalled: {bound.setting.known_up_to or 'not derived here'}"
    if bound.setting.concludes not in PROGRESS:
        return f"about another quantity: {bound.setting.concludes.words}"
    planned = set().union(*(all_bounds()[theorem].setting.needs for theorem in used))
    methods = {item for item in bound.setting.needs if item.kind == "method"}
    return OTHER_FORM if methods <= planned else NOT_OFFERED
