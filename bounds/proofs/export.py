"""Proofs as JSON, which any program can expand, and as Lean 4 text, which nobody here has compiled."""

from __future__ import annotations

import json
import re
from typing import Any

import sympy as sp

from .proof import Premise, Proof, Square, Vectors


def to_json(proof: Proof) -> str:
    """Return a proof as a JSON object: expressions are strings, inner products symbols of the form ``a_dot_b``.

    Parameters
    ----------
    proof : Proof
        The step to export.
    """
    return json.dumps(
        {
            "name": proof.name,
            "says": proof.says,
            "bounds": list(proof.bounds),
            "groups": [list(group) for group in proof.vectors.groups],
            "constant": _text(proof.constant),
            "times": _text(proof.times),
            "rest": _text(proof.rest),
            "premises": [{"weight": _text(p.weight), "slack": _text(p.slack), "why": p.why} for p in proof.premises],
            "squares": [
                {"weight": _text(s.weight), "form": {name: _text(value) for name, value in s.form.items()}}
                for s in proof.squares
            ],
            "shares": {symbol.name: _text(value) for symbol, value in proof.shares.items()},
        },
        indent=1,
    )


def from_json(text: str) -> Proof:
    """Return the proof that ``to_json`` wrote, to be expanded again.

    Parameters
    ----------
    text : str
        A JSON object.
    """
    data: dict[str, Any] = json.loads(text)
    return Proof(
        data["name"],
        data["says"],
        tuple(data["bounds"]),
        Vectors(tuple(tuple(group) for group in data["groups"])),
        _expression(data["constant"]),
        _expression(data["times"]),
        _expression(data["rest"]),
        tuple(Premise(_expression(p["weight"]), _expression(p["slack"]), p["why"]) for p in data["premises"]),
        tuple(
            Square(_expression(s["weight"]), {name: _expression(value) for name, value in s["form"].items()})
            for s in data["squares"]
        ),
        {_expression(name): _expression(value) for name, value in data["shares"].items()},
    )


def to_lean(proof: Proof) -> str:
    """Return a Lean 4 theorem over the reals whose tactic gets exactly the terms of the certificate.

    Parameters
    ----------
    proof : Proof
        The step to export.

    Notes
    -----
    The text was not compiled.  Squared lengths are hypotheses there, as inner products are plain variables.
    """
    claim = proof.constant * proof.times + proof.rest
    terms = [(p.weight, p.slack, f"premise{i}") for i, p in enumerate(proof.premises, 1)]
    terms += [(s.weight, sp.expand(proof.vectors.square(s.form)), f"square{i}") for i, s in enumerate(proof.squares, 1)]
    used = set(claim.free_symbols).union(*(w.free_symbols | slack.free_symbols for w, slack, _ in terms))
    weights = set[sp.Symbol]().union(*(w.free_symbols for w, _, _ in terms))
    variables = sorted({_lean(symbol) for symbol in used})
    lines = [f"-- {proof.says}", "-- Exported text: not compiled.", f"theorem {proof.name}"]
    lines.append(f"    ({' '.join(variables)} : ℝ)")
    for symbol in sorted(used, key=str):
        if symbol.is_positive or symbol in weights or _denominator(symbol, claim):
            lines.append(f"    (pos_{_lean(symbol)} : 0 {'<' if symbol.is_positive else '≤'} {_lean(symbol)})")
    lines += [f"    (weight{i} : 0 ≤ {_lean(w)})" for i, (w, _, _) in enumerate(terms, 1)]
    lines += [f"    ({name} : 0 ≤ {_lean(slack)})" for _, slack, name in terms]
    products = ", ".join(f"mul_nonneg weight{i} {name}" for i, (_, _, name) in enumerate(terms, 1))
    lines.append(f"    : 0 ≤ {_lean(claim)} := by")
    lines.append("  field_simp at *" if "/" in _lean(claim) else "  ring_nf at *")
    lines.append(f"  nlinarith [{products}]")
    return "\n".join(lines)


def _denominator(symbol: sp.Symbol, expression: sp.Expr) -> bool:
    return symbol in sp.denom(sp.together(expression)).free_symbols


def _text(expression: sp.Expr) -> str:
    return re.sub(r"<(\w+),(\w+)>", r"\1_dot_\2", str(expression))


def _lean(expression: sp.Expr) -> str:
    return _text(expression).replace("**", "^").replace("sqrt(", "Real.sqrt (")


def _expression(text: str) -> sp.Expr:
    """Parse an expression: every name is a symbol, nonnegative if it is a share."""
    names = set(re.findall(r"[A-Za-z_]\w*", text))
    table: dict[str, Any] = {}
    for name in names:
        pair = re.fullmatch(r"(\w+?)_dot_(\w+)", name)
        shown = f"<{pair[1]},{pair[2]}>" if pair else name
        table[name] = sp.Symbol(shown, real=True) if pair else sp.Symbol(name, nonnegative=True)
    return sp.sympify(text, locals=table)
