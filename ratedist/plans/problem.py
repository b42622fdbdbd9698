"""A problem's constants and curvature, and the value of a bound at them."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
import sympy as sp

import bounds  # of which the planner is imported at its first use: most calls plan nothing
from bounds import AssumptionViolated, Bound, Conclusion, Interval, NotCertifiable, Property, all_bounds, symbols
from bounds.estimate import Estimate, assumed
from bounds.provenance import Side
from bounds.symbols import NONNEGATIVE

from ..numbers import Number, Numbers, broadcast_shape, number, read, real, refusal
from ..records import Quantities, Quantity, Statement, number_text

# -- constants -----------------------------------------------------------------------------------------

Uncertain = Number | Estimate
"""One constant, known or estimated; a text such as "1.2:0.8:2" states an estimate."""
Uncertains = Numbers | Estimate
"""One constant, likewise, or several known ones."""

ASSUMED = 1.0  # what L, sigma2 and gap are taken to be where nothing was said
LEFT_OUT = "momentum, AdamW, clipping, schedules (numbers are for plain SGD)"
LEFT_OUT_OF_ROUNDS = "changes of the learning rate after the pilot"  # progress was measured
RESCALING = "scale it with sqrt(m) for m workers, with (tau - 1)^(-1/3) for long rounds (Theorem 1, wang2018)"
TEXT = "value:low:high or value:low:high:level"


def read_constants(
    given: Mapping[str, Any],
) -> tuple[dict[str, str | np.ndarray], dict[str, Estimate]]:
    """Return constants as exact texts or arrays, and those of them that are uncertain.

    None stands for an assumed value of 1, taken as known up to a factor of 10.  An ``Estimate``, or a text such as
    "1.2:0.8:2" (value, low, high and, if wished, the level .95), is an estimated one.  The texts hold their values.
    """
    uncertain = {name: estimate for name, value in given.items() if (estimate := uncertain_of(name, value)) is not None}
    values = {name: read(name, repr(uncertain[name].value) if name in uncertain else given[name]) for name in given}
    return values, uncertain


def uncertain_of(name: str, value: Any) -> Estimate | None:
    """Return the estimate that a constant is given as; None if it is known."""
    if value is None:
        return assumed(ASSUMED)
    if isinstance(value, Estimate):
        number(name, value.value)
        return value
    if isinstance(value, str) and ":" in value:
        return _parsed(name, value)
    return None


def _parsed(name: str, text: str) -> Estimate:
    parts = text.split(":")
    if len(parts) not in (3, 4):
        raise ValueError(f"an estimate of {name} must read {TEXT}; got {text[:64]}: write for example 1.2:0.8:2")
    middle, low, high = (float(Fraction(number(name, part))) for part in parts[:3])
    try:
        level = float(parts[3]) if len(parts) == 4 else 0.95
    except ValueError:
        level = math.nan
    if not (low <= middle <= high and 0 < level < 1):
        raise ValueError(
            f"an estimate of {name} must satisfy low <= value <= high and 0 < level < 1; got {text[:64]}: "
            "write for example 1.2:0.8:2"
        )
    return Estimate(middle, Interval(low, high), level)


def between(interval: Interval, uncertain: Mapping[str, Estimate]) -> str:
    """Return the interval of a result and what it is over, as a clause."""
    low, high = (number_text(float(end)) for end in (interval.lo, interval.hi))
    ends = f"{low} to {high}".replace("inf", "infinity (no theorem speaks there)")
    return f"From {ends} over {', '.join(uncertain)}, which are not known"


def in_words(uncertain: Mapping[str, Estimate]) -> tuple[str, ...]:
    """Return one line for the assumptions of a result, for each uncertain constant."""
    return tuple(_sentence(name, estimate) for name, estimate in uncertain.items())


def _sentence(name: str, found: Estimate) -> str:
    ends = f"{number_text(float(found.interval.lo))} to {number_text(float(found.interval.hi))}"
    if found.level == 0:
        return f"{name} = {found.value:g} is assumed, nothing was said; the interval is over {name} from {ends}"
    bias = f"; {found.bias}" if found.bias else ""
    return f"{name} = {found.value:g} is estimated, {ends} at level {found.level:g}{bias}"


def uncertain_statement(statement: Statement, uncertain: dict[str, Estimate]) -> Statement:
    """Return the same as an estimate if constants are uncertain: no theorem speaks for them."""
    if not uncertain:
        return statement
    status = f"{statement.status} for true constants, not for assumed or estimated ones"
    return replace(
        statement,
        side="estimate",
        status=status,
        assumptions=(*statement.assumptions, *in_words(uncertain)),
        assumed=(*not_said(uncertain), *statement.assumed),
    )


def not_said(uncertain: Mapping[str, Estimate]) -> tuple[str, ...]:
    """Return the constants that the caller did not state, with the value and the range that were taken."""
    return tuple(
        f"{name} = {each.value:g} ({each.interval.lo:g} to {each.interval.hi:g})"
        for name, each in uncertain.items()
        if each.level == 0
    )


# -- curvature -----------------------------------------------------------------------------------------

Curvature = Literal["convex"] | Number
"""Convex, or rho where every Hessian is >= -rho."""


def rho_of(curvature: Any) -> Fraction | None:
    """Return rho, 0 for convex; None if nothing was said.

    Raises
    ------
    ValueError
        For another word than convex, or a number that is not >= 0.
    """
    if curvature is None:
        return None
    if curvature == "convex":
        return Fraction(0)
    try:
        rho: Any = read("rho", curvature, NONNEGATIVE)
    except ValueError:
        rho = None
    if not isinstance(rho, str):
        raise ValueError(
            f'curvature must be "convex" or a number rho >= 0 with every Hessian >= -rho; got {curvature!r}'
        )
    return Fraction(rho)


def is_convex(curvature: Any) -> bool:
    """Return whether F was said to be convex, where no other curvature can be used.

    Raises
    ------
    ValueError
        For anything but None, convex and rho = 0.
    """
    rho = rho_of(curvature)
    if rho:
        raise ValueError(
            f'curvature = {curvature!r} has no theorem in a plan or with a compressor: give "convex", or leave it out '
            "(rd.tau_star takes any rho >= 0, and so does rd.error_bound without omega)"
        )
    return rho is not None


# -- the problem of a plan -----------------------------------------------------------------------------

CONDITION = 100
METHOD = "diana_distance"


def problem_of(known: dict[str, Any], **rest: Any) -> tuple[bounds.plan.Smooth | bounds.plan.Conditioned, str]:
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
    smooth = bounds.plan.Smooth(**{name: real(name, value) for name, value in texts.items()}, G=root, convex=convex)
    words = ", ".join(f"{name} = {value:g}" for name, value in _constants(smooth).items())
    return smooth, "; ".join((words, *["F is convex"] * convex, *in_words(uncertain)))


def _constants(problem: bounds.plan.Smooth) -> dict[str, float]:
    constants = {"L": problem.L, "sigma2": problem.sigma2, "gap": problem.gap}
    return constants if problem.G is None else {**constants, "G": problem.G}


def _conditioned(condition: Any, target: Any, time_s: Any, eta: Any) -> bounds.plan.Conditioned:
    if time_s is not None or eta is not None:
        raise ValueError(
            f"without L, sigma2 and gap the plan takes target only; got time_s = {time_s}, eta = {eta}: add those three"
        )
    if target is None or not real("target", target) < 1:
        raise refusal("target", "0 < target < 1", target)
    return bounds.plan.Conditioned(
        kappa=CONDITION if condition is None else real("condition", condition), method=METHOD
    )


# -- trivial bounds ------------------------------------------------------------------------------------


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


def vacuous_plan(problem: Any, option: bounds.plan.Option, target: float | None) -> str:
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
    if isinstance(problem, bounds.plan.Conditioned):
        return vacuous(error, 1.0, "the error at the start")
    return vacuous(error, *gradient_limit(problem.L, problem.gap, problem.G))


GAPS = frozenset({Conclusion.GAP, Conclusion.GAP_OF_AVERAGE, Conclusion.GAP_OF_WEIGHTED_AVERAGE})


def trivial_limit(bound: Bound, at: Mapping[str, str]) -> tuple[float, str] | None:
    """Return what holds without the method that an upper bound is about, and its name; None where nothing is known.

    Parameters
    ----------
    bound : Bound
        Of the catalogue.
    at : mapping of str to str
        Values of its symbols.
    """
    if bound.side is not Side.UPPER or bound.setting.known_up_to:
        return None
    value = {name: float(Fraction(text)) for name, text in at.items()}
    concludes = bound.setting.concludes
    if concludes is Conclusion.VOTE_ERROR:
        return 1.0, "the largest probability"
    if bound.unit != "1":
        return None
    if concludes is Conclusion.DISTANCE:
        return value["R0"] ** 2, "R0^2, the squared distance at the start"
    if concludes in GAPS and {"L", "R0"} <= value.keys():
        return value["L"] * value["R0"] ** 2 / 2, "L R0^2/2, which F - inf F does not exceed at the start"
    if "square_of_mean" in value:
        return value["square_of_mean"], "the error of an answer of zeros"
    if {"L", "gap"} <= value.keys():
        return gradient_limit(value["L"], value["gap"], value.get("G"))
    return None


# -- the value of a bound ------------------------------------------------------------------------------

MOST_POINTS = 10_000  # of an array of arguments that each need an integral
REMEDY_OUTSIDE = "the theorem says nothing there; change one of them"


def statement_of(bound: Bound, at: Mapping[str, Any], **said: Any) -> Statement:
    """Return what a Bound says, without its number.

    Parameters
    ----------
    **said
        Further fields of the statement.
    """
    function = partial(value_at, bound.name)
    return replace(_fixed_part(bound), at=dict(at), function=function, **said)


def value_at(theorem: str, **point: float) -> Any:
    """Return the float64 value of a Bound of the catalogue."""
    return all_bounds()[theorem](**point)


@lru_cache(maxsize=256)
def _fixed_part(bound: Bound) -> Statement:
    domains = (symbols.notation(s).domain.text(s.name) for s in bound.parameters)
    return Statement(
        quantity=bound.quantity,
        unit=bound.unit,
        side="estimate" if bound.setting.known_up_to else bound.side.value,
        theorem=bound.name,
        reference=str(bound.reference),
        status=bound.status.value,
        about=bound.setting.about(),
        needs=bound.setting.hypotheses(),
        assumptions=(*domains, *(relation_text(r) for r in bound.assuming), *filter(None, (bound.note,))),
        formula=bound.latex(),
    )


def require_setting(bound: Bound, setting: Iterable[str] | None, *implied: Property) -> None:
    """Refuse a bound whose hypotheses do not follow from what the caller says to hold.

    Parameters
    ----------
    setting : iterable of str or None
        Names of properties; None leaves the hypotheses to the reader, who sees them with the answer.
    *implied : Property
        What the call itself says.

    Raises
    ------
    ValueError
        For unknown names and for what is missing.
    """
    if setting is None:
        return
    given = [setting] if isinstance(setting, str) else list(setting)
    if lacking := bound.setting.missing([*given, *implied]):
        words = "; ".join(f"{hypothesis.words} ({hypothesis.name.lower()})" for hypothesis in lacking)
        raise ValueError(f"not covered: {bound.name} needs: {words}: add what holds to setting")


def relation_text(relation: sp.Basic) -> str:
    """Return a relation as it is typed: ``eta*L <= 1``."""
    return sp.sstr(relation)


def evaluate(bound: Bound, at: Mapping[str, Any]) -> Quantity | Quantities:
    """Return the value of a Bound; arguments are read as in ``numbers.read``.

    Raises
    ------
    ValueError
        For bad arguments and outside the assumptions.
    ArithmeticError
        Where no enclosure can be given.
    """
    return evaluate_read(bound, {name: read(name, value) for name, value in at.items()})


def evaluate_read(
    bound: Bound,
    given: Mapping[str, str | np.ndarray],
    said: Callable[[Mapping[str, str | np.ndarray]], Mapping[str, Any]] = lambda at: {},
) -> Quantity | Quantities:
    """Return the same for arguments that have been read already.

    Parameters
    ----------
    said : callable, optional
        Makes further fields of the statement from the arguments, when the statement is first read.
    """
    texts = {name: value for name, value in given.items() if isinstance(value, str)}
    if len(texts) == len(given):
        interval = enclose(bound, texts)

        def state() -> Statement:
            trivial = trivial_limit(bound, texts)
            empty = "" if trivial is None else vacuous(interval.midpoint, *trivial)
            return statement_of(bound, given, **{"facts": {"guarantee": empty} if empty else {}, **said(given)})

        return Quantity(interval.midpoint, statement=state, interval=interval)
    shape = broadcast_shape(dict(given))
    arrays = {name: float(Fraction(v)) if isinstance(v, str) else v for name, v in given.items()}
    with readable(bound):
        values = np.broadcast_to(bound(**arrays), shape).copy()

    def each(index: tuple[int, ...]) -> Quantity:
        point = {
            name: v if isinstance(v, str) else repr(float(np.broadcast_to(v, shape)[index]))
            for name, v in given.items()
        }
        element = evaluate_read(bound, point, said)
        assert isinstance(element, Quantity)
        return element

    return Quantities(values, statement=statement_of(bound, given, **said(given)), each=each)


def enclose(bound: Bound, at: Mapping[str, str]) -> Interval:
    """Return the enclosure at exact texts.

    Raises
    ------
    ValueError
        For arguments outside the assumptions or where there is no enclosure.
    """
    with readable(bound):
        return bound.enclose(**at)


class readable:  # noqa: N801  reads as a word after ``with``
    """Turns the errors of a Bound into sentences with a remedy."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, AssumptionViolated):
            raise ValueError(f"{error}: {REMEDY_OUTSIDE}") from None
        if isinstance(error, NotCertifiable):
            raise ValueError(
                f"{self.bound.name} cannot be certified at this point ({error}); "
                f"take the float value bounds.all_bounds()[{self.bound.name!r}](...) instead"
            ) from None
        if isinstance(error, TypeError) and str(error).startswith(self.bound.name):
            raise ValueError(f"{error}: give exactly these keywords") from None


