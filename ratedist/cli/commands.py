"""What each command does: read options, call the Python function, choose how to show the record."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..api.bits import ABSENT
from ..api.codec import NUMBERS
from . import tables


@dataclass(frozen=True)
class Outcome:
    """The record for JSON, the renderable for the terminal, and whether the exit status is 0."""

    record: Any
    show: Any
    ok: bool = True


def _values(given: list[str] | None) -> Any:
    """One text, or a list of numbers."""
    if given is None:
        return None
    return given[0] if len(given) == 1 else given


def _sought(given: list[str] | None) -> Any:
    """For solve: absent, sought (no value), or values."""
    if given is None:
        return ABSENT
    return _values(given) if given else None


def cluster_of(options: argparse.Namespace) -> Any:
    """The Cluster of the cluster options."""
    from ..api.cluster import Cluster

    names = ("workers", "bandwidth_bit_per_s", "latency_s", "step_s", "compute", "topology")
    return Cluster(**{name: getattr(options, name) for name in names})


def _bits(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..api.bits import bits_lower_bound

    result = bits_lower_bound(d=_values(options.d), omega=_values(options.omega), alpha=_values(options.alpha))
    return Outcome(result, tables.quantity(result))


def _solve(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..api.bits import solve

    first = {name: _sought(getattr(options, name)) for name in ("d", "bits")}
    first = {name: None if value is ABSENT else value for name, value in first.items()}
    level = {name: _sought(getattr(options, name)) for name in ("omega", "alpha")}
    result = solve(**first, **level, theorem=options.theorem, setting=options.setting)
    return Outcome(result, tables.quantity(result))


def _runtime(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..api.training import runtime

    result = runtime(
        cluster_of(options), tau=_values(options.tau), bits=_values(options.bits), exchange=options.exchange
    )
    return Outcome(result, tables.quantity(result))


def _error(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..api.training import error_bound

    names = ("L", "sigma2", "eta", "gap", "tau", "time_s", "bits", "omega")
    given = {name: _values(getattr(options, name)) for name in names}
    result = error_bound(cluster=cluster_of(options), **given)
    return Outcome(result, tables.quantity(result))


def _tau(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..api.periods import tau_star

    names = ("L", "sigma2", "eta", "gap", "time_s", "bits", "third_derivative")
    result = tau_star(cluster=cluster_of(options), **{name: getattr(options, name) for name in names})
    return Outcome(result, tables.tau(result), result.cap is not None)


def _plan(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..api.planning import plan

    names = ("d", "operators", "target", "time_s", "L", "sigma2", "gap", "G", "eta", "condition")
    given = {name: getattr(options, name) for name in names}
    result = plan(cluster=cluster_of(options), **given, codec=_codec(options.codec), setting=options.setting)
    return Outcome(result, tables.ranking(result), result.ranking[0].feasible)


def _codec(given: list[str] | None) -> Any:
    """One word, one pair for all operators, or pairs by specification."""
    if given is None:
        return None
    named: dict[str, Any] = {}
    for text in given:
        specification, _, pair = text.rpartition("=")
        numbers = pair.split(",")
        if len(numbers) != 2 and not (len(given) == 1 and not specification):
            raise ValueError(f"codec must be ENCODE,DECODE or SPEC=ENCODE,DECODE; got {text!r}: as in qsgd:4=2e-9,1e-9")
        named[specification] = dict(zip(NUMBERS, numbers, strict=True)) if len(numbers) == 2 else pair
    if "" in named and len(given) > 1:
        raise ValueError(f"codec takes one pair for all operators or pairs by SPEC; got {' '.join(given)}: name each")
    return named.get("", named)


def _operators(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..api.operators import operators

    result = operators(d=options.d)
    return Outcome(result, tables.catalogue(result))


def _check(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..api.operators import check
    from .files import subject

    report = check(subject(options.subject), claim=_claim(options), budget=options.budget, seed=options.seed)
    record = {
        "subject": report.subject,
        "ok": report.ok,
        "seed": report.seed,
        "reproduce": report.reproduce,
        "verdicts": [{"law": v.law, "outcome": v.outcome.value, "text": v.text} for v in report.verdicts],
    }
    return Outcome(record, tables.report(report), report.ok)


def _claim(options: argparse.Namespace) -> Any:
    from bounds.claims import Contractive, Unbiased

    if options.omega is not None and options.alpha is not None:
        raise ValueError(f"claim omega or alpha, not both; got {options.omega} and {options.alpha}: drop one")
    if options.omega is not None:
        return Unbiased(options.omega)
    return None if options.alpha is None else Contractive(options.alpha)


def _certify(options: argparse.Namespace, rest: list[str]) -> Outcome:
    from bounds import all_bounds

    from ..api.bits import certify

    if options.list:
        rows = [
            {
                "theorem": name,
                "symbols": [s.name for s in b.parameters],
                "status": b.status.value,
                "says": b.quantity,
                "about": b.setting.about(),
                "needs": [hypothesis.name.lower() for hypothesis in b.setting.ordered()],
            }
            for name, b in all_bounds().items()
        ]
        return Outcome(rows, tables.theorems(rows))
    if options.theorem is None:
        raise ValueError(
            "certify needs a theorem; got none: name one, as in ratedist certify worst_case_bits, or --list"
        )
    result = certify(options.theorem, setting=options.setting, **_pairs(rest))
    return Outcome(result, tables.quantity(result))


def _pairs(rest: list[str]) -> dict[str, Any]:
    """Options that carry the names of a theorem's symbols, each with one value or several."""
    pairs: dict[str, list[str]] = {}
    name = None
    for word in rest:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            pairs[name] = [value] if equals else []
        elif name is None:
            raise ValueError(f"symbols are given as options; got {word!r}: write for example --alpha {word}")
        else:
            pairs[name].append(word)
    for name, values in pairs.items():
        if not values:
            raise ValueError(f"--{name} needs a value; got none: write --{name} 0.1")
    return {name: _values(values) for name, values in pairs.items()}


def _measure(options: argparse.Namespace, _: list[str]) -> Outcome:
    from operators import all_operators

    from ..api.measuring import finite_vector, measure
    from .files import gradient

    x = finite_vector(gradient(options.file))
    asked = options.operators or [cls.examples()[0] for cls in all_operators().values()]
    rows = [measure(operator, x, draws=options.draws, seed=options.seed) for operator in asked]
    record = {"file": options.file, "d": x.size, "draws": options.draws, "operators": rows}
    return Outcome(record, tables.measured(rows, x.size))


def _serve(options: argparse.Namespace, _: list[str]) -> Outcome:
    from ..http.serve import serve

    serve(host=options.host, port=options.port, allow_host=options.allow_host)
    return Outcome(None, None)


COMMANDS: dict[str, Callable[[argparse.Namespace, list[str]], Outcome]] = {
    "bits": _bits,
    "solve": _solve,
    "runtime": _runtime,
    "error": _error,
    "tau": _tau,
    "plan": _plan,
    "operators": _operators,
    "check": _check,
    "certify": _certify,
    "measure": _measure,
    "serve": _serve,
}
