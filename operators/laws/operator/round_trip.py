"""Law: calling the operator is decoding what it encoded, in the caller's library, dtype and shape."""

from __future__ import annotations

import numpy as np
import torch

from ..kit.examples import Example
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject


class RoundTrip(Law):
    """op(x) equals decode(encode(x)); decode returns float32 of shape (d,); numpy in, numpy out; dtype kept."""

    name = "round-trip"
    needs = "operator"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare the call with the two halves."""
        op, d = subject.target, example.d
        key = context.key(f"{self.name} {example.name}")
        decoded = op.decode(op.encode(example.x, key=key), d=d, key=key)
        if decoded.dtype != torch.float32 or decoded.shape != (d,):
            raise Violation(f"decode must return float32 of shape ({d},); got {decoded.dtype} {tuple(decoded.shape)}")
        for x in (example.x, example.x.reshape(1, d, 1), torch.from_numpy(example.x.copy()).double()):
            y = op(x, key=key)
            if type(y) is not type(x) or y.dtype != x.dtype or y.shape != x.shape:
                raise Violation(f"{type(x).__name__} {x.dtype} {tuple(x.shape)} became {type(y).__name__} {y.dtype}")
            if not np.array_equal(np.asarray(y, np.float32).reshape(-1), decoded.numpy()):
                raise Violation("calling the operator differs from decode(encode(x))")
