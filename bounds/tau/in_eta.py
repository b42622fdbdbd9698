"""Bounds that are decrease/(eta K) + first eta + second eta^2: the best learning rate in closed form or by Newton."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp

from ..bound import Bound
from ..symbols import K, eta

NEWTON_STEPS = 60  # from the right of a convex increasing cubic: monotone, quadratic in the end
INSIDE = 1 - 1e-12  # keeps a rounded learning rate inside the exact condition


@dataclass(frozen=True)
class InEta:
    """The coefficients of a bound as a function of its learning rate, arrays of one shape.

    eta_max : the largest learning rate that the bound's condition allows, rounded down.
    """

    decrease: np.ndarray
    first: np.ndarray
    second: np.ndarray
    eta_max: np.ndarray

    def value(self, rate: Any, steps: Any) -> np.ndarray:
        """The bound at this learning rate after this many local steps."""
        return self.decrease / (rate * steps) + self.floor(rate)

    def floor(self, rate: Any) -> np.ndarray:
        """What remains after infinitely many steps."""
        return self.first * rate + self.second * rate**2

    def best_for_steps(self, steps: Any) -> np.ndarray:
        """The learning rate with the smallest bound: the root of 2 second x^3 + first x^2 = decrease/K, clipped."""
        constant = self.decrease / steps
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.fmin(np.sqrt(constant / self.first), np.cbrt(constant / (2 * self.second)))
            noisy = np.isfinite(x)
            x = np.where(noisy, x, 1.0)
            for _ in range(NEWTON_STEPS):  # starts at or right of the root
                rise = 2 * self.second * x**3 + self.first * x**2 - constant
                step = rise / (6 * self.second * x**2 + 2 * self.first * x)
                x = np.where(noisy, x - step, x)
        return np.minimum(np.where(noisy, x, np.inf), self.eta_max)

    def best_for_target(self, target: float) -> np.ndarray:
        """The learning rate that reaches a target in the fewest steps decrease/(eta (target - floor)), clipped.

        eta (target - floor) is concave for eta > 0 and largest where target = 2 first eta + 3 second eta^2.
        """
        root = self.first + np.sqrt(self.first**2 + 3 * self.second * target)
        with np.errstate(divide="ignore"):
            return np.minimum(target / root, self.eta_max)

    def steps_for(self, rate: Any, target: float) -> np.ndarray:
        """Real steps until the bound is the target; infinite if the target is not above the floor."""
        room = target - self.floor(rate)
        with np.errstate(divide="ignore"):
            return np.where(room > 0, self.decrease / (rate * np.maximum(room, 0.0)), np.inf)


def in_eta(bound: Bound, **at: Any) -> InEta:
    """The coefficients of a bound at values of all its symbols but eta and K; they broadcast.

    Raises ValueError if the bound or its one condition has another form in eta and K.
    """
    functions = _coefficients(bound.name, bound)
    decrease, first, second, load_1, load_2, limit = (
        np.asarray(f(*(np.asarray(at[name], float) for name in names)), float) for names, f in functions
    )
    shape = np.broadcast_shapes(*(np.shape(value) for value in at.values()))
    largest = 2 * limit / (load_1 + np.sqrt(load_1**2 + 4 * load_2 * limit)) * INSIDE
    return InEta(*(np.broadcast_to(part, shape) for part in (decrease, first, second, largest)))


@lru_cache(maxsize=64)
def _coefficients(name: str, bound: Bound) -> tuple[tuple[tuple[str, ...], Callable[..., Any]], ...]:
    """(argument names, function) of decrease, first, second and of the condition load_1 x + load_2 x^2 <= limit."""
    value = sp.Poly(sp.expand(bound.value * eta * K), eta)
    if len(bound.assuming) != 1 or not isinstance(bound.assuming[0], sp.Le):
        raise ValueError(f"{name} must have one condition of the form ... <= constant")
    condition = sp.Poly(sp.expand(bound.assuming[0].lhs - bound.assuming[0].rhs), eta)
    parts = [value.coeff_monomial(1), *(value.coeff_monomial(eta**k) / K for k in (2, 3))]
    parts += [condition.coeff_monomial(eta), condition.coeff_monomial(eta**2), -condition.coeff_monomial(1)]
    parts = [sp.simplify(part) for part in parts]
    fits = value.coeff_monomial(eta) == 0 and value.degree() <= 3 and condition.degree() <= 2
    if not fits or any(part.has(K, eta) for part in parts):
        raise ValueError(f"{name} is not of the form decrease/(eta K) + first eta + second eta^2")
    return tuple(_compiled(part) for part in parts)


def _compiled(part: sp.Expr) -> tuple[tuple[str, ...], Callable[..., Any]]:
    names = tuple(sorted(symbol.name for symbol in part.free_symbols))
    return names, sp.lambdify(names, part)
