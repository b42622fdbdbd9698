"""The hook in PyTorch's own convention: a function of a state and a bucket. ::

    model.register_comm_hook(state_of(model, QSGD(levels=16)), compress_hook)

``register`` does just that.
"""

# Annotations are not postponed here: PyTorch compares them with its own classes.
from typing import Protocol

import torch
import torch.distributed as dist


class Reduces(Protocol):
    """A state whose ``reduce`` exchanges a bucket: ``CompressedGradients`` and ``SummedGradients`` are such."""

    def reduce(self, gradients: dist.GradBucket, /) -> torch.futures.Future[torch.Tensor]:
        """Return the future of a bucket's mean."""


def compress_hook(state: Reduces, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """Return the future of a bucket's mean over the ranks, compressed; for ``model.register_comm_hook``.

    Parameters
    ----------
    state : CompressedGradients or SummedGradients
        Of this model, as ``state_of`` makes it.
    bucket : GradBucket
        What the model hands to its hook.

    Raises
    ------
    ValueError
        On every rank, for a gradient that is not finite, or that a rank could not compress.
    RuntimeError
        If a rank has gone.
    """
    return state.reduce(bucket)


class Unregistered:
    """What the copy of a wrapped model has in place of the hook's state: process groups and threads are not copied.

    ``copy.deepcopy`` and ``torch.save`` of a ``DistributedDataParallel`` copy its hook's state too.  The copy averages
    gradients by PyTorch's own all-reduce, until ``register`` gives it a hook; what error feedback remembers is in the
    ``state_dict()`` of the first one.
    """

    def reduce(self, gradients: dist.GradBucket, /) -> torch.futures.Future[torch.Tensor]:
        """Raise RuntimeError."""
        raise RuntimeError(
            "a copied or loaded model has no hook: call register on it, then load_state_dict with the state_dict() of "
            "the first model's hook"
        )


class Copies:
    """A state of which a copy, also by pickle, is ``Unregistered``."""

    def __reduce__(self) -> tuple[type[Unregistered], tuple[()]]:
        return Unregistered, ()
