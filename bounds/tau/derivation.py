"""A minimiser together with the symbolic proof that it is one."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from .. import symbols


class ProofFailed(ArithmeticError):  # noqa: N818  a name users are told to catch
    """A step of a symbolic derivation could not be confirmed."""


@dataclass(frozen=True)
class Derivation:
    """The unique positive minimiser of an objective, proved by sympy for positive values of all symbols.

    objective : what is minimised over ``variable`` > 0.  derivative : with respect to the variable.
    minimiser : its only positive zero.  curvature : the second derivative, positive for every positive variable,
    so that the zero is unique and a minimum.  minimum : the objective there.
    """

    objective: sp.Expr
    variable: sp.Symbol
    derivative: sp.Expr
    minimiser: sp.Expr
    curvature: sp.Expr
    minimum: sp.Expr

    def latex(self) -> str:
        """The derivation as four aligned lines."""
        names = symbols.latex_names({self.variable} | self.objective.free_symbols)
        line = {name: sp.latex(getattr(self, name), symbol_names=names) for name in self.__dataclass_fields__}
        v = names[self.variable]
        return "\n".join(
            (
                r"\begin{aligned}",
                rf"f({v}) &= {line['objective']}\\",
                rf"f'({v}) &= {line['derivative']}\\",
                rf"f''({v}) &= {line['curvature']} > 0\\",
                rf"{v}^* &= {line['minimiser']}",
                r"\end{aligned}",
            )
        )


def unique_minimiser(objective: sp.Expr, variable: sp.Symbol) -> Derivation:
    """Prove that a convex objective has exactly one positive minimiser, and give it in closed form.

    objective : in symbols of ``bounds.symbols``, all taken as positive.  Raises ProofFailed unless sympy finds
    exactly one positive zero of the derivative and recognises the second derivative as positive.
    """
    positive = {s: sp.Symbol(s.name, positive=True) for s in objective.free_symbols}
    back = {new: old for old, new in positive.items()}
    x = positive[variable]
    f = objective.subs(positive, simultaneous=True)
    slope = sp.simplify(f.diff(x))
    curvature = sp.simplify(f.diff(x, 2))
    if not sp.expand(curvature).is_positive:
        raise ProofFailed(f"cannot see that the second derivative {curvature} is positive")
    roots = sp.solve(slope, x)
    if len(roots) != 1 or sp.simplify(slope.subs(x, roots[0])) != 0 or not roots[0].is_positive:
        raise ProofFailed(f"expected one positive zero of {slope}; found {roots}")
    minimum = sp.expand(sp.powsimp(f.subs(x, roots[0])))
    parts = (f, slope, roots[0], curvature, minimum)
    f, slope, root, curvature, minimum = (part.subs(back, simultaneous=True) for part in parts)
    return Derivation(f, variable, slope, root, curvature, minimum)
