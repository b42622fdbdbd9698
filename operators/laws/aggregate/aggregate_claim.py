"""Law: the decoded merge estimates the mean as ``claim_mean`` says (statistical, anytime-valid)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from bounds.claims import Contractive, StrictlyContractive, Unbiased

from ..betting.eprocess import SLACK, DirectionBets, ExcessBets, inflated
from ..kit.examples import Example, drawn, structured
from ..kit.groups import WORKERS, AggregateLaw, group, keys_of, workers_of
from ..kit.law import Context, NotApplicable, Violation, fresh_key, second_moment
from ..kit.subject import Subject

SIZES = (2, 9)
BATCH = 50
RANDOM_DIRECTIONS = 2
SHARE = 4  # rounds for every draw a vector of the other statistical laws


class AggregateClaim(AggregateLaw):
    """Unbiased(omega): E y = mean x_i and ``E|y - mean|^2 <= omega (1/n) sum |x_i|^2``; Contractive(alpha) likewise."""

    name = "aggregate-claim"
    statistical = True

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return small vectors: the flat one, at which selections err most, and drawn ones."""
        rng = context.rng(self.name)
        for d in SIZES:
            yield next(structured(d))
            yield from drawn(d, 2, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet on the error of the mean for several numbers of workers."""
        decided = False
        for n in workers_of(subject.target):
            claim = subject.target.claim_mean(example.d, n)
            if isinstance(claim, Unbiased | Contractive):
                self._bet(subject, example, context, n, claim)
                decided = True
        if not decided:
            raise NotApplicable("it promises nothing about the mean")

    def _bet(self, subject: Subject, example: Example, context: Context, n: int, claim: Unbiased | Contractive) -> None:
        vectors = group(example, n, context, self.name)
        stack = torch.stack(vectors).double().numpy()
        mean, energy = stack.mean(axis=0), float((stack**2).sum(axis=1).mean())
        rng = context.rng(f"{self.name} {example.name} {n} keys")
        s2 = second_moment(claim) or 0.0
        bias = DirectionBets(s2, _directions(example.x, rng)) if isinstance(claim, Unbiased) else None
        excess = ExcessBets(inflated(s2))
        level = context.level(2 * 4 * len(WORKERS) * len(SIZES))
        for _ in range(max(1, int(SHARE * context.budget.draws) // BATCH)):
            rounds = [subject.target.round(vectors, keys=keys_of(fresh_key(rng), n)).numpy() for _ in range(BATCH)]
            errors = (np.stack(rounds) - mean) / np.sqrt(energy)
            squares = (errors**2).sum(axis=1)
            excess.update(squares)
            if isinstance(claim, StrictlyContractive) and squares.max() > (np.sqrt(s2) + SLACK) ** 2:
                raise Violation(f"one draw has {squares.max():.6g} of the mean energy; {claim} holds surely, n = {n}")
            if excess.wealth.rejects(level):
                raise Violation(
                    f"{claim} of the mean of {n} workers is exceeded: {squares.mean():.6g} in the last batch"
                )
            if bias is not None:
                bias.update(errors)
                if bias.wealth.rejects(level):
                    raise Violation(f"the merge of {n} workers is a biased estimate of their mean")


def _directions(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return unit vectors, shape (m, d): along x; coordinates of the largest, smallest and a zero entry;
    random ones.
    """
    wide = x.astype(np.float64)
    size = np.abs(wide)
    chosen = {int(size.argmax()), int(np.where(size > 0, size, np.inf).argmin()), int(size.argmin())}
    coordinates = np.eye(x.size)[sorted(chosen)] if x.size <= 4096 else np.empty((0, x.size))
    random = rng.standard_normal((RANDOM_DIRECTIONS, x.size))
    v = np.vstack([wide, coordinates, random])
    return v / np.linalg.norm(v, axis=1, keepdims=True)
