"""Check that all ranks have made the same number of local steps on the same model, by numbers averaged with it.

A count is sent as digits below 16 and their squares, which bfloat16 represents exactly.  If all counts are equal, so
are the means.  Otherwise a digit has a variance of at least about 1/m, which every rank sees.  One more number is 1 on
a rank whose model has other parameters than at the last averaging, else 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch

BASE_BITS, DIGITS = 4, 8
VALUES = 2 * DIGITS + 1
TOLERANCE = 2.0**-14  # above the rounding error of a mean square in float32, 2.7e-5; below the variance for m <= 10^4


class UnevenSteps(RuntimeError):  # noqa: N818  a public name
    """Raised on all ranks if they reach an averaging after different numbers of local steps."""

    def __init__(self, found: str) -> None:
        super().__init__(
            f"{found}: every rank must make the same number of local steps and resume from the same one; give all "
            "ranks equally many batches, or stop together"
        )


class UnevenModels(RuntimeError):  # noqa: N818  a public name
    """Raised if parameters were added, removed, frozen or unfrozen, or a first buffer added, on some ranks only.

    Parameters
    ----------
    found : str, optional
        Description of the first tensor in which ranks differ.
    """

    def __init__(self, found: str = "") -> None:
        super().__init__(
            "since the last averaging, parameters were added, removed, frozen or unfrozen on some ranks only, or not "
            "alike on all: change the model in the same way on every rank between the same two local steps"
            + (f" ({found})" if found else "")
        )


@lru_cache(maxsize=2)
def encode(count: int, changed: bool = False) -> torch.Tensor:
    """Return a count below 2^32 as numbers to be averaged, shape (17,), float32; do not write to it.

    ``changed`` says that this rank's model has other parameters than at the last averaging.
    """
    digits = [(count >> (BASE_BITS * i)) & ((1 << BASE_BITS) - 1) for i in range(DIGITS)]
    return torch.from_numpy(np.array([*digits, *(digit * digit for digit in digits), changed], np.float32))


def require(averaged: torch.Tensor, count: int, changed: bool = False) -> None:
    """Raise UnevenModels or UnevenSteps unless ``averaged`` is the mean of equal ranks' ``encode``, shape (17,)."""
    if torch.equal(averaged, encode(count, changed).to(averaged)):
        return
    means, squares, flag = averaged.detach().cpu().split([DIGITS, DIGITS, 1])
    if abs(flag.item() - changed) > TOLERANCE:
        raise UnevenModels
    difference = torch.maximum((means - encode(count)[:DIGITS]).abs().max(), (squares - means**2).abs().max())
    if difference > TOLERANCE:
        mean = sum(float(digit) * 2.0 ** (BASE_BITS * i) for i, digit in enumerate(means))
        raise UnevenSteps(f"this rank has made {count} local steps, those it averages with {mean:.6g} on average")
