"""Law: every float type is accepted, worked on in binary32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject

TYPES = (torch.float64, torch.float16, torch.bfloat16)


class Dtypes(Law):
    """float64, float16 and bfloat16 give the same message as the same values in float32."""

    name = "dtypes"
    needs = "operator"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return drawn vectors at every size; the entries of structured ones are the same number in every type."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            yield from drawn(d, context.budget.drawn, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Encode each type and its float32 copy."""
        key = context.key(f"{self.name} {example.name}")
        scaled = torch.from_numpy(example.x / max(1.0, float(np.abs(example.x).max())))
        for dtype in TYPES:
            x = scaled.to(dtype)
            a, b = subject.target.encode(x, key=key), subject.target.encode(x.float(), key=key)
            if a.bits != b.bits or not torch.equal(a.payload, b.payload):
                raise Violation(f"{dtype} gives another message than the same values in float32")
            y = subject.target(x, key=key)
            if y.dtype != dtype:
                raise Violation(f"{dtype} in, {y.dtype} out")
