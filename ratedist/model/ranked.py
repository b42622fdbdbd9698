"""A table of choices, best first, with the sentence that says what to do; what every plan answers with."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from bounds.frame import frame

from ..records import Answered

if TYPE_CHECKING:
    from pandas import DataFrame


class Rankable(Protocol):
    """One row of such a table."""

    @property
    def operator(self) -> str:
        """The compressor's specification."""

    @property
    def feasible(self) -> bool:
        """Whether it has a place in the order."""

    @property
    def relative_cost(self) -> float:
        """Over the best choice's."""

    @property
    def name(self) -> str:
        """What it is, in words."""

    @property
    def reason(self) -> str:
        """Why it stands where it does, or has no place, in words."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""

    def row(self) -> Mapping[str, Any]:
        """Return one column a name, for a table of numbers."""


ChoiceT = TypeVar("ChoiceT", bound=Rankable)


def way_text(operator: str, exchange: str, returned: str) -> str:
    """Return operator and exchange in words, in two shots with the operators of both stages.

    Parameters
    ----------
    operator : str
        The specification of what workers send.
    exchange : str
        How messages travel.
    returned : str
        The owners' operator in two shots.
    """
    where = " of nodes" if exchange.startswith("node_") else ""
    if not exchange.endswith("two_shot"):
        return f"{operator} gathered{where}" if where else operator
    back = f", {returned} back" if returned != operator else ""
    return f"{operator} in two shots{where}{back}"


@dataclass(frozen=True, repr=False)
class Ranked(Answered, ABC, Generic[ChoiceT]):
    """Choices, best first; what has no place in the order comes last.

    Parameters
    ----------
    ranking : tuple
        The choices in that order.
    assumptions : tuple of str
        Under which the numbers hold, in words.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    """

    ranking: tuple[ChoiceT, ...]
    assumptions: tuple[str, ...]
    assumed: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def best(self) -> ChoiceT:
        """The winner.

        Raises
        ------
        ValueError
            If no operator is feasible.
        """
        if not self.ranking[0].feasible:
            raise ValueError(f"no operator is feasible; {self.explain()}")
        return self.ranking[0]

    @cached_property
    def turns(self) -> tuple[dict[str, Any], ...]:
        """Bandwidths ("bit_per_s") at which another choice ("rival") leads, "above" or "below" it; "words" say so."""
        return ()

    @property
    def shown(self) -> tuple[ChoiceT, ...]:
        """The first choice of every operator."""
        first: dict[str, ChoiceT] = {}
        for choice in self.ranking:
            first.setdefault(choice.operator, choice)
        return tuple(first.values())

    @property
    @abstractmethod
    def verdict(self) -> str:
        """The sentence that the answer begins with, which says what to use."""

    @abstractmethod
    def explain(self) -> str:
        """Return what to use, and why."""

    @abstractmethod
    def cost_text(self, choice: ChoiceT) -> str:
        """Return what the choice is ranked by, with its unit.

        Parameters
        ----------
        choice
            One of ``ranking``.
        """

    @abstractmethod
    def costs(self) -> tuple[str, dict[str, tuple[float, float, float]]]:
        """Return what the choices shown are ranked by, in words, and by their names value and ends of it."""

    def to_frame(self) -> DataFrame:
        """Return one row a choice, best first, with the units of its fields, but for what limits it."""
        return frame([choice.row() for choice in self.ranking])

    def to_dict(self) -> dict[str, Any]:
        """Return the ranking as plain values."""
        ranking = [choice.to_dict() for choice in self.ranking]
        conditions: dict[str, Any] = {
            "verdict": self.verdict,
            "assumptions": list(self.assumptions),
            "assumed": list(self.assumed),
        }
        return {"ranking": ranking} | conditions | {"explanation": self.explain()}

    def __repr__(self) -> str:
        width = max(len(c.name) for c in self.shown)
        rows = (
            f"  {c.name:{width}}  " + (f"{self.cost_text(c)}  {c.relative_cost:.3g}x" if c.feasible else c.reason)
            for c in self.shown
        )
        return f"{type(self).__name__}(\n" + "\n".join(rows) + "\n)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(c.name)}</td><td>{html.escape(self.cost_text(c))}</td><td>{c.relative_cost:.3g}</td>"
            f"<td style='text-align:left'>{html.escape(c.reason)}</td></tr>"
            for c in self.shown
        )
        head = "<tr><th>operator</th><th>cost</th><th>relative</th><th style='text-align:left'>reasons</th></tr>"
        return f"<table>{head}{rows}</table><p>{html.escape('; '.join(self.assumptions))}</p>"

    def plot(self, *, ax: Any = None) -> Any:
        """Return bars of what each operator's first choice costs, best first; returns the matplotlib axes.

        Parameters
        ----------
        ax : optional
            Matplotlib axes to draw on; new ones unless given.
        """
        from ..drawing import plot_ranking

        unit, costs = self.costs()
        return plot_ranking(costs, unit=unit, title="; ".join(self.assumptions[:1]), ax=ax)
