"""A bucket of DDP: where its parameters lie, and its passage through the hook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..feedback.feedback import Feedback
from ..key import Key
from .collectives import Refusal

# How gradients are laid out for compression: by parameter or by bucket, with which method and which random numbers.

MethodOf = Callable[[str], Feedback]  # of a parameter


@dataclass(frozen=True)
class Layout:
    """What both ends of all messages have in common.

    Parameters
    ----------
    method : Feedback
        Compresses buckets.
    of_parameter : callable
        The method for one parameter by its name; a matrix method knows its shape.
    layerwise : bool
        Whether every parameter is compressed by itself, or all of a bucket as one vector.
    numbers : mapping of str to int
        Of the parameters, folded into the key.
    key : Key
        Of the run.
    """

    method: Feedback
    of_parameter: MethodOf
    layerwise: bool
    numbers: Mapping[str, int]
    key: Key


def joined(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Return vectors one after the other; a single one is not copied.

    Parameters
    ----------
    parts : sequence of tensor
        The vectors; none make an empty one.
    """
    return parts[0] if len(parts) == 1 else torch.cat(list(parts)) if parts else torch.empty(0)


# A bucket of the model: the gradients to read, the means to write, and the words for what is wrong with them.


class Bucket:
    """The parameters of a bucket in the order of the model; those without entries are left out.

    Parameters
    ----------
    bucket : GradBucket
        What the model hands to its hook.
    names : mapping of int to str
        Of the parameters, by their ``id``.
    numbers : mapping of str to int
        Their places in the model.
    step : int
        Number of the exchange.

    Raises
    ------
    ValueError
        For a sparse gradient.
    """

    def __init__(self, bucket: Any, names: Mapping[int, str], numbers: Mapping[str, int], step: int) -> None:
        self.buffer, self.step = bucket.buffer(), step
        if self.buffer.is_sparse:
            raise ValueError(f"the gradient of {names[id(bucket.parameters()[0])]} is sparse: make it dense")
        views = {names[id(p)]: g for p, g in zip(bucket.parameters(), bucket.gradients(), strict=True) if g.numel()}
        self.gradients = {name: views[name] for name in sorted(views, key=numbers.__getitem__)}

    @property
    def names(self) -> list[str]:
        """Names of the parameters."""
        return list(self.gradients)

    @property
    def sizes(self) -> list[int]:
        """Their entries."""
        return [gradient.numel() for gradient in self.gradients.values()]

    def flat(self) -> torch.Tensor:
        """Return the gradients one after the other, float32, where they lie."""
        return joined([gradient.reshape(-1).to(torch.float32) for gradient in self.gradients.values()])

    def reason(self) -> int:
        """Return the number of the first entry that is not finite; that of all entries if there is none."""
        return first_not_finite(self.flat())

    def rank_of(self, member: int) -> int:
        """Return the member of the group itself.

        Parameters
        ----------
        member : int
            Counted in the group.
        """
        return member

    def write(self, means: Sequence[torch.Tensor]) -> torch.Tensor:
        """Write the mean of every parameter, flat, in place of its gradient; returns the bucket's memory.

        Parameters
        ----------
        means : sequence of tensor
            In the order of the parameters.
        """
        for gradient, mean in zip(self.gradients.values(), means, strict=True):
            gradient.copy_(mean.view(gradient.shape))
        return self.buffer

    def words(self, refusal: Refusal) -> str:
        """Say in one sentence, the same on every rank, why a rank had nothing to send.

        Parameters
        ----------
        refusal : Refusal
            With the number of the first entry that is not finite, or of entries if all are.
        """
        start = 0
        for name, size in zip(self.gradients, self.sizes, strict=True):
            if start <= refusal.reason < start + size:
                return (
                    f"the gradient of {name} on rank {refusal.rank} is not finite in binary32: entry "
                    f"{refusal.reason - start} at step {self.step}; look for an overflow in the loss, or clip"
                )
            start += size
        return f"rank {refusal.rank} could not compress its gradient at step {self.step}; its error says why"


def first_not_finite(x: torch.Tensor) -> int:
    """Return the number of the first entry that is not finite; that of all entries if there is none.

    Parameters
    ----------
    x : tensor, shape (d,)
        The entries.
    """
    finite = torch.isfinite(x)
    return x.numel() if finite.all() else int(finite.int().argmin())
