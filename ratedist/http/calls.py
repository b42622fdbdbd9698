"""From a checked request to a plain answer; runs in the server for closed forms, in the worker process otherwise."""

from __future__ import annotations

from typing import Any

from ..calls import call_of
from ..calls.call import Route
from ..records import to_json


def route_of(name: str) -> Route:
    """Return the route of a call.  Raises KeyError if there is none."""
    call = call_of(name)
    if call is None or call.route is None:
        raise KeyError(name)
    return call.route


def answer(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON of one call, in which no name makes anything be imported.

    Raises
    ------
    ValueError
        For bad input.
    """
    from operators.outside import without_imports

    try:
        with without_imports():
            result: dict[str, Any] = to_json(route_of(name).answer(given))
    except ArithmeticError as failure:
        raise ValueError(f"the numbers are too extreme to compute with ({failure}): choose milder ones") from None
    return result


def prepare() -> None:
    """Import and derive what the process needs that computes the rest."""
    import operators

    operators.all_operators()
    problem = {"L": 1, "sigma2": 1, "eta": 0.1, "gap": 1, "time_s": 60, "bits": 0, "cluster": {"workers": 2}}
    answer("tau", problem)
    answer("error", problem | {"tau": 1})
    answer("plan", {"d": 1000, "cluster": {"workers": 2}, "operators": ["identity", "natural"], "target": 0.1})


def warm_up() -> None:
    """Import and derive what the closed forms need, so that no request waits for it."""
    for level in ("omega", "alpha"):
        answer("bits", {"d": 10, level: 0.5})
        for unknown in ("d", "bits", level):
            given = {"d": 10, "bits": 20, level: 0.5} | {unknown: None}
            answer("solve", given)
