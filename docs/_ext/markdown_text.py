"""Small pieces of Markdown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence


def escape(text: str) -> str:
    """Plain text as Markdown that shows it unchanged, .5 as 0.5; quoted code stays code."""
    parts = re.split(r"(``.*?``)", text)
    return "".join(part if part.startswith("``") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    with_zeros = re.sub(r"(?<![\w.])\.(?=\d)", "0.", text)
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", with_zeros)


def code(text: str) -> str:
    """A name in the font of code."""
    return f"`{text}`"


def formula(latex: str) -> str:
    """A formula on a line of its own."""
    return f"```{{math}}\n{latex}\n```"


def eval_rst(lines: Iterable[str]) -> str:
    """A part in reStructuredText."""
    return "\n".join(("```{eval-rst}", *lines, "```", ""))


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; empty if it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if not lines:
        return ""
    return "\n".join((f"| {' | '.join(header)} |", f"|{'---|' * len(header)}", *lines, ""))


def number(value: float | None, digits: int = 4, *, latex: bool = False) -> str:
    """A number with so many significant digits, without a needless exponent."""
    if value is None:
        return ""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        decimals = 0 if value == 0 else max(0, digits - 1 - math.floor(math.log10(abs(value))))
        text = f"{value:.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return rf"{mantissa} \times 10^{{{int(exponent)}}}" if latex else f"{mantissa}e{int(exponent)}"
