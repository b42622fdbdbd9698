"""Notation, bounds and operators as Markdown, made from the objects themselves and from recorded measurements."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import records
import sympy as sp
from api import class_page, classes
from citations import linked
from markdown_text import code, escape, eval_rst, formula, number, table

from bounds import (
    Bound,
    Claim,
    Conclusion,
    Contractive,
    NoClaim,
    Property,
    Side,
    Status,
    StrictlyContractive,
    Unbiased,
    all_bounds,
    symbols,
)
from bounds.catalogue import PACKAGES as CATALOGUE
from bounds.plan import coverage
from bounds.proofs import Proof, proofs_of
from bounds.setting import implied, never_above
from bounds.special.function import SpecialFunction
from bounds.symbols import Domain, Notation
from bounds.tau import TauStar
from gpu_validation import studies
from gpu_validation.studies import all_presets
from operators import Operator, Size, all_aggregates, all_feedbacks, all_operators, specification
from ratedist.cluster.other_names import OTHER_NAMES

SIDES = {Side.UPPER: "upper bound", Side.LOWER: "lower bound", Side.TIGHT: "equality"}
DIMENSION = 10_000  # where claims and sizes of the examples are stated


# -- notation ---------------------------------------------------------------------------------------------------
def notation_table() -> str:
    """Every symbol of every formula."""
    rows = [
        [_in_table(n.latex), code(name), escape(n.meaning), escape(n.unit), _in_table(domain_latex(n.domain, n.latex))]
        for name, n in _notation()
    ]
    return table(["symbol", "keyword", "meaning", "unit", "domain"], rows)


def _in_table(latex: str) -> str:
    """An inline formula without bars, which would end the cell of a table."""
    return "$" + latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ") + "$"


def _notation() -> Iterable[tuple[str, Notation]]:
    return symbols.TABLE.items()


def _domain(row: Notation) -> str:
    return f"${domain_latex(row.domain, row.latex)}$"


def domain_latex(domain: Domain, name: str) -> str:
    """The rule for one symbol, such as 0 < alpha < 1."""
    infinite = float("inf")
    left, right = ("<" if is_open else r"\le" for is_open in (domain.open_below, domain.open_above))
    below = "" if domain.lower == -infinite else f"{domain.lower:g} {left} "
    above = "" if domain.upper == infinite else f" {right} {domain.upper:g}"
    if domain.integer:
        return rf"{below}{name}{above},\ {name} \in \mathbb Z"
    return rf"{below}{name}{above}" if below or above else rf"{name} \in \mathbb R"


# -- entries ----------------------------------------------------------------------------------------------------
def entries() -> list[tuple[str, str]]:
    """(kind, name) of everything that has a page of its own."""
    kinds = {
        "bound": all_bounds(),
        "operator": all_operators(),
        "feedback": all_feedbacks(),
        "aggregate": all_aggregates(),
    }
    return [*((kind, name) for kind, members in kinds.items() for name in members), *(("class", n) for n in classes())]


def entry(kind: str, name: str) -> str:
    """The page of one of them."""
    match kind:
        case "bound":
            package = next(package for package in CATALOGUE if all_bounds()[name] in bounds_of(package))
            return bound_section(all_bounds()[name], package)
        case "operator":
            return _operator_section(name, all_operators()[name])
        case "class":
            return class_page(name)
    families: dict[str, dict[str, type]] = {"feedback": all_feedbacks(), "aggregate": all_aggregates()}
    return _family_section(kind, name, families[kind][name])


def _to_entry(kind: str, name: str) -> str:
    """A link to a page, at the place that the entry had when all of them were one page."""
    shown = name.replace("_", "_<wbr>")  # a name breaks after an underscore, and is copied whole
    text = f'<code class="docutils literal notranslate name">{shown}</code>'
    return f'<span id="{kind}-{name}"></span>[{text}](/reference/entries/{kind}-{name}.md)'


# -- bounds -----------------------------------------------------------------------------------------------------
def bounds_of(package: str) -> list[Bound]:
    """The bounds that a package exports, sorted by name."""
    return [bound for name, bound in all_bounds().items() if getattr(sys.modules[package], name, None) is bound]


def bound_overview(package: str) -> str:
    """One line for every bound."""
    rows = [[_to_entry("bound", b.name), escape(b.quantity), SIDES[b.side], b.status.value] for b in bounds_of(package)]
    return table(["name", "what is bounded", "side", "status"], rows)


def bound_section(bound: Bound, package: str) -> str:
    """One bound: the inequality, its symbols, assumptions, source, status, test points, and its derivation."""
    free = "" if bound.free is None else f"{code(bound.free.symbol.name)}: any value gives a bound; "
    facts = {
        "Says": f"{SIDES[bound.side]} on: {escape(bound.quantity)}, in {escape(_unit(bound.unit))}.",
        "About": f"{escape(bound.setting.about())}.",
        "Needs": _needs(bound),
        "Where": _functions(bound),
        "Holds for": _domains(bound),
        "Assuming": _assumptions(bound),
        "Source": _source(bound),
        "Status": f"{bound.status.value}; see [what a status means](status).",
        "Free parameter": free and f"{free}`.best()` finds the best.",
        "Note": escape(bound.note or ""),
        "Measured": records.looseness(bound.name),
    }
    body = "\n".join(f"{name}\n: {text}\n" for name, text in facts.items() if text)
    lines = [f".. py:data:: {package}.{bound.name}", "   :type: ~bounds.bound.Bound", "   :no-contents-entry:"]
    parts = (formula(bound.latex()), "", body, _test_points(bound), _derivation(bound), _steps(bound))
    return _page("bound", bound.name, eval_rst(lines), *parts)


def _page(kind: str, name: str, *parts: str) -> str:
    """A page with its label and its name as the title."""
    return "\n".join((f"({kind}-{name})=", f"# {code(name)}", "", *parts))


def _unit(unit: str) -> str:
    return {"1": "the unit of the bounded quantity", "s": "seconds"}.get(unit, f"{unit}s")


def _functions(bound: Bound) -> str:
    """The special functions of a formula: LaTeX, and the first sentence of its class."""
    names = symbols.latex_names(bound.parameters)
    first = {type(node): node for node in sorted(bound.value.atoms(SpecialFunction), key=str)}
    return "; ".join(
        f"${sp.latex(node, symbol_names=names)}$: {escape(sentence(kind))}"
        for kind, node in sorted(first.items(), key=lambda item: item[0].__name__)
    )


def sentence(kind: type) -> str:
    """What a special function is, in the words of its class."""
    return " ".join((kind.__doc__ or "").strip().split("\n\n")[0].split()).rstrip(".")


def _domains(bound: Bound) -> str:
    rows = [symbols.notation(symbol) for symbol in bound.parameters]
    if not rows:
        return ""
    return "; ".join(f"{code(r.symbol.name)}: {_domain(r)}" for r in rows) + ". See [notation](/reference/notation.md)."


def _needs(bound: Bound) -> str:
    """The hypotheses, each with its name for ``setting=``."""
    needs = (f"{escape(one.words)} ({code(one.name.lower())})" for one in bound.setting.ordered())
    return "; ".join(needs) + ". See [settings](/reference/settings.md)."


def property_table() -> str:
    """Every hypothesis: its name for ``setting=``, its words, and the single ones from which it follows."""
    rows = [
        [code(one.name.lower()), one.kind, escape(one.words), ", ".join(code(p.name.lower()) for p in _stronger(one))]
        for one in Property
    ]
    return table(["name", "about the", "words", "follows from"], rows)


def _stronger(one: Property) -> list[Property]:
    return [other for other in Property if other is not one and one in implied(frozenset({other}))]


def conclusion_table() -> str:
    """Every bounded quantity, and those that are never below it in the same situation."""
    rows = [
        [escape(one.words), "; ".join(escape(c.words) for c in Conclusion if c is not one and never_above(one, c))]
        for one in Conclusion
    ]
    return table(["quantity", "never above"], rows)


def _assumptions(bound: Bound) -> str:
    names = symbols.latex_names(bound.parameters)
    return "; ".join(f"${sp.latex(relation, symbol_names=names)}$" for relation in bound.assuming)


def _source(bound: Bound) -> str:
    reference = bound.reference
    if reference.key == "ratedist":
        return f"derived here: {escape(reference.where)}"
    where = escape(reference.where) + " " if reference.where else ""
    return f"{where}{{cite:p}}`{reference.key}`"


def _test_points(bound: Bound) -> str:
    rows = [
        [", ".join(f"{name} = {value}" for name, value in example.at.items()), example.value, escape(example.source)]
        for example in bound.examples
    ]
    return dropdown("Independent values that the tests compare with", table(["at", "value", "how computed"], rows))


def _derivation(bound: Bound) -> str:
    return dropdown(
        "Statement and derivation, as they stand in the code",
        eval_rst(linked(derivations()[bound.name], "bounds").splitlines()),
    )


def _steps(bound: Bound) -> str:
    """The steps of a derivation that a machine expands to zero."""
    lines = [_step(proof) for proof in proofs_of(bound.name)]
    if not lines:
        return ""
    text = "Each claim is the sum of its premises and squares with these weights (`bounds.proofs`).\n\n"
    return dropdown("Steps that a machine expands to zero", text + "\n".join(lines))


def _step(proof: Proof) -> str:
    parts = [f"{code(str(premise.weight))} times {escape(premise.why)}" for premise in proof.premises]
    parts += [f"{code(str(square.weight))} times {code(_vector(square.form))}" for square in proof.squares]
    return f"* {code(proof.name)}: {code(proof.says)}. {'; '.join(parts) or 'An equality'}."


def _vector(form: Mapping[str, sp.Expr]) -> str:
    return f"|{' + '.join(f'({value}) {name}' for name, value in form.items())}|^2"


@lru_cache(maxsize=1)
def derivations() -> dict[str, str]:
    """Name of a bound -> the text below it in its file.

    Bounds in a row share the text below the last of them, or that of the file if nothing follows.
    """
    found: dict[str, str] = {}
    for package in CATALOGUE:
        for path in sorted(Path(import_module(package).__file__ or "").parent.glob("[!_]*.py")):
            waiting: list[str] = []
            tree = ast.parse(path.read_text())
            for node in tree.body[1:]:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    waiting += [name for name in [node.targets[0].id] if name in all_bounds()]
                elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                    found |= dict.fromkeys(waiting, inspect.cleandoc(node.value.value))
                    waiting = []
            found |= dict.fromkeys(waiting, ast.get_docstring(tree) or "")
    return found


def dropdown(title: str, content: str) -> str:
    """A part that is folded away at first."""
    return f"::::{{dropdown}} {title}\n{content}\n::::\n"


def status_table() -> str:
    """How many bounds have which status."""
    counts = {status: sum(b.status is status for b in all_bounds().values()) for status in Status}
    return table(["status", "bounds"], [[status.value, str(count)] for status, count in counts.items()])


def plan_table() -> str:
    """Which theorems a plan rests on, and why it does not rest on the others."""
    rows = [[f"[{code(name)}](#bound-{name})", escape(why)] for name, why in coverage().items()]
    return table(["theorem", "in a plan"], rows)


def formula_of(name: str) -> str:
    """The inequality of one bound, for a page that explains it."""
    return formula(all_bounds()[name].latex())


def assumption_of(name: str) -> str:
    """What one bound assumes beyond the domains of its symbols."""
    bound = all_bounds()[name]
    names = symbols.latex_names(bound.parameters)
    return formula(r",\quad ".join(sp.latex(relation, symbol_names=names) for relation in bound.assuming))


def bound_value(name: str, **at: str) -> str:
    """The value of one bound at one exact point."""
    return number(float(all_bounds()[name].enclose(**{k: Fraction(v) for k, v in at.items()}).midpoint), 3)


def tau_star_formula() -> str:
    """The minimiser of the error-runtime bound."""
    return formula(TauStar.latex())


# -- experiments ------------------------------------------------------------------------------------------------
def experiments() -> str:
    """Every experiment of gpu-validation, in the words of its module."""
    parts = []
    for name, preset in all_presets().items():
        parts += [
            f"## {code(name)}",
            "",
            f"About {number(preset.minutes, 2)} minutes on two cores: {escape(preset.description)}.",
            "",
            eval_rst(linked((_homes_of_presets()[name].__doc__ or "").strip(), "gpu_validation").splitlines()),
        ]
    return "\n".join(parts)


def _homes_of_presets() -> dict[str, Any]:
    """Name of an experiment -> the module that describes it: that of its class, or that in which a grid stands."""
    modules = [import_module(f"{studies.__name__}.{info.name}") for info in iter_modules(studies.__path__)]
    presets = {module.PRESET.name: (module.PRESET, module) for module in modules if hasattr(module, "PRESET")}
    return {
        name: module if isinstance(preset, studies.Preset) else sys.modules[type(preset).__module__]
        for name, (preset, module) in presets.items()
    }


# -- operators --------------------------------------------------------------------------------------------------
def operator_overview() -> str:
    """One line for every operator: class and constants of its first example, message length."""
    rows = []
    for name, cls in all_operators().items():
        example = cls.examples()[0]
        rows.append([_to_entry("operator", name), *_stated(example)])
    return table(["name", "for example", *STATED], rows)


STATED = (f"class at d = {DIMENSION:,}", "bits per coordinate")


def _stated(operator: Operator) -> list[str]:
    """What an instance says of itself: specification, class and length."""
    claim, size = operator.claim(DIMENSION), operator.bits(DIMENSION)
    return [code(specification(operator)), claim_text(claim), size_text(size)]


def _operator_section(name: str, cls: type[Operator]) -> str:
    stated = table(["specification", *STATED], [_stated(example) for example in cls.examples()])
    parts = [_described(cls, name, "examples, name, randomness, sources"), stated]
    parts += [_symmetries(cls.examples()[0]), ""]
    if measured := records.operator_rows(name):
        parts += ["Measured on Gaussian input:", "", measured]
    return _page("operator", name, *parts)


def _described(cls: type, name: str, without: str) -> str:
    """Summary, other names and the documentation of a class."""
    options = ["   :members:", f"   :exclude-members: {without}"]
    documented = eval_rst([f".. autoclass:: operators.{cls.__name__}", *options])
    return "\n".join((escape(summary(cls)), "", *_other_names(name), documented))


def _other_names(name: str) -> list[str]:
    """A line with the names of a compressor in papers and libraries, or of near relatives, for the search."""
    names = OTHER_NAMES.get(name)
    return [f"Also searched as: {escape(', '.join(names))}.", ""] if names else []


def _symmetries(operator: Operator) -> str:
    """Randomness and symmetries of an instance."""
    commutes = ", ".join(sorted(operator.equivariant)) or "nothing that is tested"
    return f"Randomness: {operator.randomness}. Commutes with: {commutes}."


def summary(cls: type) -> str:
    """The first line of the module of a class."""
    return (sys.modules[cls.__module__].__doc__ or "").strip().splitlines()[0]


def claim_text(claim: Claim) -> str:
    """A claim in words and one number."""
    match claim:
        case NoClaim():
            return f"none: {escape(claim.reason)}"
        case Unbiased():
            text = rf"unbiased, $\omega = {number(claim.omega, latex=True)}$"
        case StrictlyContractive():
            text = rf"strictly contractive, $\alpha = {number(claim.alpha, latex=True)}$"
        case Contractive():
            text = rf"contractive, $\alpha = {number(claim.alpha, latex=True)}$"
    return text + (", equality" if claim.tight else "")


def size_text(size: Size) -> str:
    """Bits per coordinate, whichever of the three lengths is known."""
    if size.exact is not None:
        return number(size.exact / DIMENSION)
    parts = []
    if size.expected_upper is not None:
        parts.append(f"expected at most {number(size.expected_upper / DIMENSION)}")
    if size.worst_case is not None and size.worst_case != size.expected_upper:
        parts.append(f"at most {number(size.worst_case / DIMENSION)}")
    return ", ".join(parts) or "not bounded"


def family_overview(kind: str) -> str:
    """One line for every feedback method, or for every aggregation."""
    families: dict[str, dict[str, type]] = {"feedback": all_feedbacks(), "aggregate": all_aggregates()}
    rows = [[_to_entry(kind, name), escape(summary(cls))] for name, cls in families[kind].items()]
    return table(["name", "what it is"], rows)


def _family_section(kind: str, name: str, cls: type) -> str:
    return _page(kind, name, _described(cls, name, "name, sources"))
