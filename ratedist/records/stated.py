"""What one number and an array of numbers from a theorem have in common."""

from __future__ import annotations

import html
from typing import Any

from .statement import Statement, scope

SIDES = {"lower": "at least", "upper": "at most", "tight": "exactly", "estimate": "about"}


class Stated:
    """The parts that scalars and arrays share."""

    statement: Statement

    @property
    def unit(self) -> str:
        """The unit of the number."""
        return self.statement.unit

    @property
    def theorem(self) -> str:
        """The name of the theorem or model behind it."""
        return self.statement.theorem

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must hold, in words."""
        return self.statement.assumptions

    def latex(self, *, value: bool = False) -> str:
        """Return the formula in LaTeX.

        Parameters
        ----------
        value : bool, optional
            Whether the number follows, with its unit.
        """
        return f"{self.statement.formula} {self._value_in_latex()}".strip() if value else self.statement.formula

    def bibtex(self) -> str:
        """Return BibTeX entries of the theorem's source and of ratedist; of ratedist alone for a model of its own."""
        from bounds.bibliography import cited
        from bounds.catalogue import all_bounds

        bound = all_bounds().get(self.theorem)
        return cited([] if bound is None else [bound.reference])

    def _value_in_latex(self) -> str:
        raise NotImplementedError

    @property
    def needs(self) -> tuple[str, ...]:
        """The hypotheses of the theorem, in words."""
        return self.statement.needs

    def explain(self) -> str:
        """Return one line: the number, its interval, its theorem, where that holds, and what to do."""
        s = self.statement
        source = ", ".join(part for part in (s.theorem, s.status, s.reference) if part)
        head = f"{s.quantity[:1].upper()}{s.quantity[1:]}: {SIDES[s.side]} {self._shown()}"
        return f"{head} ({self._interval_text()}; {source}).  {scope(s)}{s.advice}".strip()

    def _shown(self) -> str:
        raise NotImplementedError

    def _interval_text(self) -> str:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        s = self.statement
        rows = {
            "interval": self._interval_text(),
            "theorem": " ".join(part for part in (s.theorem, s.status and f"({s.status})", s.reference) if part),
            "about": s.about,
            "needs": "; ".join(s.needs),
            "assuming": "; ".join(s.assumptions),
            "what to do": s.advice,
        }
        body = "".join(
            f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in rows.items()
            if text
        )
        head = f"<b>{html.escape(SIDES[s.side])} {html.escape(self._shown())}</b> &mdash; {html.escape(s.quantity)}"
        return f"<div>{head}<table>{body}</table></div>"

    def plot(self, *, along: str | None = None, ax: Any = None) -> Any:
        """Draw the theorem's value along one argument, with this point marked; returns the matplotlib axes."""
        from ..drawing import plot_along

        return plot_along(self, along, ax)
