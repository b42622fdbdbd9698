"""Groups of workers on which aggregates are tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from ...aggregate.aggregate import Aggregate
from ...key import Key
from .examples import Example, drawn
from .law import Context, Law
from .subject import Subject

WORKERS = (1, 2, 3, 5)


class AggregateLaw(Law):
    """A law about a merger; its example is the first worker's vector."""

    needs = "aggregate"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return a Gaussian and a sparse vector at every size up to 1000."""
        rng = context.rng(self.name)
        for d in (size for size in context.budget.sizes if size <= 1000):
            yield from (e for e in drawn(d, 3, rng) if not e.name.startswith("Cauchy"))


def group(example: Example, n: int, context: Context, label: str) -> list[torch.Tensor]:
    """Return n vectors: the example, then mixtures of it with noise of the same size."""
    rng = context.rng(f"{label} {example.name} {n}")
    size = float(np.abs(example.x).mean())
    noise = rng.standard_normal((n, example.d)) * size * (np.arange(n) > 0)[:, None]
    return [torch.from_numpy((example.x + e).astype(np.float32)) for e in noise]


def workers_of(target: Aggregate) -> tuple[int, ...]:
    """Return the numbers of workers to try: the one that a merger is built for (its ``workers``), or several."""
    fixed = getattr(target, "workers", None)
    return WORKERS if fixed is None else (fixed,)


def keys_of(base: Key, n: int) -> list[Key]:
    """Return the keys of n workers in one step."""
    return [replace(base, rank=rank) for rank in range(n)]
