"""A minimiser together with the symbolic proof that it is one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sympy as sp

from .. import symbols


class ProofFailed(ArithmeticError):  # noqa: N818  a name users are told to catch
    """A step of a symbolic derivation could not be confirmed."""


@dataclass(frozen=True)
class Derivation:
    """The unique positive minimiser of an objective, proved by sympy for positive values of all symbols.

    Parameters
    ----------
    objective : Expr
        What is minimised over ``variable`` > 0.
    variable : Symbol
        What the objective is minimised over.
    derivative : Expr
        With respect to the variable.
    curvature : Expr
        The second derivative, positive for every positive variable, so that the derivative has at most one zero and
        that zero is a minimum.
    minimiser : Expr or None, optional
        The zero, or None where it has no closed form; then the derivative was proved to change sign from negative (at
        0) to positive (at infinity).
    minimum : Expr or None, optional
        The objective there.
    """

    objective: sp.Expr
    variable: sp.Symbol
    derivative: sp.Expr
    curvature: sp.Expr
    minimiser: sp.Expr | None = None
    minimum: sp.Expr | None = None

    def latex(self) -> str:
        """Return the derivation as four aligned lines."""
        names = symbols.latex_names({self.variable} | self.objective.free_symbols)
        v = names[self.variable]
        f, slope, curvature = (
            sp.latex(part, symbol_names=names) for part in (self.objective, self.derivative, self.curvature)
        )
        if self.minimiser is None:
            last = rf"f'(0^+) &< 0 < f'(\infty) \Rightarrow {v}^* \text{{ is the only zero of }} f'"
        else:
            last = rf"{v}^* &= {sp.latex(self.minimiser, symbol_names=names)}"
        lines = (rf"f({v}) &= {f}\\", rf"f'({v}) &= {slope}\\", rf"f''({v}) &= {curvature} > 0\\", last)
        return "\n".join((r"\begin{aligned}", *lines, r"\end{aligned}"))


def unique_minimiser(
    objective: sp.Expr, variable: sp.Symbol, *, closed_form: bool = True, above_one: Collection[sp.Symbol] = ()
) -> Derivation:
    """Prove that an objective has exactly one positive minimiser.

    Parameters
    ----------
    objective : Expr
        In symbols of ``bounds.symbols``, all taken as positive.
    variable : Symbol
        What the objective is minimised over.
    closed_form : bool, optional
        Give the minimiser; otherwise prove only that it exists and is unique.
    above_one : collection of Symbol, optional
        Those taken as > 1.

    Raises
    ------
    ProofFailed
        Unless sympy recognises the second derivative as positive and finds the one zero (or the change of sign) of the
        first.
    """
    forward, back = _positive(objective, above_one)
    x = sp.Symbol(variable.name, positive=True)
    f = objective.subs(forward, simultaneous=True)
    slope, curvature = sp.simplify(f.diff(x)), sp.simplify(f.diff(x, 2))
    if not any(form.is_positive for form in (curvature, sp.expand(curvature), sp.factor(curvature))):
        raise ProofFailed(f"cannot see that the second derivative {curvature} is positive")
    parts = [f, slope, curvature]
    if closed_form:
        root = _single_root(slope, x)
        parts += [root, sp.expand(sp.powsimp(f.subs(x, root)))]
    elif not (_limit(slope, x, sp.S.Zero).is_extended_negative and _limit(slope, x, sp.oo).is_extended_positive):
        raise ProofFailed(f"cannot see that {slope} changes sign from negative to positive")
    f, slope, curvature, *closed = (part.subs(back, simultaneous=True) for part in parts)
    return Derivation(f, variable, slope, curvature, *closed)


def _single_root(slope: sp.Expr, x: sp.Symbol) -> sp.Expr:
    roots = sp.solve(slope, x)
    if len(roots) != 1 or sp.simplify(sp.factor(slope).subs(x, roots[0])) != 0 or not roots[0].is_positive:
        raise ProofFailed(f"expected one positive zero of {slope}; found {roots}")
    return roots[0]


def _limit(slope: sp.Expr, x: sp.Symbol, end: sp.Expr) -> sp.Expr:
    """Return the limit of the derivative at 0 (from the right) or at infinity."""
    return sp.limit(sp.expand(slope), x, end, dir="-" if end is sp.oo else "+")


def _positive(
    objective: sp.Expr, above_one: Collection[sp.Symbol]
) -> tuple[dict[sp.Symbol, sp.Expr], dict[sp.Symbol, sp.Expr]]:
    """Return substitutions to strictly positive symbols (a symbol above one is 1 plus a positive one) and back."""
    forward = {s: sp.Symbol(s.name, positive=True) for s in objective.free_symbols if s not in above_one}
    back: dict[sp.Symbol, sp.Expr] = {new: old for old, new in forward.items()}
    for s in above_one:
        surplus = sp.Symbol(f"{s.name}_minus_one", positive=True)
        forward[s], back[surplus] = 1 + surplus, s - 1
    return forward, back


@dataclass(frozen=True)
class PosynomialDerivation:
    """The unique positive minimiser of a sum of positive monomials, proved by strict convexity in the logarithms.

    Parameters
    ----------
    objective : Expr
        The sum.
    variables : tuple of Symbol
        What the objective is minimised over.
    terms : tuple of Expr
        The monomials.
    exponents : Matrix
        Their powers of the variables, one row each.  A sum of t_i exp(a_i . z) in z = log(variables) has the Hessian
        sum t_i a_i a_i^T, positive definite when the a_i span the space; the minimum exists when 0 is a strictly
        positive combination of the a_i (``weights``).
    weights : tuple of Rational
        Positive coefficients whose combination of the exponents vanishes.
    minimiser : dict of Symbol to Expr or None, optional
        The stationary point where it has a closed form, else None.
    """

    objective: sp.Expr
    variables: tuple[sp.Symbol, ...]
    terms: tuple[sp.Expr, ...]
    exponents: sp.Matrix
    weights: tuple[sp.Rational, ...]
    minimiser: dict[sp.Symbol, sp.Expr] | None = None

    def latex(self) -> str:
        """Return objective and minimiser as aligned lines."""
        names = symbols.latex_names(set(self.variables) | self.objective.free_symbols)
        arguments = ", ".join(names[v] for v in self.variables)
        lines = [rf"f({arguments}) &= {sp.latex(self.objective, symbol_names=names)}\\"]
        if self.minimiser is None:
            lines.append(rf"({arguments})^* &\text{{ is the only zero of }} \nabla f")
        else:
            lines += [rf"{names[v]}^* &= {sp.latex(e, symbol_names=names)}\\" for v, e in self.minimiser.items()]
        return "\n".join((r"\begin{aligned}", *lines, r"\end{aligned}"))


def unique_posynomial_minimiser(
    objective: sp.Expr, variables: tuple[sp.Symbol, ...], *, closed_form: bool = True
) -> PosynomialDerivation:
    """Prove that a sum of positive monomials (and a constant) has exactly one positive minimiser.

    Parameters
    ----------
    objective : Expr
        Sum of monomials in the symbols of ``bounds.symbols``.
    variables : tuple of Symbol
        What the objective is minimised over.
    closed_form : bool, optional
        Whether the minimiser is given too, not only its uniqueness.

    Raises
    ------
    ProofFailed
        If a term is not a positive monomial in the variables, or the closed form is not stationary.
        If the exponents do not span the space, or have no strictly positive combination that vanishes.
    """
    forward, back = _positive(objective, ())
    xs = [sp.Symbol(v.name, positive=True) for v in variables]
    expanded = sp.expand(objective.subs(forward, simultaneous=True))
    collected = sp.collect(expanded, list(_monomials(expanded, xs)), evaluate=False)
    terms = [(key, coefficient) for key, coefficient in collected.items() if key != 1]
    if not all(coefficient.is_positive for _, coefficient in terms):
        raise ProofFailed(f"not every coefficient of {collected} is positive")
    exponents = sp.Matrix([[key.as_powers_dict().get(x, 0) for x in xs] for key, _ in terms])
    weights = _vanishing_combination(exponents)
    if exponents.rank() < len(xs) or weights is None:
        raise ProofFailed(f"the exponents {exponents.tolist()} do not enclose the origin")
    solution = None
    if closed_form:
        solution = _stationary(expanded, xs)
        solution = {v: solution[x].subs(back, simultaneous=True) for v, x in zip(variables, xs, strict=True)}
    monomials = tuple((key * coefficient).subs(back, simultaneous=True) for key, coefficient in terms)
    return PosynomialDerivation(objective, variables, monomials, exponents, weights, solution)


def _monomials(expanded: sp.Expr, xs: list[sp.Symbol]) -> set[sp.Expr]:
    """Return the distinct parts of the terms that depend on the variables."""
    return {term.as_independent(*xs, as_Add=False)[1] for term in sp.Add.make_args(expanded)} - {sp.S.One}


def _vanishing_combination(exponents: sp.Matrix) -> tuple[sp.Rational, ...] | None:
    """Return strictly positive weights of rows that sum to zero: a sum of positive null vectors that covers
    every row.
    """
    null = exponents.T.nullspace()
    total = sum((v for v in null if min(v) >= 0), sp.zeros(exponents.rows, 1))
    return tuple(total) if min(total) > 0 else None


def _stationary(expanded: sp.Expr, xs: list[sp.Symbol]) -> dict[sp.Symbol, sp.Expr]:
    gradient = [expanded.diff(x) for x in xs]
    solutions = sp.solve(gradient, xs, dict=True)
    if len(solutions) != 1 or any(sp.simplify(g.subs(solutions[0])) != 0 for g in gradient):
        raise ProofFailed(f"expected one stationary point; found {solutions}")
    return solutions[0]
