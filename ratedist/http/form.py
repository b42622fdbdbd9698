"""The page's form: every field is made from the argument of a call that it stands for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from ..calls import all_calls
from ..calls import call as kinds
from ..calls.call import Argument
from ..model.constants import ASSUMED
from ..model.links import LINE_RATES

PAGE = Path(__file__).parent.parent / "page"
SLOT = re.compile(r"\{\{ (\w+) \}\}")


def page() -> str:
    """Return the page: its template with a field in every slot.

    Raises
    ------
    ValueError
        If a slot names no field, or a field has no slot.
    """
    template = (PAGE / "index.html").read_text(encoding="utf-8")
    inputs = fields() | {"link_names": _link_names()}
    if missing := set(SLOT.findall(template)) ^ set(inputs):
        raise ValueError(
            f"every slot of page/index.html needs a Control and every Control a slot; got only one of the two for "
            f"{', '.join(sorted(missing))}: add the other"
        )
    return SLOT.sub(lambda slot: inputs[slot[1]], template)


def _link_names() -> str:
    """Return the links that have a name, with what their specifications state."""
    items = (
        f"<li><code>{escape(name)}</code>: {rate.bit_per_s / 1e9:.4g} Gbit/s ({escape(rate.source)})</li>"
        for name, rate in LINE_RATES.items()
    )
    return f'<ul class="hint" id="link-names">{"".join(items)}</ul>'


def fields() -> dict[str, str]:
    """Return the field of every argument with a ``Control``, by the name that permalinks have for it."""
    shown: dict[str, tuple[Argument, str, str]] = {}
    for argument, group, example in _arguments():
        if argument.control is None:
            continue
        name = argument.control.field or argument.name.removesuffix("_per_coordinate")
        if name not in shown or not shown[name][2]:
            shown[name] = (argument, group, _start(argument, example))
    return {name: _input(name, *parts) for name, parts in shown.items()}


def _arguments() -> Iterator[tuple[Argument, str, Any]]:
    """Yield the arguments of all routes and their parts: (argument, what it is a part of, its value in the example)."""
    for call in all_calls().values():
        if call.route is None:
            continue
        for argument in call.route.arguments:
            value = call.route.example.get(argument.name)
            yield argument, "", value
            if isinstance(argument.kind, kinds.Workers | kinds.Coding):
                values = value if isinstance(value, Mapping) else {}
                yield from ((part, argument.name, values.get(part.name)) for part in argument.kind.parts)


def _start(argument: Argument, example: Any) -> str:
    assert argument.control is not None
    if argument.control.assumed:
        return ""
    if argument.control.choices:
        return text_of(argument.default or "")
    return argument.control.start or ("" if example is None else text_of(example))


def text_of(value: Any) -> str:
    """Return a number as a person would type it.

    Parameters
    ----------
    value : int, float or str
        The number, or a text, which stays as it is.
    """
    if not isinstance(value, float):
        return str(value)
    text = f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return re.sub(r"e([+-])0*", lambda power: "e" + power[1].strip("+"), text)


def _input(name: str, argument: Argument, group: str, start: str) -> str:
    """Return the label and the input; the page adds a slider where there are decades."""
    control = argument.control
    assert control is not None
    symbol = f" <i>{escape(control.symbol)}</i>" if control.symbol else ""
    unit = f" <small>{escape(control.unit)}</small>" if control.unit else ""
    label = f'<label for="{name}">{escape(control.label)}{symbol}{unit}</label>'
    data = {"name": name, "part-of": group, "assumed": text_of(ASSUMED) if control.assumed else ""}
    if control.decades is not None:
        data |= dict(zip(("low", "high"), map(text_of, control.decades), strict=True))
        data["whole"] = "1" if control.whole else ""
    attributes = "".join(f' data-{key}="{escape(value)}"' for key, value in data.items() if value)
    return f'<div class="control"{attributes}>{label}{_input(name, argument, start, data["assumed"])}</div>'


def _input(name: str, argument: Argument, start: str, assumed: str) -> str:
    control = argument.control
    assert control is not None
    if control.choices:
        options = "".join(
            f'<option value="{escape(value)}"{" selected" * (value == start)}>{escape(words)}</option>'
            for value, words in control.choices
        )
        return f'<select id="{name}">{options}</select>'
    if isinstance(argument.kind, kinds.Specifications):
        return f'<textarea id="{name}" rows="3" spellcheck="false">{escape(start)}</textarea>'
    placeholder = f' placeholder="{assumed}, assumed"' if assumed else ""
    mode = "text" if control.decades is None else "decimal"
    kind = f'type="text" inputmode="{mode}" autocomplete="off" spellcheck="false"'
    return f'<input id="{name}" {kind} value="{escape(start)}"{placeholder}>'
