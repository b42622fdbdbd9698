"""Law: a strictly contractive operator contracts on every single draw."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np

from bounds.claims import StrictlyContractive

from ..betting.eprocess import SLACK
from ..kit.clock import work_s
from ..kit.examples import Example, at_the_ends, pairs
from ..kit.law import Context, Law, NotApplicable, Violation
from ..kit.subject import Subject

DRAWS = 3
PAIRS = 200  # vectors whose second coordinate sweeps its range
LEAST = 100  # vectors, however long they take


class SureContraction(Law):
    """``|C(x) - x|^2 <= alpha |x|^2`` surely; with tight=True an equality for every x."""

    name = "sure-contraction"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a claim of strict contraction."""
        if not any(isinstance(subject.claim(d), StrictlyContractive) for d in (1, 2, 65)):
            return "strict contraction is not claimed"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return all the usual vectors, the ends of the claims' range, and vectors with a swept coordinate."""
        vectors = chain(
            super().examples(subject, context),
            chain.from_iterable(at_the_ends(d) for d in context.budget.sizes),
            pairs(PAIRS, context.rng(f"{self.name} pairs")),
        )
        until = work_s() + context.budget.seconds
        for number, vector in enumerate(vectors):
            if number >= LEAST and work_s() > until:
                return
            yield vector

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare the error of a few draws with the claim."""
        claim = subject.claim(example.d)
        if not isinstance(claim, StrictlyContractive):
            raise NotApplicable("strict contraction is not claimed at this d")
        promised = float(np.sqrt(claim.alpha))
        for draw in range(DRAWS):
            error = relative_error(subject, example, context, f"{self.name} {draw}")
            if not error <= promised + SLACK:
                raise Violation(f"|C(x) - x|^2 = {error**2:.8g} |x|^2; claimed at most {claim.alpha:.8g} surely")
            if claim.tight and error < promised - SLACK:
                raise Violation(f"|C(x) - x|^2 = {error**2:.8g} |x|^2; claimed equal to {claim.alpha:.8g} for every x")


def relative_error(subject: Subject, example: Example, context: Context, label: str) -> float:
    """Return ``|C(x) - x| / |x|`` of one draw."""
    x = example.x.astype(np.float64)
    error = subject.draw(example.x, context.key(f"{label} {example.name}")) - x
    return float(np.linalg.norm(error) / np.linalg.norm(x))
