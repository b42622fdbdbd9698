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

    Parameters
    ----------
    eta_max : ndarray
        The largest learning rate that the bound's condition allows, rounded down.
    """

    decrease: np.ndarray
    first: np.ndarray
    second: np.ndarray
    eta_max: np.ndarray

    def value(self, rate: Any, steps: Any) -> np.ndarray:
        """Return the bound at this learning rate after this many local steps."""
        return self.decrease / (rate * steps) + self.floor(rate)

    def floor(self, rate: Any) -> np.ndarray:
        """Return what remains after infinitely many steps."""
        return self.first * rate + self.second * rate**2

    def best_for_steps(self, steps: Any) -> np.ndarray:
        """Return the learning rate with the smallest bound: the root of 2 second x^3 + first x^2 =
        decrease/K, clipped.
        """
        constant = self.decrease / steps
        with np.errstate(divide="ignore", invalid="ignore"):
            x = np.fmin(np.sqrt(constant / self.first), np.cbrt(constant / (2 * self.second)))
            noisy = np.isfinite(x)
            x = np.where(noisy, x, 1.0)
            for _ in range(NEWTON_STEPS):  # starts at or right of the root
                rise = 2 * self.second * x**3 + self.first * x**2 - constant
                step = rise / (6 * self.second * x**2 + 2 * self.first * x)
                before, x = x, np.where(noisy, x - step, x)
                if np.array_equal(before, x):
                    break
        return np.minimum(np.where(noisy, x, np.inf), self.eta_max)

    def best_for_target(self, target: float) -> np.ndarray:
        """Return the learning rate that reaches a target in the fewest steps decrease/(eta (target - floor)), clipped.

        eta (target - floor) is concave for eta > 0 and largest where target = 2 first eta + 3 second eta^2.
        """
        root = self.first + np.sqrt(self.first**2 + 3 * self.second * target)
        with np.errstate(divide="ignore"):
            return np.minimum(target / root, self.eta_max)

    def steps_for(self, rate: Any, target: float) -> np.ndarray:
        """Return real steps until the bound is the target; infinite if the target is not above the floor."""
        room = target - self.floor(rate)
        with np.errstate(divide="ignore"):
            return np.where(room > 0, self.decrease / (rate * np.maximum(room, 0.0)), np.inf)


def in_eta(bound: Bound, **at: Any) -> InEta:
    """Return the coefficients of a bound at values of all its symbols but eta and K; they broadcast.

    Raises
    ------
    ValueError
        If the bound or its one condition has another form in eta and K.
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
    """Return (argument names, function) of decrease, first, second and of the condition load_1 x + load_2
    x^2 <= limit.
    """
    value = _in_powers(bound.value, K * eta)
    if len(bound.assuming) != 1 or not isinstance(bound.assuming[0], sp.Le):
        raise ValueError(f"{name} must have one condition of the form ... <= constant")
    condition = _in_powers(bound.assuming[0].lhs - bound.assuming[0].rhs, sp.Integer(1))
    parts = [value.get(0, sp.S.Zero), *(value.get(k, sp.S.Zero) / K for k in (2, 3))]
    parts += [condition.get(1, sp.S.Zero), condition.get(2, sp.S.Zero), -condition.get(0, sp.S.Zero)]
    parts = [sp.cancel(part) if part.has(K) else part for part in parts]
    fits = set(value) <= {0, 2, 3} and set(condition) <= {0, 1, 2}
    if not fits or any(part.has(K, eta) for part in parts):
        raise ValueError(f"{name} is not of the form decrease/(eta K) + first eta + second eta^2")
    return tuple(_compiled(part) for part in parts)


def _in_powers(expression: sp.Expr, factor: sp.Expr) -> dict[int, sp.Expr]:
    """Return power of eta -> coefficient, of expression times factor.

    A coefficient stays as it was written: expanding (1 - alpha)^2 would cancel to nothing near alpha = 1.
    """
    coefficients: dict[int, sp.Expr] = {}
    terms = list(sp.Add.make_args(expression))
    while terms:
        term = terms.pop() * factor
        coefficient, power = term.as_independent(eta)
        base, exponent = power.as_base_exp() if power != 1 else (eta, sp.S.Zero)
        if base == eta and exponent.is_Integer:
            coefficients[int(exponent)] = coefficients.get(int(exponent), sp.S.Zero) + coefficient
            continue
        expanded = sp.Add.make_args(sp.expand(term / factor))
        if len(expanded) == 1:
            return {-1: term}  # no power of eta: the caller refuses it
        terms.extend(expanded)
    return coefficients


def _compiled(part: sp.Expr) -> tuple[tuple[str, ...], Callable[..., Any]]:
    names = tuple(sorted(symbol.name for symbol in part.free_symbols))
    return names, sp.lambdify(names, part)
