"""Law: every field of the key leads to randomness of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...key import Key
from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, NotApplicable, Violation, second_moment
from ..kit.subject import Subject, to_numpy

KEYS = 24
SIZE = 65
FIELDS = ("seed", "step", "rank", "layer")


class KeySeparation(Law):
    """Changing seed, step, rank, layer or fold changes the outcome, unless the operator is deterministic.

    An operator whose ranks are meant to draw alike says so with ``ranks_agree = True``.
    """

    name = "key-separation"
    needs = "key"
    shrinks = False

    def applies(self, subject: Subject) -> str | None:
        """Return needs declared or possible randomness."""
        if subject.randomness == "none":
            return "there is no randomness"
        if second_moment(subject.claim(SIZE)) == 0:
            return "no error is claimed, so no randomness can show"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return two Gaussian vectors of 65 coordinates, where a coincidence is out of the question."""
        rng = context.rng(self.name)
        for _ in range(2):
            yield from drawn(SIZE, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Vary one field at a time over several values."""
        base = context.key(f"{self.name} {example.name}")
        varied = {field: [_with(base, field, i) for i in range(KEYS)] for field in FIELDS}
        varied["path"] = [base.fold_in(i) for i in range(KEYS)]
        if getattr(subject.target, "ranks_agree", False):
            del varied["rank"]
        outcomes = {field: _outcomes(subject, example.x, keys) for field, keys in varied.items()}
        if max(outcomes.values()) == 1 and subject.randomness is None:
            raise NotApplicable("it seems to be deterministic")
        dead = [field for field, n in outcomes.items() if n == 1]
        if dead:
            raise Violation(f"{KEYS} values of the key's {' and '.join(dead)} all give the same outcome")


def _with(key: Key, field: str, value: int) -> Key:
    changes: dict[str, Any] = {field: value}
    return replace(key, **changes)


def _outcomes(subject: Subject, x: np.ndarray, keys: list[Key]) -> int:
    return len({to_numpy(subject.decode(subject.encode(x, key), x.size, key)).tobytes() for key in keys})
