"""What a compressor promises about its error.

A claim is made at one dimension d and holds for every finite vector x in R^d with ``2^-126 <= max|x| <= 2^100``, up to
binary32 rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Unbiased:
    """E C(x) = x and ``E|C(x) - x|^2 <= omega |x|^2``: the class U(omega).

    omega >= 0, finite.  ``tight=True`` states that the second relation is an equality for every x.

    Parameters
    ----------
    omega : float
        Variance constant: ``E|C(x) - x|^2 <= omega |x|^2``; omega >= 0.
    tight : bool, optional
        Whether some input attains the constant.

    Raises
    ------
    ValueError
        For any other omega.
    """

    omega: float
    tight: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.omega < math.inf):
            raise ValueError(f"omega must be finite and >= 0; got omega = {self.omega}")


@dataclass(frozen=True)
class Contractive:
    """``E|C(x) - x|^2 <= alpha |x|^2``: the class B(alpha); C may be biased.

    0 <= alpha < 1.  ``tight=True`` states equality for every x.

    Parameters
    ----------
    alpha : float
        Contraction constant: ``E|C(x) - x|^2 <= alpha |x|^2``; 0 <= alpha < 1.
    tight : bool, optional
        Whether some input attains the constant.

    Raises
    ------
    ValueError
        For any other alpha (an operator without alpha < 1 promises nothing: use NoClaim).
    """

    alpha: float
    tight: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1:
            raise ValueError(
                f"alpha must satisfy 0 <= alpha < 1; got alpha = {self.alpha} (use NoClaim if there is none)"
            )


@dataclass(frozen=True)
class StrictlyContractive(Contractive):
    """``|C(x) - x|^2 <= alpha |x|^2`` surely, not only in expectation: the class L(alpha), inside B(alpha).

    Parameters
    ----------
    alpha
        Contraction constant: ``|C(x) - x|^2 <= alpha |x|^2``, surely; 0 <= alpha < 1.
    tight
        Whether some input attains the constant.
    """


@dataclass(frozen=True)
class NoClaim:
    """No constant is promised; ``reason`` says in one sentence why.

    Parameters
    ----------
    reason : str
        Why nothing is claimed, in words.
    """

    reason: str


Claim = Unbiased | Contractive | StrictlyContractive | NoClaim
