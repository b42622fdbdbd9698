"""Everything about a number but the number."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

NOT_PLAIN = {"plain": False}  # a field that no record as plain values has


@dataclass(frozen=True)
class Advised:
    """A call that an answer recommends; it can be executed as it is.

    Parameters
    ----------
    call : str
        Name of the function, such as "gap".
    arguments : mapping, optional
        Its keywords.
    yours : tuple of str, optional
        Keywords that only the reader has, such as a vector "x".
    """

    call: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    yours: tuple[str, ...] = ()

    def in_words(self) -> str:
        """Return the call as it is typed."""
        stated = [json.dumps(value) if name == "op" else f"{name}={value!r}" for name, value in self.arguments.items()]
        return f"rd.{self.call}({', '.join([*stated[:1], *self.yours, *stated[1:]])})"


@dataclass(frozen=True)
class Statement:
    """Everything about a number but the number.

    Parameters
    ----------
    quantity : str
        In words.
    unit : str
        "bit", "s", "step", "1".
    side : str
        "lower", "upper", "tight" or "estimate".
    theorem : str
        Name in the catalogue (``rd.certify`` takes it), or of the model.
    reference : str, optional
        Where the theorem comes from.
    status : str, optional
        How far it can be trusted.
    about : str, optional
        The quantity that the theorem bounds, in its standard words.
    needs : tuple of str, optional
        What must hold beside ``assumptions``, the rules for numbers; both in words.
    assumptions : tuple of str, optional
        Under which the number holds, in words.
    advice : str, optional
        What to do with the number.
    advised : tuple of Advised, optional
        The calls that the advice recommends.
    verdict : str, optional
        The sentence that an answer begins with, where "{value}" stands for side, number and unit.
    facts : mapping of str to str, optional
        Lines of the answer by their labels.
    assumed : tuple of str, optional
        What the caller did not say, with the value that was taken.
    left_out : str, optional
        What the model does not cover, in one line.
    formula : str, optional
        In LaTeX.
    at : mapping, optional
        The arguments as they were read.
    function : callable or None, optional
        The number as a function of those of ``at`` that are numbers; pictures are drawn with it.
    """

    quantity: str
    unit: str
    side: str
    theorem: str
    reference: str = ""
    status: str = ""
    about: str = ""
    needs: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    advice: str = ""
    advised: tuple[Advised, ...] = ()
    verdict: str = field(default="", metadata=NOT_PLAIN)
    facts: Mapping[str, str] = field(default_factory=dict, metadata=NOT_PLAIN)
    assumed: tuple[str, ...] = ()
    left_out: str = ""
    formula: str = ""
    at: Mapping[str, Any] = field(default_factory=dict)
    function: Callable[..., Any] | None = field(default=None, repr=False, compare=False, metadata=NOT_PLAIN)


def scope(statement: Statement) -> str:
    """Return what the theorem is about and needs, as a sentence and a space; empty where neither is stated.

    Parameters
    ----------
    statement : Statement
        What the numbers mean and where they come from.
    """
    about = f"It is about the {statement.about}" if statement.about else ""
    needs = f"it needs: {'; '.join(statement.needs)}" if statement.needs else ""
    sentence = ", and ".join(part for part in (about, needs) if part)
    return f"{sentence[:1].upper()}{sentence[1:]}.  " if sentence else ""
