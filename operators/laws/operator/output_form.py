"""Law: the output is an ordinary finite vector of the input's shape."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ..kit.domain import EVERYTHING
from ..kit.examples import Example, at_the_ends
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject, to_numpy


class OutputForm(Law):
    """A float vector of the input's shape, finite, in the library it was given."""

    name = "output-form"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return all the usual vectors, and the ends of a declared domain."""
        yield from super().examples(subject, context)
        if subject.domain != EVERYTHING:
            for d in context.budget.sizes:
                yield from at_the_ends(d)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Look at one raw output."""
        y = subject.raw(example.x, context.key(f"{self.name} {example.name}"))
        expected = torch.Tensor if subject.is_codec or subject.array == "torch" else np.ndarray
        if not isinstance(y, torch.Tensor | np.ndarray) or (not subject.is_codec and not isinstance(y, expected)):
            raise Violation(f"the output must be a {expected.__name__}; got {type(y).__name__}")
        floating = y.dtype.is_floating_point if isinstance(y, torch.Tensor) else y.dtype.kind == "f"
        if not floating:
            raise Violation(f"the output must be of a float type; got {y.dtype}")
        if tuple(y.shape) != example.x.shape:
            raise Violation(f"the output has shape {tuple(y.shape)}; the input {example.x.shape}")
        if not np.isfinite(to_numpy(y)).all():
            raise Violation("the output is not finite")
