"""What a compressor promises about its error.

A claim is made at one dimension d and holds for every finite vector x in R^d with ``2^-126 <= max|x| <= 2^100``, up to
binary32 rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .fields import Fields


@dataclass(frozen=True)
class Unbiased(Fields):
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
class Contractive(Fields):
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
class NoClaim(Fields):
    """No constant is promised; ``reason`` says in one sentence why.

    Parameters
    ----------
    reason : str
        Why nothing is claimed, in words.
    """

    reason: str


Claim = Unbiased | Contractive | StrictlyContractive | NoClaim


@dataclass(frozen=True)
class UnbiasedMean(Fields):
    """E y = xbar and ``E|y - xbar|^2 <= of_squares S + of_mean M``, of a whole exchange of m vectors.

    S is the mean over the workers of ``|x_i|^2``, M is ``|xbar|^2``; the claim is made at one m and one d.

    Parameters
    ----------
    of_squares : float
        Factor of S; finite, >= 0.
    of_mean : float, optional
        Factor of M; finite, >= 0.
    tight : bool, optional
        Whether the second relation is an equality for all vectors.

    Raises
    ------
    ValueError
        For any other factor.
    """

    of_squares: float
    of_mean: float = 0.0
    tight: bool = False

    def __post_init__(self) -> None:
        for name in ("of_squares", "of_mean"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be finite and >= 0; got {name} = {getattr(self, name)}")

    @classmethod
    def gathered(cls, sent: Unbiased, m: int) -> UnbiasedMean:
        """Return the claim of m messages that everybody decodes (``bounds.theorems.gather_error``).

        Parameters
        ----------
        sent : Unbiased
            What the workers' operator promises.
        m : int
            Number of workers.
        """
        return cls(sent.omega / m, tight=sent.tight)

    @classmethod
    def two_shot(cls, first: Unbiased, second: Unbiased, m: int) -> UnbiasedMean:
        """Return the claim of compressed shards sent to owners, who send compressed means to all.

        ``bounds.theorems.two_shot_error``, exact where both operators are.

        Parameters
        ----------
        first : Unbiased
            What the operator of the first stage promises for a shard.
        second : Unbiased
            What the operator of the second stage promises for a shard.
        m : int
            Number of workers.
        """
        spread = first.omega / m
        return cls(spread * (1 + second.omega), second.omega, tight=first.tight and second.tight)


@dataclass(frozen=True)
class ConservedMean(Fields):
    """What an exchange with memory owes: ``E|sum_t y_t - sum_t xbar_t|^2 <= residual^2 S`` after any number of steps.

    For one group of vectors in every step.  With error feedback at both ends and contractions alpha1, alpha2, and r_j =
    sqrt(alpha_j)/(1 - sqrt(alpha_j)), the rest is at most r_1 + r_2 (1 + 2 r_1): the residuals of workers and owners.

    Parameters
    ----------
    residual : float
        Finite, >= 0.

    Raises
    ------
    ValueError
        For any other residual.
    """

    residual: float

    def __post_init__(self) -> None:
        if not 0 <= self.residual < math.inf:
            raise ValueError(f"residual must be finite and >= 0; got residual = {self.residual}")
