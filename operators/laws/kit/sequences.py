"""Sequences of vectors on which feedback wrappers are tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from ...key import Key
from .examples import Example, drawn
from .law import Context, Law
from .subject import Subject

LENGTH = 8


class FeedbackLaw(Law):
    """A law about a wrapper with memory; its example is the first vector of a sequence."""

    needs = "feedback"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return a Gaussian, a Cauchy and a sparse vector at every size."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            yield from drawn(d, 3, rng)


def sequence(example: Example, context: Context, label: str) -> list[tuple[torch.Tensor, Key]]:
    """Return LENGTH vectors and keys: the example, noisy copies of it, and one zero vector."""
    rng = context.rng(f"{label} {example.name} sequence")
    key = context.key(f"{label} {example.name}")
    size = float(np.abs(example.x).mean())
    vectors = [example.x + size * rng.standard_normal(example.d) * (t > 0) for t in range(LENGTH)]
    vectors[LENGTH // 2] = np.zeros(example.d)
    return [
        (torch.from_numpy(np.asarray(x, np.float32)), replace(key, step=key.step + t)) for t, x in enumerate(vectors)
    ]
