"""What one number and an array of numbers from a theorem have in common."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import Any

from bounds.provenance import Reference

from .answer import Answer, Table
from .statement import Statement, scope

SIDES = {"lower": "at least", "upper": "at most", "tight": "exactly", "estimate": "about"}


MODELS = {  # what no Bound has the name of: a bound whose source it shares
    "tau_star": ("pasgd_runtime", "Theorem 2"),
    "tau_convex": ("pasgd_convex_sharp", ""),
    "tau_curved": ("pasgd_smooth_sharp", ""),
    "runtime_model": ("pasgd_runtime", "Section 3"),
}


def reference_of(name: str) -> Reference | None:
    """Return the source of a Bound, of a model of ``tau`` and ``runtime``, or of a key of the bibliography, or None.

    Parameters
    ----------
    name : str
        As an answer states it.
    """
    from bounds.bibliography import entries
    from bounds.catalogue import all_bounds

    bound, place = MODELS.get(name, (name, ""))
    if bound in all_bounds():
        reference = all_bounds()[bound].reference
        return replace(reference, where=place) if place else reference
    return Reference(name) if name in entries() else None


def _theorem_text(statement: Statement) -> str:
    """Return name, status and the first word of the source, which is its key in the bibliography."""
    source = statement.reference.partition(",")[0]
    text = ", ".join(part for part in (statement.theorem, statement.status) if part)
    return f"{text} ({source})" if source else text


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
        """Return BibTeX entries of the theorem's source and of ratedist."""
        from bounds.bibliography import cited

        reference = reference_of(self.theorem)
        return cited([] if reference is None else [reference])

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

    @property
    def verdict(self) -> str:
        """The sentence that the answer begins with."""
        shown = f"{SIDES[self.statement.side]} {self._in_verdict()}"
        template = self.statement.verdict or f"{{value}}: {self.statement.quantity}."
        return template.replace("{value}", shown[:1].upper() + shown[1:])

    def answer(self) -> Answer:
        """Return the number as a sentence to act on, with facts and what was assumed."""
        s = self.statement
        tables = self._tables()
        calls = " or ".join(each.in_words() for each in s.advised if each.yours)
        advice = "" if s.advice in s.facts.values() else s.advice
        return Answer(
            verdict=self.verdict,
            facts={**s.facts, "interval": "" if tables else self._interval_text(), "theorem": _theorem_text(s)},
            tables=tables,
            left_out=s.left_out,
            assumed=s.assumed,
            follow_up=f"measure a compressor: {calls}" if calls else advice,
            evidence={
                "theorem": ", ".join(part for part in (s.theorem, s.status, s.reference) if part),
                "about": s.about,
                "needs": s.needs,
                "assuming": s.assumptions,
                "what to do": s.advice,
            },
        )

    def _in_verdict(self) -> str:
        return self._shown()

    def _tables(self) -> tuple[Table, ...]:
        return ()

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
