"""The proof of the best real period of gradient retention; apart from the rule, which needs no sympy to run."""

from __future__ import annotations

from functools import lru_cache

import sympy as sp

from ..tau.derivation import Derivation, unique_minimiser

N, DECLINE, SPARE = sp.symbols("n a z", positive=True)


@lru_cache(maxsize=1)
def derivation() -> Derivation:
    """Return the proof, by sympy, that (tau + n)/(b tau - a tau^2/2), b = 1 + a/2, has one minimum on 0 < tau < 2 b/a.

    In z = 2 b/(a tau) - 1 > 0 it is a constant plus positive multiples of z and 1/z, which is convex; ``period`` leads
    back.
    """
    tau = period(SPARE)
    time_for_progress = sp.expand(sp.simplify((tau + N) / (tau * (1 + DECLINE / 2) - DECLINE * tau**2 / 2)))
    return unique_minimiser(time_for_progress, SPARE)


def period(spare: sp.Expr) -> sp.Expr:
    """Return tau = 2 b/(a (1 + z)) in terms of z, b = 1 + a/2."""
    return 2 * (1 + DECLINE / 2) / (DECLINE * (1 + spare))
