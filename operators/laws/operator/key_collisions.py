"""Law: keys that differ lead to randomness that differs, also where a field is cut, wrapped or added to another.

A pair of keys collides if its outcomes agree for every one of TRIALS base keys.  Outcomes that agree by chance are
ruled out by controls: where the chance is c, at most MOST of CONTROLS unrelated pairs agree and all TRIALS of a pair do
with probability below 2e-9 for every c, for all pairs together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...key import Key
from ..kit.examples import Example, drawn
from ..kit.law import Context, NotApplicable, Violation
from ..kit.subject import Subject, to_numpy
from .key_separation import SIZE, KeySeparation

CONTROLS, MOST, TRIALS = 24, 6, 96
STRIDES = (256, 1000, 1024, 4096, 10_000, 1 << 16, 1 << 20, 1 << 31, 1 << 32)
RANK_STRIDES = (8, 16, 64, 100, 128, 256, 512, 1000, 1024, 4096, 1 << 16)
SUMMED = (("seed", "step"), ("seed", "rank"), ("step", "rank"), ("step", "layer"), ("rank", "layer"), ("seed", "layer"))


class KeyCollisions(KeySeparation):
    """Fields taken modulo something, truncated, added up or exchanged: the pairs of keys that then agree do not."""

    name = "key-collisions"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return one Gaussian vector of 65 coordinates."""
        yield from drawn(SIZE, 1, context.rng(self.name))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Try every pair until its outcomes differ."""

        def agree(first: Key, second: Key) -> bool:
            outcomes = (
                to_numpy(subject.decode(subject.encode(example.x, key), SIZE, key)).tobytes() for key in (first, second)
            )
            return next(outcomes) == next(outcomes)

        controls = (context.key(f"{self.name} control {i}") for i in range(2 * CONTROLS))
        if sum(agree(next(controls), next(controls)) for _ in range(CONTROLS)) > MOST:
            raise NotApplicable("unrelated keys often lead to the same outcome")
        ranks = not getattr(subject.target, "ranks_agree", False)
        for what in _pairs(_base(context, self.name, 0), ranks=ranks):
            bases = (_base(context, self.name, i) for i in range(TRIALS))
            if all(agree(*_pairs(base, ranks=ranks)[what]) for base in bases):
                raise Violation(f"keys that differ in {what} lead to the same outcome, {TRIALS} times of {TRIALS}")


def _base(context: Context, name: str, i: int) -> Key:
    """Return a key with fields of the sizes in use: a few thousand steps, some hundred ranks."""
    rng = context.rng(f"{name} base {i}")
    seed, step, rank, layer = (int(v) for v in rng.integers(1, [1 << 40, 5000, 500, 100]))
    return Key(seed, step=step, rank=rank + layer + 1, layer=layer)


def _pairs(base: Key, *, ranks: bool) -> dict[str, tuple[Key, Key]]:
    """Return what differs -> two keys."""
    pairs: dict[str, tuple[Key, Key]] = {}
    for field, strides in (("seed", STRIDES), ("step", STRIDES), ("layer", STRIDES), ("rank", RANK_STRIDES)):
        for stride in strides:
            pairs[f"{field} by {stride}"] = base, replace(base, **{field: getattr(base, field) + stride})
    for first, second in SUMMED:
        changes = {first: getattr(base, first) + 1, second: getattr(base, second) - 1}
        pairs[f"{first} by +1 and {second} by -1"] = base, replace(base, **changes)
    pairs["step and rank exchanged"] = base, replace(base, step=base.rank or 0, rank=base.step)
    return pairs if ranks else {what: pair for what, pair in pairs.items() if "rank" not in what}
