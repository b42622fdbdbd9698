"""Law: no bet on the direction of the error wins (statistical, anytime-valid)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bounds.claims import Unbiased

from .eprocess import MeanBets
from .examples import Example, drawn, structured
from .law import VECTORS, Context, Law, Undecided, Violation
from .shrink import ATTEMPTS
from .subject import Subject

RANDOM_DIRECTIONS = 2
_STRUCTURED = ("flat", "one-hot, last", "pair (1, 1/2", "pair (1, -1", "one large", "two scales", "alternating")


class Unbiasedness(Law):
    """E C(x) = x, tried along x, along coordinates, along random directions and along the error seen so far."""

    name = "unbiasedness"
    statistical = True

    def applies(self, subject: Subject) -> str | None:
        """Needs a claim of unbiasedness."""
        if not any(isinstance(subject.claim(d), Unbiased) for d in (1, 2, 65)):
            return "unbiasedness is not claimed"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """See ``statistical_examples``."""
        yield from statistical_examples(context)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet until the draws or the time are used up."""
        claim = subject.claim(example.d)
        if not isinstance(claim, Unbiased):
            raise Undecided("unbiasedness is not claimed at this d")
        v = directions(example.x, context.rng(f"{self.name} {example.name}"))
        level = context.level(count(context))
        bets, n = None, 0
        for errors, _ in context.draws(subject, example):
            if bets is None:  # the first batch is only looked at
                bets = MeanBets(_second_moment(claim.omega, errors), v)
                continue
            bets.update(errors)
            n += len(errors)
            if bets.wealth.rejects(level):
                bias = float(np.linalg.norm(bets.sum / n))
                raise Violation(
                    f"E C(x) = x rejected at level {level:.1e} after {n} draws; the mean error so far is {bias:.3g} |x|"
                )


def _second_moment(omega: float, first: np.ndarray) -> float:
    """The claimed omega; far more where the first errors exceed it, so that the mean alone is judged.

    A larger value only makes the bets more cautious, so the test of a true claim stays valid.
    """
    seen = float((first**2).sum(axis=1).mean())
    return omega if seen <= 1.1 * omega else 4 * seen


def statistical_examples(context: Context) -> Iterator[Example]:
    """The vectors of the statistical laws: a few structured ones, one Gaussian and one Cauchy at each size."""
    rng = context.rng("statistical examples")
    for d in context.budget.drawn_sizes:
        yield from (e for e in structured(d) if e.name.startswith(_STRUCTURED))
        yield from drawn(d, 2, rng)


def count(context: Context) -> int:
    """How many examples share the false-alarm budget of one statistical law, shrinking attempts included."""
    return len(context.budget.drawn_sizes) * VECTORS + ATTEMPTS


def directions(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Unit vectors, shape (m, d): along x; coordinates of the largest, smallest and a zero entry; random ones."""
    wide = x.astype(np.float64)
    size = np.abs(wide)
    at = {int(size.argmax()), int(np.where(size > 0, size, np.inf).argmin()), int(size.argmin())}
    coordinates = np.eye(x.size)[sorted(at)] if x.size <= 4096 else np.empty((0, x.size))
    random = rng.standard_normal((RANDOM_DIRECTIONS, x.size))
    v = np.vstack([wide, coordinates, random])
    return v / np.linalg.norm(v, axis=1, keepdims=True)
