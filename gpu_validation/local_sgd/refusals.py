"""Refusals of an averaging of compressed movements: numbers sent in place of a message, and their error sentences."""

from __future__ import annotations

from collections.abc import Callable

from operators.ddp.collectives import Refusal

CHANGED, FAILED, NOT_FINITE = 0, 1, 2  # reasons of a rank without a message; NOT_FINITE + index of the entry


class MeanRefused(RuntimeError):  # noqa: N818  the caller explains it
    """Raised if the owner of a shard could not form its mean.

    Parameters
    ----------
    rank : int
        Rank of the owner.
    failure : Exception or None
        Exception of a rank hosted here, None if the failure is elsewhere.
    """

    reason = FAILED

    def __init__(self, rank: int, failure: Exception | None) -> None:
        super().__init__(f"rank {rank} could not form the mean of its shard")
        self.rank, self.failure = rank, failure


def in_words(refusal: Refusal, averaging: str, name_of: Callable[[int], str], failure: BaseException | None) -> str:
    """Return the error sentence of a refusal, the same on every rank except for the text of its own ``failure``.

    ``name_of`` returns the name of an entry of the movement.
    """
    who = f"the movement of rank {refusal.rank} in {averaging},"
    if refusal.reason == FAILED:
        why = f": {type(failure).__name__}: {failure}" if failure else "; the error of that rank says why"
        return f"{who} could not be compressed{why}"
    return (
        f"{who} is not finite in binary32: {name_of(refusal.reason - NOT_FINITE)}; look for an overflow in the loss, "
        "lower the learning rate, or clip the gradients"
    )


def overflow_in_words(averaging: str, entry: str) -> str:
    """Return the error sentence of an overflowing mean of finite movements."""
    return f"the mean of {averaging}, overflows: {entry}; lower the learning rate, or clip the gradients"


def outer_in_words(averaging: str, entry: str) -> str:
    """Return the error sentence of a non-finite outer step."""
    return f"the outer step of {averaging}, is not finite: {entry}; lower the outer learning rate"


def mean_in_words(rank: int, averaging: str, failure: BaseException | None) -> str:
    """Return the error sentence of a missing mean in two shots, equal on all ranks except for the own ``failure``."""
    why = f": {type(failure).__name__}: {failure}" if failure else "; the error of that rank says why"
    return f"the mean of the shard of rank {rank} in {averaging}, could not be formed{why}"


def explanation(refusal: Refusal | MeanRefused, averaging: str, name_of: Callable[[int], str]) -> ValueError:
    """Return the ValueError of a refusal, the same on every rank except for the text of its own failure."""
    if isinstance(refusal, MeanRefused):
        return ValueError(mean_in_words(refusal.rank, averaging, refusal.failure))
    return ValueError(in_words(refusal, averaging, name_of, refusal.__cause__))
