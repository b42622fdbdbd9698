"""Law: what cannot be compressed is refused with a clear error."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from ..kit.examples import Example
from ..kit.law import Context, LawOfOneVector, Violation
from ..kit.subject import Subject


class InputContract(LawOfOneVector):
    """NaN and infinity: ValueError naming the index; integers: TypeError; empty: ValueError; d < 1: ValueError."""

    name = "input-contract"
    needs = "operator"

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Spoil one entry; then spoil the whole."""
        key = context.key(f"{self.name} {example.name}")
        index = int(context.rng(f"{self.name} {example.name}").integers(example.d))
        for bad in (np.nan, np.inf, -np.inf):
            x = example.x.copy()
            x[index] = bad
            for spoilt in (x, torch.from_numpy(x.copy())):
                error = _refused(partial(subject.target.encode, spoilt, key=key), ValueError, f"{bad} at index {index}")
                if str(index) not in str(error):
                    raise Violation(f"the error for {bad} does not name index {index}: {error}")
        _refused(lambda: subject.target.encode(np.ones(3, np.int64), key=key), TypeError, "an integer vector")
        _refused(lambda: subject.target.encode(np.empty(0, np.float32), key=key), ValueError, "an empty vector")
        message = subject.target.encode(example.x, key=key)
        _refused(lambda: subject.target.decode(message, d=0, key=key), ValueError, "d = 0")


def _refused(action: Callable[[], Any], error: type[Exception], what: str) -> Exception:
    try:
        action()
    except error as seen:
        return seen
    except Exception as seen:
        raise Violation(f"{what}: expected {error.__name__}; got {type(seen).__name__}: {seen}") from seen
    raise Violation(f"{what} was accepted; expected {error.__name__}")
