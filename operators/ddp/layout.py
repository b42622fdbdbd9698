"""How gradients are laid out for compression: by parameter or by bucket, with which method and which random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from ..feedback.feedback import Feedback
from ..key import Key

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
