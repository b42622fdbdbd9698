"""Law: a strictly contractive operator contracts on every single draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from math import inf

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ...key import Key
from ..betting.budget import work_s
from ..betting.eprocess import SLACK
from ..kit.examples import (
    MOST,
    RAMPS,
    REACHED,
    WITNESS,
    Example,
    at_the_ends,
    distinct,
    drawn,
    function_examples,
    in_time,
    in_turn,
    pairs,
    ramps,
    structured,
    witnesses,
)
from ..kit.law import Context, Law, NotApplicable, Violation, claimed_moment, fail_if, law, second_moment, usual
from ..kit.subject import Subject
from ..kit.verdict import About
from ..replay import Controlled, Marginals, Moments, exclude_hidden, exclude_rare_dependence, marginals

DRAWS = 3
PAIRS, LEAST = 200, 100  # vectors whose second coordinate sweeps its range; however long they take


def _sure_contraction_vectors(subject: Subject, context: Context, name: str) -> Iterator[Example]:
    """Return all the usual vectors, the ends of the claims' range, and vectors with a swept coordinate."""
    vectors = in_turn(
        usual(subject, context, name),
        chain.from_iterable(at_the_ends(d) for d in context.budget.sizes),
        pairs(PAIRS, context.rng("sure-contraction pairs")),
        pairs(PAIRS, context.rng("sure-contraction pairs with a zero"), zeros=1),
    )
    until = work_s() + context.budget.seconds
    for number, vector in enumerate(vectors):
        if number >= LEAST and work_s() > until:
            return
        yield vector


def _sure_contraction_unless(subject: Subject) -> str | None:
    """Return why it does not apply, or None: it needs a claim of strict contraction."""
    if not any(isinstance(subject.claim(d), StrictlyContractive) for d in (1, 2, 65)):
        return "strict contraction is not claimed"
    return None


@law("sure-contraction", vectors=_sure_contraction_vectors, unless=_sure_contraction_unless)
def sure_contraction(subject: Subject, example: Example, key: Key, context: Context) -> None:
    """``|C(x) - x|^2 <= alpha |x|^2`` surely; with tight=True an equality for every x."""
    claim = subject.claim(example.d)
    if not isinstance(claim, StrictlyContractive):
        raise NotApplicable("strict contraction is not claimed at this d")
    promised = float(np.sqrt(claim.alpha))
    for draw in range(DRAWS):
        error = relative_error(subject, example, context, f"sure-contraction {draw}")
        if not error <= promised + SLACK:
            raise Violation(f"|C(x) - x|^2 = {error**2:.8g} |x|^2; claimed at most {claim.alpha:.8g} surely")
        if claim.tight and error < promised - SLACK:
            raise Violation(f"|C(x) - x|^2 = {error**2:.8g} |x|^2; claimed equal to {claim.alpha:.8g} for every x")


def relative_error(subject: Subject, example: Example, context: Context, label: str) -> float:
    """Return ``|C(x) - x| / |x|`` of one draw."""
    x = example.x.astype(np.float64)
    error = subject.draw(example.x, context.key(f"{label} {example.name}")) - x
    return float(np.linalg.norm(error) / np.linalg.norm(x))


# -- Law: where each coordinate has its own random word, mean and error are computed exactly and match the claim