def catalogue_bound(name: str) -> Bound:
    """Return a Bound by name.

    Raises
    ------
    ValueError
        For an unknown one, with the nearest names.
    """
    by_name = all_bounds()
    if name not in by_name:
        near = difflib.get_close_matches(str(name), by_name, 3, 0.6)
        remedy = f"try {' or '.join(near)}, or see" if near else "see"
        raise ValueError(f"theorem must be a name of the catalogue; got {name!r}: {remedy} ratedist certify --list")
    return by_name[name]


def spread(
    given: dict[str, Any], one: Callable[[dict[str, str]], Quantity], statement: Statement
) -> Quantity | Quantities:
    """Return a Quantity at texts, or Quantities over the broadcast arrays."""
    if all(isinstance(value, str) for value in given.values()):
        return one(given)
    shape = broadcast_shape(given)
    size = int(np.prod(shape))
    if size > MOST_POINTS:
        raise ValueError(f"at most {MOST_POINTS} points a call; got {size}: split it into several calls")

    by_index = {
        index: one(
            {n: v if isinstance(v, str) else repr(float(np.broadcast_to(v, shape)[index])) for n, v in given.items()}
        )
        for index in np.ndindex(shape)
    }
    values = np.array([float(result) for result in by_index.values()]).reshape(shape)
    return Quantities(values, statement=statement, each=by_index.__getitem__)
