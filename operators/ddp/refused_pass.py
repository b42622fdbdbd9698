"""An error that a backward pass raises when it has ended, so that the model can make another one.

What a hook itself raises leaves the model's reducer in the middle of the pass: every later pass is then an internal
assertion of torch.  So the gradients of a refused pass become NaN on all ranks, which loss scalers skip, and the error
comes after the reducer has ended the pass.
"""

from __future__ import annotations

import torch


def raise_after_backward(error: Exception) -> None:
    """Raise an error at the end of the backward pass that is under way; called by its hook.

    Parameters
    ----------
    error : Exception
        The same on all ranks.
    """
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def throw() -> None:
        raise error

    queue(lambda: queue(throw))  # behind the callback of the reducer, which may be queued after this call


def not_a_number(buffer: torch.Tensor) -> torch.Tensor:
    """Fill a bucket with NaN and return it.

    Parameters
    ----------
    buffer : tensor
        The bucket's memory.
    """
    return buffer.fill_(float("nan"))
