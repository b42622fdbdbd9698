"""What the command line names by an import path: compressors from outside."""

from __future__ import annotations

from typing import Any


def subject(text: str) -> Any:
    """Return what ``check`` judges: an operator's specification, or the object at package.module:object.

    The module is looked for in the current folder too.

    Raises
    ------
    ValueError
        For what cannot be found.
    """
    from operators import all_operators, outside

    module, colon, _ = text.partition(":")
    if module in all_operators() or module in outside.announced(outside.OPERATORS) or not colon:
        return text
    try:
        return outside.imported(text)
    except (ImportError, AttributeError, ValueError) as failure:
        raise ValueError(
            f"{text!r} must be an operator or package.module:object; {failure}: see ratedist operators"
        ) from None
