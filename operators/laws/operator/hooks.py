"""Law: a communication hook gives every rank the same vector, and that is the mean (statistical, anytime-valid)."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np
import torch

from bounds.claims import Unbiased

from ...functions.forms.hook import Hook
from ..betting.eprocess import SLACK, DirectionBets, ExcessBets
from ..kit.examples import Example, drawn
from ..kit.law import Context, Law, NotApplicable, Violation, second_moment
from ..kit.subject import Subject, to_numpy
from ..kit.verdict import About

RANKS = (2, 3)
SIZES = (9, 65)
ROUNDS, PATIENT = 20, 15  # rounds a batch; batches at most
USUAL, SUSPICION = 4, 3.0  # batches without suspicion; log-capital that earns more
ROUNDED = 2.0  # times the error of a contraction: rounding a sum errs as often as rounding its terms


class HookMean(Law):
    """In a group of 2 and of 3 ranks: equal bits at all ranks, E y = mean, and ``E|y - mean|^2`` at most as claimed.

    The error of a mean of m outputs is at most the mean of their errors, so the claim at a single vector is one about
    the mean: ``E|y - xbar|^2 <= omega S``, with S the mean of ``|x_i|^2``.
    """

    name = "hook-mean"
    statistical = True
    shrinks = False

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a hook with a claim."""
        if not isinstance(subject.target, Hook):
            return "it is no communication hook"
        if all(second_moment(subject.claim(d)) is None for d in SIZES):
            return "nothing is claimed"
        return super().applies(subject)

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return Gaussian vectors: those of the first rank."""
        rng = context.rng(self.name)
        for d in SIZES:
            yield from drawn(d, 1, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Bet on the error of the mean of equal and of different vectors."""
        rng = context.rng(f"{self.name} {example.name}")
        for m in RANKS:
            others = rng.standard_normal((m, example.d)) * (np.arange(m) > 0)[:, None]
            for vectors in (np.tile(example.x, (m, 1)), (example.x + others).astype(np.float32)):
                fitted = [subject.domain.fit(x.astype(np.float32)) for x in vectors]
                if any(x is None or x.size != example.d for x in fitted):
                    raise NotApplicable("such vectors are outside its domain")
                self._bet(subject, np.stack([x for x in fitted if x is not None]), context)

    def _bet(self, subject: Subject, vectors: np.ndarray, context: Context) -> None:
        m, d = vectors.shape
        claim = subject.claim(d)
        s2 = second_moment(claim)
        if s2 is None:
            raise NotApplicable("nothing is claimed")
        wide = vectors.astype(np.float64)
        mean, scale = wide.mean(axis=0), sqrt(float((wide**2).sum(axis=1).mean()))
        allowed = (sqrt(s2) * (1 if isinstance(claim, Unbiased) else ROUNDED) + m * (SLACK + subject.rounding)) ** 2
        level = context.level(2 * len(RANKS) * len(SIZES) * 2)
        excess = ExcessBets(allowed)
        directions = np.vstack([mean, wide[0], wide[0] - wide[-1] if wide[0].tobytes() != wide[-1].tobytes() else mean])
        directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        bias = DirectionBets(allowed, directions) if isinstance(claim, Unbiased) else None
        given = [torch.from_numpy(x.copy()) for x in vectors]
        for batch in range(PATIENT):
            suspicious = max(excess.wealth.peak, bias.wealth.peak if bias else 0.0) > SUSPICION
            if batch >= (1 if context.accused else USUAL) and not (suspicious and context.spare()):
                return
            try:
                rounds = subject.target.in_group([given] * ROUNDS)
            except (ImportError, NotImplementedError) as reason:
                raise NotApplicable(f"its collectives are not available in threads: {reason}") from reason
            results = [[to_numpy(y) for y in ranks] for ranks in rounds]
            if any(not np.array_equal(ranks[0], y) for ranks in results for y in ranks):
                raise Violation(f"the {m} ranks of a group end with different vectors")
            errors = (np.stack([ranks[0] for ranks in results]) - mean) / scale
            if not np.isfinite(errors).all():
                raise Violation(f"the result of {m} ranks is not finite")
            excess.update((errors**2).sum(axis=1))
            if excess.wealth.rejects(level):
                raise Violation(f"the error of the mean of {m} ranks is larger than claimed: is the sum divided by m?")
            if bias is not None:
                bias.update(errors)
                if bias.wealth.rejects(level):
                    text = f"the result of {m} ranks is not their mean on average: is the sum divided by m?"
                    raise Violation(text, About.MEAN)
