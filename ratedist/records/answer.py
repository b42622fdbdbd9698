"""The text of an answer: a verdict, a few facts, what was assumed; the rest with ``explain``."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH, LEAST_WIDTH = 80, 40
MOST_LINES = 12  # beside tables and code
LABEL = 14  # characters of a label
SHORTEST_NAME, LEAST_WORDS = 8, 20  # characters of a table's first and of a wrapped last column
INDENT = "  "


def width_of_output() -> int:
    """Return the columns of the output: 80, or those of the environment variable COLUMNS."""
    stated = os.environ.get("COLUMNS", "")
    return max(LEAST_WIDTH, int(stated)) if stated.isascii() and stated.isdigit() else WIDTH


@dataclass(frozen=True)
class Table:
    """Rows under headings; a name is never broken.

    Parameters
    ----------
    columns : tuple of str
        Headings with units.  The first column has the names; it and ``left`` are aligned to the left.
    rows : tuple of tuple of str
        One text a column.
    left : frozenset of str, optional
        Further columns that hold words.
    note : str, optional
        A line below the table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: frozenset[str] = frozenset()
    note: str = ""

    def lines(self, width: int) -> list[str]:
        """Return the lines of the table; a name too long for its column stands on a line of its own.

        Words in the last column go on in further lines.

        Parameters
        ----------
        width : int
            Characters of a line.
        """
        rest = [max(len(row[place]) for row in (self.columns, *self.rows)) for place in range(1, len(self.columns))]
        if self.columns[-1] in self.left:
            taken = len(INDENT) + SHORTEST_NAME + sum(rest[:-1]) + 2 * len(rest)
            rest[-1] = min(rest[-1], max(LEAST_WORDS, width - taken))
        free = width - len(INDENT) - sum(each + 2 for each in rest)
        longest = max(len(row[0]) for row in (self.columns, *self.rows))
        first = min(longest, max(free, len(self.columns[0]), 1))
        lines = []
        for row in (self.columns, *self.rows):
            name, *cells = row
            if len(name) > first:
                lines.append(f"{INDENT}{name}")
                name = ""
            more: list[str] = []
            if self.columns[-1] in self.left:
                cells[-1], *more = textwrap.wrap(cells[-1], rest[-1]) or [""]
            parts = [
                cell.ljust(size) if column in self.left else cell.rjust(size)
                for column, cell, size in zip(self.columns[1:], cells, rest, strict=True)
            ]
            lines.append((INDENT + "  ".join((name.ljust(first), *parts))).rstrip())
            before = len(INDENT) + first + 2 + sum(each + 2 for each in rest[:-1])
            lines += [" " * before + words for words in more]
        return lines + _wrapped(self.note, width, INDENT, INDENT)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows], "note": self.note}


@dataclass(frozen=True)
class Answer:
    """What a call says: a sentence to act on, facts, tables, what was assumed, and the evidence.

    Parameters
    ----------
    verdict : str
        One sentence that can be acted on.
    facts : mapping of str to str, optional
        By a label of at most 14 characters; the most important first.
    tables : tuple of Table, optional
        Sorted by what one chooses by.
    left_out : str, optional
        What the model does not cover, in one line.
    assumed : tuple of str, optional
        What the caller did not say, with the value that was taken.
    follow_up : str, optional
        What to do next, in words.
    command : str, optional
        The command that does it; what is printed can be pasted into a shell.
    code : str, optional
        The Python expression that does it, in place of a command; it may be broken at any space.
    evidence : mapping of str to str or sequence of str, optional
        Theorem, hypotheses, status and source; only ``explain`` prints them.
    """

    verdict: str
    facts: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    left_out: str = ""
    assumed: tuple[str, ...] = ()
    follow_up: str = ""
    command: str = ""
    code: str = ""
    evidence: Mapping[str, str | Sequence[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Return the answer: at most 12 lines beside tables and code.

        Parameters
        ----------
        width : int or None, optional
            Characters of a line; None takes ``COLUMNS``, else 80.
        """
        return "\n".join(self._lines(width or width_of_output(), MOST_LINES))

    def explain(self, width: int | None = None) -> str:
        """Return the answer with all facts, theorem, hypotheses, status and source.

        Parameters
        ----------
        width : int or None, optional
            Characters of a line; None takes ``COLUMNS``, else 80.
        """
        size = width or width_of_output()
        lines = self._lines(size, None)
        for label, value in self.evidence.items():
            texts = [value] if isinstance(value, str) else list(value)
            shown = [line for text in dict.fromkeys(texts) for line in _wrapped(text, size - len(INDENT), "", "  ")]
            lines += ["", label, *(f"{INDENT}{line}" for line in shown)] if any(texts) else []
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        evidence = {name: each if isinstance(each, str) else list(each) for name, each in self.evidence.items()}
        return {
            "verdict": self.verdict,
            "facts": dict(self.facts),
            "tables": [table.to_dict() for table in self.tables],
            "left_out": self.left_out,
            "assumed": list(self.assumed),
            "follow_up": self.follow_up,
            "command": self.command,
            "code": self.code,
            "evidence": evidence,
        }

    def _lines(self, width: int, most: int | None) -> list[str]:
        head = _wrapped(self.verdict, width)
        foot = _wrapped(self.left_out and f"not modelled: {self.left_out}", width, "", INDENT)
        foot += _wrapped(self.assumed and f"assumed: {', '.join(self.assumed)}", width, "", INDENT)
        after = self._next(width)
        if not self.code:
            foot, after = foot + after, []
        facts = {label: text for label, text in self.facts.items() if text}
        size = max((len(label) for label in facts), default=0)
        body: list[str] = []
        for label, text in facts.items():
            label_text = f"{INDENT}{label.ljust(size)}  "
            lines = _wrapped(text, width, label_text, " " * len(label_text))
            if most is None or len(head) + len(body) + len(lines) + len(foot) <= most:
                body += lines
        tables = [line for table in self.tables for line in ("", *table.lines(width))]
        return [*head, *body, *tables, *([""] if tables and foot + after else []), *foot, *after]

    def _next(self, width: int) -> list[str]:
        """Return what to do next; a command or code that does not fit beside the words has lines of its own."""
        done = self.command or self.code
        if not done:
            return _wrapped(self.follow_up and f"-> {self.follow_up}", width, "", "   ")
        words = f"-> {self.follow_up}: " if self.follow_up else "-> "
        if len(words) + len(done) <= width:
            return [words + done]
        lines = _command_lines(done, width) if self.command else _wrapped(done, width, "   ", "     ")
        return [*_wrapped(words.rstrip(), width, "", "   "), *lines]


def _command_lines(command: str, width: int) -> list[str]:
    """Return lines that a shell reads as one command; no argument is broken."""
    parts: list[str] = []  # an option and its values stay together
    for word in map(shlex.quote, shlex.split(command)):
        if word.startswith("--") or not parts:
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    lines = [f"   {parts[0]}"]
    for word in parts[1:]:
        if len(lines[-1]) + 1 + len(word) + len(" \\") <= width:
            lines[-1] += f" {word}"
        else:
            lines[-1] += " \\"
            lines.append(f"     {word}")
    return lines


def _wrapped(text: Any, width: int, first: str = "", then: str = "") -> list[str]:
    if not text:
        return []
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=then,
        break_long_words=False,
        break_on_hyphens=False,
    )


class Answered:
    """A record that prints as an answer."""

    def answer(self) -> Answer:
        """Return the verdict, the facts and what was assumed."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.answer())
