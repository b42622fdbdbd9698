"""Law: the decoded merge estimates the mean as ``claim_mean`` says (statistical, anytime-valid)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from bounds.claims import Contractive, StrictlyContractive, Unbiased

from .eprocess import SLACK, ExcessBets, MeanBets, inflated
from .examples import Example, drawn
from .groups import WORKERS, AggregateLaw, group, keys_of, workers_of
from .law import Context, Undecided, Violation, fresh_key, second_moment
from .subject import Subject
from .unbiasedness import directions

SIZES = (2, 9)
BATCH = 50
SHARE = 0.2  # of the draws of the other statistical laws; a draw here takes n + 1 messages


class AggregateClaim(AggregateLaw):
    """Unbiased(omega): E y = mean x_i and E|y - mean|^2 <= omega (1/n) sum |x_i|^2; Contractive(alpha) likewise."""

    name = "aggregate-claim"
    statistical = True

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Small vectors."""
        rng = context.rng(self.name)
        for d in SIZES:
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
            raise Undecided("it promises nothing about the mean")

    def _bet(self, subject: Subject, example: Example, context: Context, n: int, claim: Unbiased | Contractive) -> None:
        vectors = group(example, n, context, self.name)
        stack = torch.stack(vectors).double().numpy()
        mean, energy = stack.mean(axis=0), float((stack**2).sum(axis=1).mean())
        rng = context.rng(f"{self.name} {example.name} {n} keys")
        s2 = second_moment(claim) or 0.0
        bias = MeanBets(s2, directions(example.x, rng)) if isinstance(claim, Unbiased) else None
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
