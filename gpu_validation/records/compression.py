"""What was measured of messages, and what their operator declares."""

from __future__ import annotations

from dataclasses import dataclass

from bounds.claims import Claim, Contractive, NoClaim, Unbiased
from operators import Size

from .sample import Sample


@dataclass(frozen=True)
class Declared:
    """What the operator promises at this d: its claim and its message length.

    Parameters
    ----------
    kind : str
        Class of the claim.
    constant : float or None
        Its omega or alpha, None without one.
    exact_bits : int or None, bits
        The length of every message, as in ``Size``.
    expected_upper_bits : float or None, bits
        Above every mean length, as in ``Size``.
    worst_case_bits : float or None, bits
        Above every length, as in ``Size``.
    reason : str, optional
        Why there is none.
    """

    kind: str
    constant: float | None
    exact_bits: int | None
    expected_upper_bits: float | None
    worst_case_bits: float | None
    reason: str = ""

    @classmethod
    def of(cls, claim: Claim, size: Size) -> Declared:
        """Flatten a claim and a size.

        Parameters
        ----------
        claim : Claim
            What the operator promises.
        size : Size
            Length of its messages.
        """
        constant = {Unbiased: "omega", Contractive: "alpha"}
        value = next((getattr(claim, name) for kind, name in constant.items() if isinstance(claim, kind)), None)
        reason = claim.reason if isinstance(claim, NoClaim) else ""
        return cls(type(claim).__name__, value, size.exact, size.expected_upper, size.worst_case, reason)


@dataclass(frozen=True)
class Compression:
    """Messages of one operator on one kind of input.

    Parameters
    ----------
    source : str
        Kind of input.
    d : int
        Number of coordinates.
    declared : Declared
        What the operator promises there.
    bits : Sample, bits
        Message lengths.
    ratio : Sample
        Squared error over squared norm, one number a message.
    error_per_coordinate : Sample
        Squared error / d (for inputs of unit variance this is the distortion).
    """

    source: str
    d: int
    declared: Declared
    bits: Sample
    ratio: Sample
    error_per_coordinate: Sample
