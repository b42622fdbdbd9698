"""Law: where each coordinate has its own random word, mean and error are computed exactly and match the claim."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bounds.claims import Unbiased

from ..betting.eprocess import SLACK
from ..kit.examples import REACHED, WITNESS, Example, at_the_ends, distinct, drawn, ramps, structured, witnesses
from ..kit.function_examples import MOST, RAMPS, function_examples, in_time
from ..kit.law import Context, Law, NotApplicable, Violation, second_moment
from ..kit.subject import Subject
from ..kit.verdict import About
from ..replay.hidden import Moments, exclude_hidden, exclude_rare_dependence
from ..replay.marginals import Marginals, marginals
from ..replay.recorded_words import Controlled

LARGEST_SIZE = 65
ROUNDED_SCALE = 2.0**-18  # claim_at may leave out that the scale is sent in binary32
RESOLUTION = 2.0**-24  # coarsest uniform number in use: probabilities are multiples of it


class ExactMarginals(Law):
    """E C(x)_i = x_i for every i if unbiased, and ``E|C(x) - x|^2`` as claimed, without any statistics."""

    name = "exact-marginals"
    statistical = True  # of a function: only that it draws on no hidden randomness
    needs = "words"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs a claim about the mean or the error."""
        reason = super().applies(subject)
        if reason is None and second_moment(subject.claim(1)) is None and second_moment(subject.claim(64)) is None:
            return "nothing is claimed"
        return reason

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Return witnesses, structured and drawn vectors at the two least and two largest sizes; ends of the claims'
        range.
        """
        rng = context.rng(self.name)
        small = sorted({size for size in context.budget.sizes if size <= LARGEST_SIZE})
        sizes = sorted({*small[:2], *small[-2:]})  # a vector takes some 200 draws
        if not subject.is_operator:
            vectors = function_examples(sizes, context.budget.sizes, rng)
            yield from in_time(vectors, context.budget.seconds, 4 * context.budget.drawn)
            return
        yield from witnesses(subject.target, sizes)
        for d in sizes:
            yield from distinct(structured(d))
            yield from at_the_ends(d)
            yield from drawn(d, min(context.budget.drawn, 5), rng)
        yield from ramps(max(sizes), RAMPS, rng)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare the exact moments with the claim; of a function, exclude hidden randomness before it is accused."""
        claim = subject.claim(example.d)
        s2 = second_moment(claim)
        if s2 is None:
            raise NotApplicable("nothing is claimed")
        run = Controlled(subject, example.x, context.rng(f"{self.name} {example.name}"))
        exact = marginals(run)
        try:
            self._compare(subject, example, exact, s2, max(RESOLUTION, run.resolution))
        except Violation:
            budget = context.budget
            level, seconds = context.level(MOST + budget.shrinking), 1.5 * budget.seconds
            moments, unbiased = _relative(exact, example.x, s2), isinstance(claim, Unbiased)
            exclude_hidden(run, moments, level, seconds, unbiased=unbiased)
            exclude_rare_dependence(run, exact.constant, moments, level, unbiased=unbiased)
            raise

    def _compare(self, subject: Subject, example: Example, exact: Marginals, s2: float, resolution: float) -> None:
        claim, x = subject.claim(example.d), example.x.astype(np.float64)
        if isinstance(claim, Unbiased):
            equal_mean(exact, x, s2, resolution, subject.rounding)
        self._sharper(subject, example, exact)
        largest = exact.largest + np.abs(x)  # a probability may be off by one step of the uniform numbers
        doubt = float(exact.square_error.sum() + resolution * (largest @ largest))
        norm2, error = float(x @ x), float(exact.square.sum())
        least, most = np.sqrt(max(error - doubt, 0) / norm2), np.sqrt((error + doubt) / norm2)
        if least > np.sqrt(s2) + 2 * SLACK:
            text = f"E|C(x) - x|^2 = {error / norm2:.8g} |x|^2 exactly; claimed at most {s2:.8g}"
            raise Violation(text, About.CONSTANT)
        if example.name.startswith(WITNESS) and most < np.sqrt(REACHED * s2) - 2 * SLACK:
            raise Violation(f"E|C(x) - x|^2 = {error / norm2:.8g} |x|^2 exactly; said to reach {s2:.8g} here")
        if claim.tight and most < np.sqrt(s2) - 2 * SLACK:  # type: ignore[union-attr]
            raise Violation(f"E|C(x) - x|^2 = {error / norm2:.8g} |x|^2 exactly; claimed equal to {s2:.8g} for every x")

    def _sharper(self, subject: Subject, example: Example, exact: Marginals) -> None:
        """``claim_at(x)``, where the operator offers it: exactly reached if tight."""
        if not hasattr(subject.target, "claim_at"):
            return
        claim = subject.target.claim_at(example.x)
        value = second_moment(claim)
        if value is None:
            return
        norm2 = float(example.x.astype(np.float64) @ example.x.astype(np.float64))
        error, doubt = exact.square.sum() / norm2, exact.square_error.sum() / norm2 + ROUNDED_SCALE * (1 + value)
        if error > value + doubt or (claim.tight and error < value - doubt):
            raise Violation(f"E|C(x) - x|^2 = {error:.8g} |x|^2 exactly; claim_at(x) says {value:.8g}")


def _relative(exact: Marginals, x: np.ndarray, s2: float) -> Moments:
    """Return the error over ``|x|``."""
    wide = x.astype(np.float64)
    norm = float(np.linalg.norm(wide))
    largest = np.maximum(exact.largest + np.abs(wide), np.abs(wide)) / norm
    bias = float(np.linalg.norm(exact.mean - wide)) / norm
    return Moments(bias, float(exact.square.sum()) / norm**2, float(largest @ largest), s2)


def equal_mean(exact: Marginals, x: np.ndarray, s2: float, resolution: float, rounding: float) -> None:
    """Raise Violation where the mean of a coordinate is not that of the vector."""
    allowed = exact.mean_error + (SLACK + rounding) * np.maximum(exact.largest, np.abs(x))
    allowed = allowed + resolution * (1 + np.sqrt(s2)) * np.linalg.norm(x)
    off = np.abs(exact.mean - x) - allowed
    i = int(np.argmax(off))
    if off[i] > 0:
        raise Violation(f"E C(x)[{i}] = {exact.mean[i]:.8g} exactly; x[{i}] = {x[i]:.8g}")
