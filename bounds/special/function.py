"""The base of our special functions: symbolic in formulas, fast in float64, certified in balls."""

from __future__ import annotations

from typing import Any

import sympy as sp


class SpecialFunction(sp.Function):
    """A sympy function with two numeric twins.

    ``kernel(*args)`` : numpy arrays or floats in, float64 out, vectorised. ``ball(*args)`` : ``flint.arb`` in,
    ``flint.arb`` out, at the working precision of the caller.

    Attributes
    ----------
    latex_template
        Format string for LaTeX, filled with the printed arguments.
    """

    latex_template = ""

    @staticmethod
    def kernel(*args: Any) -> Any:
        """Evaluate in float64."""
        raise NotImplementedError

    @staticmethod
    def ball(*args: Any) -> Any:
        """Evaluate in ball arithmetic."""
        raise NotImplementedError

    def _latex(self, printer: Any, exp: Any = None) -> str:
        text = self.latex_template.format(*(printer._print(arg) for arg in self.args))
        return text if exp is None else rf"\left({text}\right)^{{{exp}}}"
