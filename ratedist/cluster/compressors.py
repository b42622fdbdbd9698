"""Compressors by specification or import path, their claims in words, and the limit of a claim's class."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from bounds.claims import NoClaim, Unbiased
from bounds.limits import contractive_bits, unbiased_bits

from .other_names import near_names

if TYPE_CHECKING:
    from operators import Operator
    from operators.functions.own import Compressor
    from operators.summed import Summed


# -- specifications, claims and limits -----------------------------------------------------------------


def operator_of(given: str | Operator) -> Operator:
    """Return an operator from its specification, or itself.

    "mine:Coin" imports it from the module mine, in the current folder too; see ``operators.parse``.

    Parameters
    ----------
    given : str or Operator
        Specification such as "qsgd:4", or an ``Operator``.

    Raises
    ------
    ValueError
        For an unknown name, field or value, and for what is summed on the way.

    Examples
    --------
    >>> operator_of("qsgd:4")
    QSGD(levels=4, norm='l2', bucket=None, code='sparse')
    """
    from operators import Operator, specification

    compressor = compressor_of(given)
    if not isinstance(compressor, Operator):
        raise ValueError(
            f"{specification(compressor)} is summed on the way and encodes no single vector: plan and allreduce take it"
        )
    return compressor


def compressor_of(given: str | Operator | Summed) -> Operator | Summed:
    """Return an operator, or a method of ``operators.summed``, from its specification, or itself.

    Parameters
    ----------
    given : str or Operator or Summed
        Specification such as "qsgd:4" or "shared_scale:12,block=256", or what it stands for.

    Raises
    ------
    ValueError
        For an unknown name, field or value.

    Examples
    --------
    >>> compressor_of("shared_scale:12")
    SharedScale(word_bits=12, block=None)
    """
    from operators import Operator, all_operators, all_summed, outside, parse, parse_summed
    from operators.summed import Summed

    if isinstance(given, Operator | Summed):
        return given
    if not isinstance(given, str):
        raise ValueError(
            f'an operator must be a specification such as "qsgd:4" or an Operator; got {given!r}: name one'
        )
    name = given.strip().partition(":")[0]
    names = [*all_operators(), *all_summed()]
    if name not in names and outside.split(given) is None and name not in outside.announced(outside.OPERATORS):
        near = near_names(name, names) or ["identity", "qsgd", "tcdq"]
        shown = name if len(name) <= 32 else name[:29] + "..."
        raise ValueError(
            f"unknown operator {shown!r}; it must be a name of the catalogue: try {', '.join(near)} "
            "(all of them: ratedist operators)"
        )
    try:
        return parse_summed(given) if name in all_summed() else parse(given)
    except ValueError as failure:
        raise ValueError(f"{failure} (as in tcdq:omega=1, qsgd:4, topk:0.01)") from None
    except TypeError as failure:
        raise ValueError(f"{given!r} has a value of the wrong kind ({failure}): see ratedist operators") from None


def claim_text(claim: Any) -> str:
    """Return a claim in words.

    Parameters
    ----------
    claim
        What the operator promises.
    """
    if isinstance(claim, NoClaim):
        return f"none: {claim.reason}"
    if isinstance(claim, Unbiased):
        return f"unbiased, omega {'=' if claim.tight else '<='} {claim.omega:.6g}"
    surely = "surely " if type(claim).__name__.startswith("Strict") else ""
    return f"{surely}contractive, alpha <= {alpha_text(claim.alpha, 6)}"


def alpha_text(alpha: float, digits: int) -> str:
    """Return alpha to some significant digits; as "1 - 1e-06" where an alpha below 1 would round to 1.

    Parameters
    ----------
    alpha : float
        Constant of a contraction.
    digits : int
        Significant digits.
    """
    text = f"{alpha:.{digits}g}"
    return f"1 - {1 - alpha:.4g}" if text == "1" and alpha < 1 else text


def class_limit(claim: Any, d: int) -> float | None:
    """Return the bits that the longest message with this claim needs; None without a claim, infinite without error.

    Parameters
    ----------
    claim : Claim
        What the operator promises.
    d : int
        Number of coordinates.
    """
    if isinstance(claim, NoClaim):
        return None
    level = claim.omega if isinstance(claim, Unbiased) else claim.alpha
    return math.inf if level == 0 else d * limit_rate(level, unbiased=isinstance(claim, Unbiased))


def limit_rate(nmse: float, *, unbiased: bool) -> float:
    """Return the bits per coordinate below which no operator of the class has this error in its longest message.

    Parameters
    ----------
    nmse : float
        Relative squared error, > 0.
    unbiased : bool
        Whether the class is that of unbiased operators.
    """
    if unbiased:
        return float(unbiased_bits(d=1, omega=nmse))
    return float(contractive_bits(d=1, alpha=nmse)) if nmse < 1 else 0.0


# -- anything that compresses --------------------------------------------------------------------------


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


# -- import paths --------------------------------------------------------------------------------------


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
