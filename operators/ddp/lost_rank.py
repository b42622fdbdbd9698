"""What a collective that fails does not say: which exchange it was, and that another rank has gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist


def is_lost(error: RuntimeError) -> bool:
    """Return whether a collective has failed for want of a rank.

    Parameters
    ----------
    error : RuntimeError
        What has been raised.
    """
    return isinstance(error, dist.DistError) or "gloo" in str(error).partition("\n")[0]


@contextmanager
def explaining(exchange: str) -> Iterator[None]:
    """Turn the error of a collective into one sentence; other errors pass as they are.

    Parameters
    ----------
    exchange : str
        What is exchanged, and when: "the gradients of step 3".

    Raises
    ------
    RuntimeError
        If a rank has ended, died or stopped answering.
    """
    try:
        yield
    except RuntimeError as error:
        if not is_lost(error):
            raise
        first_line = str(error).partition("\n")[0]
        raise RuntimeError(
            f"the exchange of {exchange} failed, because another rank has ended, died or stopped; all ranks must make "
            f"equally many steps ({first_line})"
        ) from error
