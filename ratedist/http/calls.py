"""From a checked request to a plain answer; runs in the server for closed forms, in the worker process otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..records import to_json

MOST_DIMENSION = 10**12


def _cluster(given: dict[str, Any]) -> dict[str, Any]:
    from ..api.cluster import Cluster

    return {**given, "cluster": Cluster(**given["cluster"])}


def _bits(given: dict[str, Any]) -> Any:
    from ..api.bits import bits_lower_bound

    return bits_lower_bound(**given)


def _solve(given: dict[str, Any]) -> Any:
    from ..api.bits import solve

    return solve(**given)


def _runtime(given: dict[str, Any]) -> Any:
    from ..api.training import runtime

    return runtime(**_cluster(given))


def _error(given: dict[str, Any]) -> Any:
    from ..api.training import error_bound

    return error_bound(**_cluster(given))


def _tau(given: dict[str, Any]) -> Any:
    from ..api.periods import tau_star

    return tau_star(**_cluster(given))


def _plan(given: dict[str, Any]) -> Any:
    from ..api.planning import plan
    from ..numbers import refusal, whole

    if whole("d", given["d"]) > MOST_DIMENSION:
        raise refusal("d", f"d <= {MOST_DIMENSION} over HTTP", given["d"])
    return plan(**_cluster(given))


def _certify(given: dict[str, Any]) -> Any:
    from ..api.bits import certify

    return certify(given["theorem"], setting=given.get("setting"), **given["at"])


def _operators(given: dict[str, Any]) -> Any:
    from ..api.operators import operators

    return operators(**given)


def _theorems(given: dict[str, Any]) -> Any:
    from bounds import all_bounds

    return {
        "theorems": [
            {
                "theorem": name,
                "symbols": [symbol.name for symbol in bound.parameters],
                "status": bound.status.value,
                "side": bound.side.value,
                "quantity": bound.quantity,
                "about": bound.setting.about(),
                "needs": {hypothesis.name.lower(): hypothesis.words for hypothesis in bound.setting.ordered()},
                "formula": bound.latex(),
            }
            for name, bound in all_bounds().items()
        ]
    }


def _gap(given: dict[str, Any]) -> Any:
    from ..api.measuring import gap

    return gap(given["op"], [float(v) for v in given["x"]], **{k: given[k] for k in given.keys() & {"draws", "seed"}})


def _check(given: dict[str, Any]) -> Any:
    from ..api.operators import check

    report = check(given["op"], budget="quick", seed=given.get("seed"))
    verdicts = [{"law": v.law, "outcome": v.outcome.value, "text": v.text} for v in report.verdicts]
    return {"subject": report.subject, "ok": report.ok, "seed": report.seed, "verdicts": verdicts}


CALLS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "bits": _bits,
    "solve": _solve,
    "runtime": _runtime,
    "error": _error,
    "tau": _tau,
    "plan": _plan,
    "certify": _certify,
    "operators": _operators,
    "theorems": _theorems,
    "gap": _gap,
    "check": _check,
}


def answer(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The JSON of one call, in which no name makes anything be imported.  Raises ValueError for bad input."""
    from operators.outside import without_imports

    try:
        with without_imports():
            result: dict[str, Any] = to_json(CALLS[name](given))
    except ArithmeticError as failure:
        raise ValueError(f"the numbers are too extreme to compute with ({failure}): choose milder ones") from None
    return result


def is_closed_form(name: str, given: dict[str, Any]) -> bool:
    """Whether the answer takes well below a millisecond: scalars in a formula without search or quadrature."""
    if any(isinstance(value, list) for value in given.values()):
        return False
    return name == "bits" or (name == "solve" and given.get("theorem") is None)


def prepare() -> None:
    """Import and derive what the process needs that computes the rest."""
    import operators

    operators.all_operators()
    problem = {"L": 1, "sigma2": 1, "eta": 0.1, "gap": 1, "time_s": 60, "cluster": {"workers": 2}}
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
