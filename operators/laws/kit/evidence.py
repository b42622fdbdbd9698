"""The draws of a check: made once, shared by all statistical laws, and sent to where the evidence grows.

Which vector is drawn at next depends on what has been seen and on nothing later, so every bet stays fair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ...key import Key
from ...message import Message
from .clock import work_s
from .examples import Example
from .law import Violation
from .subject import Subject, to_numpy

if TYPE_CHECKING:
    from ..betting.budget import Budget

FIRST, BATCH = 8, 60
EXTRA = 5  # times the usual draws are made where the power is not reached
_AGAIN = 1.25  # the power is computed whenever the draws have grown by this factor


@dataclass(frozen=True)
class Draws:
    """Independent draws at one vector: errors ``(C(x) - x)/|x|``, shape (n, d), and message lengths, shape (n,)."""

    errors: np.ndarray
    bits: np.ndarray


class Bets(Protocol):
    """One law's bets on the draws at all vectors."""

    def update(self, vector: int, draws: Draws) -> None:
        """Bet on a batch that is drawn at one vector; ignored where the law says nothing."""

    def over(self) -> bool:
        """Return whether no further draw can matter."""

    def enough(self) -> bool:
        """Return whether the power that was asked for is reached."""

    def richest(self) -> int | None:
        """Return the vector with the most evidence against the claim."""

    def promising(self) -> int | None:
        """Return the vector where a fault would be found with the fewest draws."""


class Source:
    """Fresh draws of a subject, each with a fresh key."""

    def __init__(self, subject: Subject, next_key: Callable[[], Key]) -> None:
        self.subject, self.next_key = subject, next_key

    def draw(self, example: Example, n: int) -> Draws:
        """Return n draws; a deterministic subject is run once.

        Raises
        ------
        Violation
            If an entry of an output is not finite: no bet could count it.
        """
        wide = example.x.astype(np.float64)
        norm = float(np.linalg.norm(wide))
        errors, bits = np.empty((n, wide.size)), np.zeros(n)
        independent = 1 if self.subject.randomness == "none" else n
        for i in range(independent):
            key = self.next_key()
            if self.subject.is_codec:
                message = self.subject.encode(example.x, key)
                output = to_numpy(self.subject.decode(message, wide.size, key)).reshape(wide.shape)
                bits[i] = message.bits if isinstance(message, Message) else 0
            else:
                output = self.subject.draw(example.x, key)
            if not np.isfinite(output).all():
                raise Violation(f"an output is not finite, one of {i + 1} drawn at {example.name}")
            errors[i] = (output - wide) / norm
        errors[independent:], bits[independent:] = errors[0], bits[0]
        return Draws(errors, bits)


def collect(source: Source, examples: list[Example], bets: list[Bets], budget: Budget) -> int:
    """Draw until every law is decided or the budget is spent; the number of draws made.

    When one law is decided, the others get as many draws again.  The first ``budget.least_draws`` are
    made however long they take.
    """
    usual = budget.draws * len(examples)
    least = min(budget.least_draws, usual)
    first = max(1, min(FIRST, least // len(examples)))
    started, drawn, again, most = work_s(), 0, 0.0, EXTRA * usual
    for vector in _order(len(examples), bets, usual):
        spent_s = work_s() - started
        if any(b.over() for b in bets):
            most = min(most, max(least, 2 * drawn))  # something is wrong: the other laws get as many draws again
        if all(b.over() for b in bets) or drawn >= most or (drawn >= least and spent_s > budget.most_seconds):
            break
        if drawn >= again and (drawn >= usual or (drawn >= least and spent_s > budget.seconds)):
            if all(b.over() or b.enough() for b in bets):
                break
            again = _AGAIN * drawn
        n = first if drawn < first * len(examples) else BATCH
        draws = source.draw(examples[vector], n)
        for b in bets:
            if not b.over():
                b.update(vector, draws)
        drawn += n
    return drawn


def _order(n: int, bets: list[Bets], usual: int) -> Iterator[int]:
    """Return every vector once; then in turn where a fault would show soonest, the next one, and where most is won.

    Beyond the usual draws only the power is missing, and the next one is left out.
    """
    yield from range(n)
    turn, drawn = 0, 0
    while True:
        soonest = [b.promising() for b in bets]
        open_bets = [b for b in bets if not b.over()] or bets
        richest = open_bets[turn % len(open_bets)].richest()
        following = soonest if drawn >= usual else [turn % n]
        chosen = [v for v in (*soonest, *following, *soonest, richest, *soonest) if v is not None]
        yield from chosen
        turn, drawn = turn + 1, drawn + BATCH * len(chosen)
