"""Law: only the values of a vector matter, not how they lie in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject


class Strides(Law):
    """Strided, reversed, transposed, expanded, read-only and gradient-tracking inputs give the same message."""

    name = "strides"
    needs = "operator"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return one drawn vector at every size."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Encode several views of the same values."""
        key = context.key(f"{self.name} {example.name}")
        expected = subject.target.encode(example.x, key=key)
        for kind, view in views(example.x):
            message = subject.target.encode(view, key=key)
            if message.bits != expected.bits or not torch.equal(message.payload, expected.payload):
                raise Violation(f"a {kind} input gives another message than a contiguous one")
        constant = torch.full((1,), 0.75).expand(example.d)
        flat = subject.target.encode(constant.contiguous(), key=key)
        if not torch.equal(subject.target.encode(constant, key=key).payload, flat.payload):
            raise Violation("an expanded (stride 0) input gives another message than a contiguous one")


def views(x: np.ndarray) -> Iterator[tuple[str, np.ndarray | torch.Tensor]]:
    """Return the same values, in C order, laid out differently."""
    spaced = np.full(2 * x.size, 7, np.float32)
    spaced[::2] = x
    yield "strided", spaced[::2]
    yield "strided torch", torch.from_numpy(spaced)[::2]
    yield "reversed", x[::-1].copy()[::-1]
    frozen = x.copy()
    frozen.setflags(write=False)
    yield "read-only", frozen
    yield "gradient-tracking", torch.from_numpy(x.copy()).requires_grad_()
    if x.size % 2 == 0:
        yield "transposed", np.asfortranarray(x.reshape(2, -1))
        yield "transposed torch", torch.from_numpy(x.reshape(2, -1).T.copy()).T
