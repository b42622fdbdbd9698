"""Law: no search finds a vector on which the claimed constant is exceeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from bounds.claims import StrictlyContractive, Unbiased

from ..betting.eprocess import SLACK
from ..kit.examples import Example, drawn, structured
from ..kit.law import Context, Law, NotApplicable, Violation, second_moment
from ..kit.subject import Subject
from ..kit.verdict import About
from ..replay.marginals import marginals
from ..replay.recorded_words import Controlled
from .exact_marginals import RESOLUTION, equal_mean
from .sure_contraction import relative_error

SIZES = (2, 5, 9)
LEAST_STEPS = 5  # of a search, however slow a function is: up one gradient, four at random


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
        for d in SIZES:
            yield from drawn(d, 2, rng)
            yield from (e for e in structured(d) if e.name.startswith("one large"))

    def holds(self, subject: Subject, example: Example, context: Context) -> None:
        """Climb from the example."""
        claim = subject.claim(example.d)
        s2 = second_moment(claim)
        if s2 is None:
            raise NotApplicable("nothing is claimed")
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
            return subject.is_operator or context.spare()

        rng = context.rng(f"{self.name} {example.name}")
        worst, x = climb(error, example.x, steps, rng, slopes=strict, more=more)
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
    more: Callable[[], bool],
) -> tuple[float, np.ndarray]:
    """Return the largest error found and its vector: random steps, and with ``slopes`` every fourth up the gradient.

    Parameters
    ----------
    more : callable
        Whether to go on after LEAST_STEPS.
    """
    x, best = start, error(start)
    size = 0.3
    for step in range(steps):
        if step >= LEAST_STEPS and not more():
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
