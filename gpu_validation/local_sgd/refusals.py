"""Why an averaging of compressed movements could not be: numbers that travel in place of a message, and sentences."""

from __future__ import annotations

from collections.abc import Callable

from operators.ddp.gather import Refusal

CHANGED, FAILED, NOT_FINITE = 0, 1, 2  # why a rank has no message; the entry is added to the last


class MeanRefused(RuntimeError):  # noqa: N818  it is told on
    """The owner of a shard could not form its mean.

    Parameters
    ----------
    rank : int
        Which one.
    failure : Exception or None
        What a rank hosted here raised, None if another one did.
    """

    reason = FAILED

    def __init__(self, rank: int, failure: Exception | None) -> None:
        super().__init__(f"rank {rank} could not form the mean of its shard")
        self.rank, self.failure = rank, failure


def in_words(refusal: Refusal, averaging: str, name_of: Callable[[int], str], failure: BaseException | None) -> str:
    """Return the same sentence on every rank, but for the words of this rank's own failure, if it has one.

    Parameters
    ----------
    refusal : Refusal
        The number on which the ranks agreed.
    averaging : str
        Which one.
    name_of : callable
        The name of an entry of the movement.
    failure : exception or None
        What this rank raised, None if nothing.
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
    """Return why a mean of finite movements is refused.

    Parameters
    ----------
    averaging : str
        Which one.
    entry : str
        Name of the first entry that is not finite.
    """
    return f"the mean of {averaging}, overflows: {entry}; lower the learning rate, or clip the gradients"


def outer_in_words(averaging: str, entry: str) -> str:
    """Return why an outer step is refused.

    Parameters
    ----------
    averaging : str
        Which one.
    entry : str
        Name of the first entry that is not finite.
    """
    return f"the outer step of {averaging}, is not finite: {entry}; lower the outer learning rate"


def mean_in_words(rank: int, averaging: str, failure: BaseException | None) -> str:
    """Return why there is no mean, in two shots: the same sentence on every rank, but for its own failure's words.

    Parameters
    ----------
    rank : int
        The owner who has none.
    averaging : str
        Which one.
    failure : exception or None
        What this rank raised, None if nothing.
    """
    why = f": {type(failure).__name__}: {failure}" if failure else "; the error of that rank says why"
    return f"the mean of the shard of rank {rank} in {averaging}, could not be formed{why}"


def explanation(refusal: Refusal | MeanRefused, averaging: str, name_of: Callable[[int], str]) -> ValueError:
    """Return the sentence in place of a number, the same on every rank but for the words of its own failure.

    Parameters
    ----------
    refusal : Refusal or MeanRefused
        Of a movement or a mean that could not be had; not of a model with other parameters.
    averaging : str
        Which one.
    name_of : callable
        The name of an entry of the movement.
    """
    if isinstance(refusal, MeanRefused):
        return ValueError(mean_in_words(refusal.rank, averaging, refusal.failure))
    return ValueError(in_words(refusal, averaging, name_of, refusal.__cause__))
