"""Law: no global random state is read or changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import torch

from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, Violation
from ..kit.subject import Subject, to_numpy


class RandomState(Law):
    """Python's, numpy's and torch's generators are untouched, and the outcome does not depend on them."""

    name = "random-state"
    needs = "key"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return one drawn vector at every size."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Run between two snapshots, under two different global states; the caller's state is restored."""
        key = context.key(f"{self.name} {example.name}")
        saved = _snapshot()
        try:
            outputs = []
            for seed in (1, 2):
                _seed(seed)
                before = _snapshot()
                outputs.append(to_numpy(subject.decode(subject.encode(example.x, key), example.d, key)))
                if not _same(before, _snapshot()):
                    raise Violation("a global random state was changed")
            if not np.array_equal(outputs[0], outputs[1]):
                raise Violation("the outcome depends on a global random state")
        finally:
            _restore(saved)


State = tuple[object, dict[str, object], torch.Tensor]


def _snapshot() -> State:
    return random.getstate(), np.random.get_state(legacy=False), torch.get_rng_state()  # noqa: NPY002


def _same(a: State, b: State) -> bool:
    return a[0] == b[0] and repr(_plain(a[1])) == repr(_plain(b[1])) and torch.equal(a[2], b[2])


def _plain(state: dict[str, object]) -> object:
    inner = state["state"]
    return {**inner, "key": inner["key"].tobytes()} if isinstance(inner, dict) and "key" in inner else state


def _seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def _restore(state: State) -> None:
    random.setstate(state[0])  # type: ignore[arg-type]
    np.random.set_state(state[1])  # noqa: NPY002
    torch.set_rng_state(state[2])
