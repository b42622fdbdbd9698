"""Measurements of messages, and the claims and sizes of their operator."""

from __future__ import annotations

from dataclasses import dataclass

from bounds.claims import Claim, Contractive, NoClaim, Unbiased
from operators import Size

from .sample import Sample


@dataclass(frozen=True)
class Declared:
    """Claim and message length of an operator at this d.

    Parameters
    ----------
    kind : str
        Class of the claim.
    constant : float or None
        omega or alpha of the claim; None without one.
    exact_bits : int or None, bits
        Length of every message, as in ``Size``.
    expected_upper_bits : float or None, bits
        Upper bound on the mean length, as in ``Size``.
    worst_case_bits : float or None, bits
        Upper bound on every length, as in ``Size``.
    reason : str, optional
        Reason of a missing claim.
    are_stated : bool, optional
        Whether the lengths of the messages are those that a function states, so that nothing was counted.
    """

    kind: str
    constant: float | None
    exact_bits: int | None
    expected_upper_bits: float | None
    worst_case_bits: float | None
    reason: str = ""
    are_stated: bool = False

    @classmethod
    def of(cls, claim: Claim, size: Size, *, are_stated: bool = False) -> Declared:
        """Make one from a claim and a size.

        Parameters
        ----------
        claim : Claim
            Claim of the operator.
        size : Size
            Declared length of its messages.
        are_stated : bool, optional
            Whether the lengths of the messages are those that a function states.
        """
        constant = {Unbiased: "omega", Contractive: "alpha"}
        value = next((getattr(claim, name) for kind, name in constant.items() if isinstance(claim, kind)), None)
        reason = claim.reason if isinstance(claim, NoClaim) else ""
        return cls(type(claim).__name__, value, size.exact, size.expected_upper, size.worst_case, reason, are_stated)


@dataclass(frozen=True)
class Compression:
    """Measurements of one operator's messages on one kind of input.

    Parameters
    ----------
    source : str
        Kind of input.
    d : int
        Number of coordinates.
    declared : Declared
        Claim and size of the operator at d.
    bits : Sample, bits
        Message lengths.
    ratio : Sample
        Squared error over squared norm, one number per message.
    error_per_coordinate : Sample
        Squared error / d; for inputs of unit variance this is the distortion.
    """

    source: str
    d: int
    declared: Declared
    bits: Sample
    ratio: Sample
    error_per_coordinate: Sample
