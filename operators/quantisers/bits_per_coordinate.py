"""The check that all operators of a fixed number of bits per coordinate share."""

from __future__ import annotations


def require_bits_per_coordinate(bits_per_coordinate: int, most: int) -> None:
    """Refuse an invalid number of bits per coordinate.

    Parameters
    ----------
    bits_per_coordinate : int, bits
        What a user gives.
    most : int, bits
        The largest that the operator has a grid for.

    Raises
    ------
    ValueError
        Unless it is an integer from 1 to ``most``.
    """
    if bits_per_coordinate not in range(1, most + 1):
        raise ValueError(
            f"bits_per_coordinate must satisfy 1 <= bits_per_coordinate <= {most}; "
            f"got bits_per_coordinate = {bits_per_coordinate}"
        )
