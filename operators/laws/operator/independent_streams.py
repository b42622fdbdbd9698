"""Law: errors under different keys are uncorrelated (statistical, anytime-valid)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bounds.claims import Unbiased

from ...key import Key
from ..betting.eprocess import DirectionBets
from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, Violation, fresh_key
from ..kit.subject import Subject

EXAMPLES = 2
SHARE = 2  # pairs a field, for every draw a vector of the other statistical laws
BATCH = 50


class IndependentStreams(Law):
    """E<C(x, key) - x, C(x, key') - x> = 0 for keys that differ in one field: workers' errors average out.

    Uses that independent unbiased errors have E<e, e'> = 0 and E<e, ``e'>^2 <= E|e|^2 E|e'|^2``.
    """

    name = "independent-streams"
    statistical = True
    needs = "key"
    shrinks = False

    def applies(self, subject: Subject) -> str | None:
        """Return needs a positive variance that is claimed to have mean zero."""
        claim = subject.claim(65)
        if not isinstance(claim, Unbiased) or claim.omega == 0:
            return "no variance is claimed"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return Gaussian vectors of 65 coordinates."""
        rng = context.rng(self.name)
        for _ in range(EXAMPLES):
            yield from drawn(65, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet on the product of two errors."""
        fields = ["seed", "step", "layer"] + ["rank"] * (not getattr(subject.target, "ranks_agree", False))
        level = context.level(EXAMPLES * len(fields))
        omega = subject.claim(example.d).omega  # type: ignore[union-attr]
        for field in fields:
            rng = context.rng(f"{self.name} {example.name} {field}")
            bets = DirectionBets(omega**2, np.ones((1, 1)))
            draws = 0
            while draws < SHARE * context.budget.draws:
                bets.update(np.array([[_product(subject, example.x, fresh_key(rng), field)] for _ in range(BATCH)]))
                draws += BATCH
                if bets.wealth.rejects(level):
                    raise Violation(
                        f"errors under keys that differ in their {field} are correlated: "
                        f"mean <e, e'> = {float(bets.sum[0]) / draws:.3g} |x|^2 over {draws} pairs"
                    )


def _product(subject: Subject, x: np.ndarray, key: Key, field: str) -> float:
    other = replace(key, **{field: getattr(key, field) + 1})
    return float(_error(subject, x, key) @ _error(subject, x, other))


def _error(subject: Subject, x: np.ndarray, key: Key) -> np.ndarray:
    wide = x.astype(np.float64)
    return (subject.draw(x, key) - wide) / np.linalg.norm(wide)
