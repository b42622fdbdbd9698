"""Whatever compresses a vector, as one operator: by its name, as it is, or a function of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .compressors import operator_of

if TYPE_CHECKING:
    from operators import Operator
    from operators.functions.own import Compressor


def as_operator(given: Compressor) -> Operator:
    """Return the operator of a specification, an operator or a function.

    "mine:f" imports it from the module mine, in the current folder too.

    Parameters
    ----------
    given : str or Operator or callable
        The compressor.

    Raises
    ------
    ValueError
        For an unknown name, and for what is no compressor.
    """
    from operators import Operator, compressor

    if isinstance(given, str | Operator):
        return operator_of(given)
    if callable(given) or isinstance(given, tuple):
        return compressor(given)
    raise ValueError(
        f'a compressor must be a specification such as "qsgd:4", an Operator or a function; got {given!r}: give one'
    )