LARGEST_SIZE = 65
ROUNDED_SCALE = 2.0**-18  # claim_at may leave out that the scale is sent in binary32
OF_FUNCTIONS, OF_OPERATORS = 0.6, 0.8  # of the seconds, after which no vector is begun
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
        """Return witnesses, ramps, then in turn drawn vectors, ends of the claims' range and structured vectors at the
        two least and two largest sizes, until the time is over.
        """
        rng = context.rng(self.name)
        small = sorted({size for size in context.budget.sizes if size <= LARGEST_SIZE})
        sizes = sorted({*small[:2], *small[-2:]})  # a vector takes some 200 draws
        if not subject.is_operator:
            vectors = function_examples(sizes, context.budget.sizes, rng)
            yield from in_time(vectors, OF_FUNCTIONS * context.budget.seconds, min(MOST, 4 * context.budget.drawn))
            return
        n = min(context.budget.drawn, 5)
        of_each = [chain(drawn(d, n, rng), at_the_ends(d), distinct(structured(d))) for d in reversed(sizes)]
        vectors = chain(witnesses(subject.target, sizes), in_turn(ramps(max(sizes), RAMPS, rng), *of_each))
        yield from in_time(vectors, OF_OPERATORS * context.budget.seconds, inf)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Compare the exact moments with the claim; of a function, exclude hidden randomness before it is accused."""
        claim = subject.claim(example.d)
        s2 = claimed_moment(subject, example.d)
        run = Controlled(subject, example.x, context.rng(f"{self.name} {example.name}"))
        exact = marginals(run)
        try:
            self._compare(subject, example, exact, s2, max(RESOLUTION, run.resolution))
        except Violation:
            budget = context.budget
            level, seconds = context.level(MOST + budget.shrinking), 2 * budget.seconds
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
    fail_if(off[i] > 0, f"E C(x)[{i}] = {exact.mean[i]:.8g} exactly; x[{i}] = {x[i]:.8g}")


# -- Law: no search finds a vector on which the claimed constant is exceeded -----------------------------------

SIZES = (2, 5, 9)
LEAST_STEPS = 5  # of a search, however slow a function is: up one gradient, four at random
OF_SEARCHES = 0.4  # of the seconds, after which no search of an exact error is begun


class Adversarial(Law):
    """The error over its claim, pushed upwards by finite-difference gradient ascent and random steps.

    The error of a strictly contractive operator is that of one draw; that of an unbiased separable operator is
    exact, from its marginals, less their error bound (dearer: fewer steps, and none along the gradient).
    """

    name = "adversarial-search"

    def applies(self, subject: Subject) -> str | None:
        """Return why it does not apply, or None: it needs an error that one evaluation gives exactly."""
        claim = subject.claim(SIZES[0])
        if isinstance(claim, StrictlyContractive):
            return super().applies(subject)
        if isinstance(claim, Unbiased) and subject.is_operator:
            return None
        return "the error has no exact value to climb on; the statistical laws judge it"

    def examples(self, subject: Subject, context: Context) -> Iterator[Example]:
        """Where the searches start."""
        rng = context.rng(self.name)
        large = ((e for e in structured(d) if e.name.startswith("one large")) for d in SIZES)
        starts = in_turn(*(chain(drawn(d, 2, rng), spike) for d, spike in zip(SIZES, large, strict=True)))
        dear = not isinstance(subject.claim(SIZES[0]), StrictlyContractive)
        yield from in_time(starts, OF_SEARCHES * context.budget.seconds if dear else inf)

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Climb from the example."""
        claim = subject.claim(example.d)
        s2 = claimed_moment(subject, example.d)
        strict = isinstance(claim, StrictlyContractive)

        def error(x: np.ndarray) -> float:
            if strict:
                return relative_error(subject, Example("search", x), context, self.name)
            run = Controlled(subject, x, context.rng(self.name))
            exact = marginals(run)
            wide = x.astype(np.float64)
            equal_mean(exact, wide, s2, max(RESOLUTION, run.resolution), subject.rounding)  # every step judges the bias
            sure = max(0.0, float((exact.square - exact.square_error).sum()))
            return float(np.sqrt(sure) / np.linalg.norm(x.astype(np.float64)))

        steps = context.budget.search if strict else context.budget.search // 30

        def more() -> bool:
            return context.spare() or subject.is_operator if strict else context.spare(OF_SEARCHES)

        rng = context.rng(f"{self.name} {example.name}")
        worst, x = climb(error, example.x, steps, rng, slopes=strict, least=LEAST_STEPS if strict else 0, more=more)
        if worst > np.sqrt(s2) + 2 * SLACK:
            listed = ", ".join(f"{v:.9g}" for v in x)
            text = f"|C(x) - x|^2 = {worst**2:.8g} |x|^2 at x = [{listed}]; claimed at most {s2:.8g}"
            raise Violation(text, About.CONSTANT)


def climb(
    error: Callable[[np.ndarray], float],
    start: np.ndarray,
    steps: int,
    rng: np.random.Generator,
    *,
    slopes: bool,
    least: int,
    more: Callable[[], bool],
) -> tuple[float, np.ndarray]:
    """Return the largest error found and its vector: random steps, and with ``slopes`` every fourth up the gradient.

    Parameters
    ----------
    least : int
        Steps however long they take.
    more : callable
        Whether to go on after them.
    """
    x, best = start, error(start)
    size = 0.3
    for step in range(steps):
        if step >= least and not more():
            break
        length = float(np.abs(x).max())
        direction = _gradient(error, x, best, length) if slopes and step % 4 == 0 else rng.standard_normal(x.size)
        norm = float(np.linalg.norm(direction))
        candidate = (x + size * length * direction / norm).astype(np.float32) if norm > 0 else x
        if not candidate.any():
            continue
        value = error(candidate)
        if value > best:
            x, best, size = candidate, value, min(1.0, 1.5 * size)
        else:
            size = max(1e-4, 0.7 * size)
    return best, x


def _gradient(error: Callable[[np.ndarray], float], x: np.ndarray, at_x: float, length: float) -> np.ndarray:
    step = np.float32(1e-2 * length)
    return np.array([error((x + step * e).astype(np.float32)) - at_x for e in np.eye(x.size, dtype=np.float32)])
