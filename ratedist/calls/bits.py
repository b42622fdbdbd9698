"""How few bits: the limit of a class of compressors, certified."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, overload

import numpy as np

from bounds.limits import contractive_bits, unbiased_bits

from .. import numbers
from ..cluster.compressors import limit_rate
from ..cluster.travel import DENSE_BITS
from ..numbers import read
from ..plans.problem import evaluate_read
from ..records import Advised, Quantities, Quantity
from .arguments import Control
from .call import Call, Command, Route
from .shared import measurement

MEMBERS = {  # a family with each constant, and the constants that it takes
    "omega": ("tcdq:omega", 2.0**-20, 2.0**20),
    "alpha": ("sparse_dithering:nu", 2.0**-30, 1 - 2.0**-40),
}


@overload
def bits_lower_bound(*, d: numbers.Number, omega: numbers.Number) -> Quantity: ...
@overload
def bits_lower_bound(*, d: numbers.Number, alpha: numbers.Number) -> Quantity: ...
@overload
def bits_lower_bound(*, d: numbers.Numbers, omega: numbers.Numbers) -> Quantity | Quantities: ...
@overload
def bits_lower_bound(*, d: numbers.Numbers, alpha: numbers.Numbers) -> Quantity | Quantities: ...
def bits_lower_bound(
    *, d: numbers.Numbers, omega: numbers.Numbers | None = None, alpha: numbers.Numbers | None = None
) -> Quantity | Quantities:
    """Return bits that the longest message of a compressor must have, all bits counted; no compressor of the class has
    fewer.

    Parameters
    ----------
    d : array_like
        Number of coordinates.
    omega : array_like, optional
        Variance constant of an unbiased compressor: E C(x) = x and ``E|C(x) - x|^2 <= omega |x|^2``.
    alpha : array_like, optional
        Contraction constant: ``E|C(x) - x|^2 <= alpha |x|^2``.  Give exactly one of omega and alpha; arrays broadcast.

    Raises
    ------
    ValueError
        For other arguments.

    Notes
    -----
    The mean length over an isotropic Gaussian x has the same limit; messages about some x may be shorter.

    Examples
    --------
    >>> import ratedist as rd
    >>> rd.bits_lower_bound(d=1e9, omega=1.0)
    Quantity(500,000,000 bits, certified in [499999999.99999994, 500000000.00000006], unbiased_bits)
    """
    if (omega is None) == (alpha is None):
        got = "neither: add one" if omega is None else f"omega = {omega}, alpha = {alpha}: drop one"
        raise ValueError(f"give exactly one of omega and alpha; got {got}")
    bound, name, value = (unbiased_bits, "omega", omega) if alpha is None else (contractive_bits, "alpha", alpha)
    given = {"d": read("d", d), name: read(name, value)}
    return evaluate_read(bound, given, lambda at: _said(name, at[name]))


def _advised(name: str, value: str | np.ndarray) -> tuple[Advised, ...]:
    """Return the measurement of a compressor with this constant, where there is one with it."""
    if isinstance(value, np.ndarray):
        return (measurement("qsgd:4"),)
    level, (family, least, most) = float(Fraction(value)), MEMBERS[name]
    if not least <= level <= most:
        return ()
    short = f"{level:.12g}"
    text = short if least <= float(short) <= most else repr(level)
    return (measurement(f"{family}={text}"),)


def _said(name: str, value: str | np.ndarray) -> dict[str, Any]:
    """Return the verdict, for whom it holds, and the advice."""
    member = "unbiased" if name == "omega" else "contractive"
    advised = _advised(name, value)
    advice = {"advice": _advice(name, value, advised), "advised": advised}
    if isinstance(value, np.ndarray):
        return advice | {"verdict": f"{{value}} in the longest message of any {member} compressor."}
    level = float(Fraction(value))
    rate = limit_rate(level, unbiased=name == "omega")
    facts = {
        "holds for": f"every {member} compressor C with E|C(x) - x|^2 <= {level:.6g} |x|^2",
        "limits": "its longest message; its mean message too if x is Gaussian",
        "changes with": _at_other_levels(name, level),
    }
    return advice | {"verdict": f"{{value}}: {rate:.3g} per coordinate, {_against_binary32(rate)}.", "facts": facts}


def _at_other_levels(name: str, level: float) -> str:
    """Return the bits per coordinate at half and at twice the constant, as far as the class has them."""
    others = [each for each in (level / 2, 2 * level) if 0 < each < (math.inf if name == "omega" else 1)]
    rates = [f"{limit_rate(each, unbiased=name == 'omega'):.3g}" for each in others]
    rates[0] += " bits per coordinate"
    return ", ".join(f"{rate} at {name} = {each:.3g}" for rate, each in zip(rates, others, strict=True))


def _advice(name: str, value: str | np.ndarray, advised: tuple[Advised, ...]) -> str:
    """Return how many bits per coordinate that is, and which calls say more."""
    words = [each.in_words() for each in advised]
    if isinstance(value, np.ndarray):
        return f"Measure how far a compressor is from it: {words[0]}, or ratedist measure on a gradient"
    rate = limit_rate(float(Fraction(value)), unbiased=name == "omega")
    text = f"That is {rate:.3g} bits per coordinate, {_against_binary32(rate)}"
    text += "; the mean over an isotropic Gaussian x has the same limit, a single x may take fewer"
    more = ["rd.plan finds what pays"] * (name == "omega") + [f"{word} shows who comes near" for word in words]
    return "; ".join([text, ", ".join(more)]) if more else text


def _against_binary32(rate: float) -> str:
    if rate == 0:
        return "which binary32 exceeds by far"
    ratio = DENSE_BITS / rate
    return f"{ratio:.3g} times fewer than binary32" if ratio >= 1 else f"{1 / ratio:.3g} times more than binary32"


CALL = Call(
    name="bits",
    summary="bits that the longest message must have (give omega or alpha)",
    place=1,
    function=bits_lower_bound,
    command=Command(examples=("--d 1e3 --omega 1 --json", "--d 1e9 --omega 1", "--d 25600000 --alpha 0.1 0.01")),
    route=Route(
        about="Exactly one of omega and alpha.",
        example={"d": 1e9, "omega": 1.0},
        is_closed_form=lambda request: not any(isinstance(value, list) for value in request.values()),
    ),
    controls={
        "omega": Control("Distortion", "ω", decades=(-3, 4)),
        "alpha": Control("Distortion", "α", decades=(-4, -0.01), start="0.1"),
    },
)
