"""How far a bound lies above the exact value of a model: the looseness as a number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bound import Bound
from .quadratic import Quadratic


def arguments(bound: Bound, problem: Quadratic, **at: Any) -> dict[str, Any]:
    """Return the keywords of a bound on a quadratic: its constants from the problem, everything else from ``at``.

    Known to the problem: L, mu, kappa, rho (0: it is convex), sigma2, sigma2_opt, gap, R0.  ``at`` takes precedence,
    and may hold more than the bound needs.

    Parameters
    ----------
    bound : Bound
        The bound.
    problem : Quadratic
        The problem whose constants are used.
    **at
        Values of the symbols, by name.

    Raises
    ------
    TypeError
        Through the bound, if something is missing.
    """
    constants = {
        "L": problem.L,
        "mu": problem.mu,
        "kappa": problem.L / problem.mu if problem.mu > 0 else np.inf,
        "rho": 0.0,
        "sigma2": problem.sigma2,
        "sigma2_opt": problem.sigma2,
        "gap": problem.gap,
        "R0": problem.R0,
    }
    names = {symbol.name for symbol in bound.parameters}
    return {name: value for name, value in {**constants, **at}.items() if name in names}


def looseness(bound: Bound, exact: Any, problem: Quadratic, **at: Any) -> Any:
    """Return bound / exact, broadcasting; at least 1 for every valid upper bound.

    Parameters
    ----------
    bound : Bound
        The bound.
    exact
        The bounded quantity on the same problem at the same point, from one of the models here.
    problem : Quadratic
        The problem whose constants are used.
    **at
        Values of the symbols, by name.

    Raises
    ------
    AssumptionViolated
        For arguments outside the assumptions of the bound.
    """
    return bound(**arguments(bound, problem, **at)) / exact
