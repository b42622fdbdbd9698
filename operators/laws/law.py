"""What a law is: something that every honest subject satisfies on every example."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from bounds.claims import Contractive, Unbiased

from ..key import Key
from .budget import Budget
from .examples import Example, drawn, structured
from .sampling import Sample
from .shrink import shrink
from .subject import Subject
from .verdict import Outcome, Verdict

VECTORS = 9  # that the statistical laws try at each of their sizes


class Violation(AssertionError):  # noqa: N818  it is the finding, not an error of the kit
    """The law does not hold; the message says what was seen and what was promised."""


class Undecided(Exception):  # noqa: N818
    """The law cannot judge this example; the message says why."""


class Context:
    """What the laws of one check share: budget, seed, clock and the random draws already made."""

    def __init__(self, budget: Budget, seed: int, *, parts: int = 1) -> None:
        self.budget = budget
        self.seed = seed
        self.parts = parts  # statistical laws among which the false-alarm budget is split
        self._samples: dict[bytes, Sample] = {}

    def rng(self, label: str) -> np.random.Generator:
        """A generator that depends on the seed and the label alone."""
        return np.random.default_rng([self.seed, zlib.crc32(label.encode())])

    def key(self, label: str) -> Key:
        """A key that depends on the seed and the label alone."""
        return fresh_key(self.rng(label))

    def level(self, examples: int) -> float:
        """The false-alarm probability that one example of one statistical law may spend."""
        return self.budget.false_alarm / (self.parts * examples)

    def sample(self, subject: Subject, example: Example) -> Sample:
        """The draws of a subject at an example, shared by all laws of the check."""
        address = example.x.tobytes()
        if address not in self._samples:
            rng = self.rng(f"sample {zlib.crc32(address)} {example.d}")
            self._samples[address] = Sample(subject, example.x, lambda: fresh_key(rng))
        return self._samples[address]

    def draws(self, subject: Subject, example: Example) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(errors, bits) in batches until the draws, or an example's share of the seconds, are used up.

        Stopping by the clock is harmless: the tests that read this are valid at any time.
        """
        share_s = self.budget.seconds / (VECTORS * len(self.budget.drawn_sizes))
        yield from self.sample(subject, example).batches(self.budget.draws, share_s)


def fresh_key(rng: np.random.Generator) -> Key:
    """A key with every field drawn."""
    seed, step, rank, layer = (int(v) for v in rng.integers(0, [1 << 62, 1 << 40, 1 << 10, 1 << 8]))
    return Key(seed, step=step, rank=rank, layer=layer)


class Law(ABC):
    """One law, one file.

    name : its identifier in reports and test ids.  statistical : whether it spends false-alarm budget.
    needs : the least that a subject must have: "claim" (anything that maps vectors), "codec", "key",
    "messages" (bits can be counted), "words" (its random numbers can be chosen: operators, and what torch, numpy
    and ``random`` draw for others) or "operator"; or else a "feedback" or an "aggregate".
    shrinks : whether the law makes sense at any vector.
    """

    name: ClassVar[str]
    statistical: ClassVar[bool] = False
    needs: ClassVar[str] = "claim"
    shrinks: ClassVar[bool] = True

    def judges(self, subject: Subject) -> bool:
        """Whether the law is about this kind of thing: a compressor, a feedback wrapper or an aggregate."""
        return subject.kind == (self.needs if self.needs in ("feedback", "aggregate") else "compressor")

    def applies(self, subject: Subject) -> str | None:
        """Why the law has nothing to say about a subject, or None if it has."""
        if self.needs not in ("claim", "words", "feedback", "aggregate") and not subject.is_codec:
            return "a plain function has no codec, no key and no declared contract"
        if self.needs == "key" and not subject.takes_key:
            return "encode takes no key"
        if self.needs == "messages" and not subject.has_messages:
            return "encode returns no Message, so bits cannot be counted"
        if self.needs == "operator" and not subject.is_operator:
            return "only an Operator promises the input contract"
        return None

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """The vectors on which it is tried: structured and drawn ones at every size of the budget."""
        rng = context.rng(self.name)
        for d in context.budget.sizes:
            yield from structured(d)
            yield from drawn(d, context.budget.drawn, rng)

    @abstractmethod
    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Raises Violation if it does not hold, Undecided if it cannot judge."""

    def run(self, subject: Subject, context: Context) -> Verdict:
        """Try every example; on a violation, shrink it."""
        reason = self.applies(subject)
        if reason is not None:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, reason)
        decided, undecided = 0, ""
        for example in subject.domain.of(self.examples(subject, context)):
            outcome, text = self.judge(subject, example, context)
            if outcome is Outcome.FAIL:
                small = example
                if self.shrinks:
                    small, text = shrink(self, subject, example, text, context)
                return Verdict(self.name, outcome, text, small.name, small.x)
            decided += outcome is Outcome.PASS
            undecided = text or undecided
        try:
            remark = self.remark(subject, context)
        except Exception as error:  # as in judge
            return Verdict(self.name, Outcome.FAIL, f"raised {type(error).__name__}: {error}")
        if remark:
            return Verdict(self.name, Outcome.NOTE, remark)
        if undecided and not decided:
            return Verdict(self.name, Outcome.NOT_APPLICABLE, undecided)
        return Verdict(self.name, Outcome.PASS)

    def remark(self, subject: Subject, context: Context) -> str:
        """Something worth knowing about a subject that passed; empty for most laws."""
        return ""

    def judge(self, subject: Subject, example: Example, context: Context) -> tuple[Outcome, str]:
        """PASS, FAIL or NOT_APPLICABLE at one example, with the reason; a subject that raises fails."""
        try:
            self.holds(subject, example, context)
        except Violation as found:
            return Outcome.FAIL, str(found)
        except Undecided as reason:
            return Outcome.NOT_APPLICABLE, str(reason)
        except Exception as error:  # whatever the subject raises is a finding
            return Outcome.FAIL, f"raised {type(error).__name__}: {error}"
        return Outcome.PASS, ""


def second_moment(claim: object) -> float | None:
    """The claimed bound of E|C(x) - x|^2 / |x|^2, or None if nothing is claimed."""
    if isinstance(claim, Unbiased):
        return float(claim.omega)
    if isinstance(claim, Contractive):
        return float(claim.alpha)
    return None
