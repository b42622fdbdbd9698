"""Run the laws as pytest tests: one test for each operator and law."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..functions.global_streams import seeded
from .betting.budget import Budget
from .check import laws_for, reconciled, reproduction, statistical_laws
from .kit.examples import EVERYTHING, Domain, drawn
from .kit.law import Context, Law
from .kit.subject import ClaimSource, Subject
from .kit.verdict import Outcome
from .operator.draws import NO_CEILING
from .operator.exact import ExactMarginals

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy


ExpectedFailures = Callable[[Any], Mapping[str, str]]


@dataclass(frozen=True)
class LawOf:
    """A law as a test calls it: ``law(operator)`` raises AssertionError with the verdict unless it passes."""

    law: Law
    claim: ClaimSource
    budget: Budget
    seed: int | None

    def __call__(self, operator: Any) -> None:
        """Judge one operator.

        Raises
        ------
        AssertionError
            With the verdict.
        """
        seed = secrets.randbits(32) if self.seed is None else self.seed
        context = Context(self.budget, seed, parts=statistical_laws(), laws=(self.law,))
        subject = operator if isinstance(operator, Subject) else Subject(operator, self.claim)
        subject.deadline = context.ends
        with subject.session(), seeded(seed, self.law.name):
            verdict = self.law.run(subject, context)
            before = (ExactMarginals().run(subject, context),) if verdict.text == NO_CEILING else ()
            *_, verdict = reconciled((*before, verdict), subject, context)
        if verdict.outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE):
            line = reproduction(subject, self.claim, self.budget, seed, [self.law.name])
            raise AssertionError(f"{str(verdict).strip()}\nreproduce: {line}")


def parametrize_with_checks(
    operators: Iterable[Any],
    *,
    claim: ClaimSource = None,
    budget: Budget | None = None,
    seed: int | None = None,
    expected_failures: ExpectedFailures | None = None,
) -> Any:
    """Return decorate ``def test(operator, law): law(operator)`` to run every law that applies to every operator.

    Parameters
    ----------
    operators : iterable
        Instances, functions, or subjects made by ``adapt``.
    claim : ClaimSource, optional
        What is promised, as in ``check``.
    budget : Budget or None, optional
        How many draws, as in ``check``.
    seed : int or None, optional
        Replays a report, as in ``check``.
    expected_failures : ExpectedFailures or None, optional
        Maps an operator to {law: reason}; such a test must fail, and its reason is shown.

    Notes
    -----
    Test ids read "QSGD(levels=4)-unbiasedness".
    """
    import pytest

    budget = Budget() if budget is None else budget
    parameters = []
    for operator in operators:
        subject = operator if isinstance(operator, Subject) else Subject(operator, claim)
        expected = dict(expected_failures(operator)) if expected_failures else {}
        for law in laws_for(subject):
            if law.applies(subject) is not None:
                continue
            marks = [pytest.mark.xfail(reason=expected[law.name], strict=True)] if law.name in expected else []
            parameters.append(
                pytest.param(operator, LawOf(law, claim, budget, seed), id=f"{subject.name}-{law.name}", marks=marks)
            )
    return pytest.mark.parametrize(("operator", "law"), parameters)


# -- A Hypothesis strategy for tests of one's own: vectors with everything that breaks compressors -------------


def vectors(domain: Domain = EVERYTHING) -> SearchStrategy[np.ndarray]:
    """Return gradient-shaped vectors of a domain, float32, shape (d,): short ones, which shrink, and long ones.

    Zeros of either sign, ties, heavy tails, layers of different scales, tiny and huge magnitudes are among them.

    Parameters
    ----------
    domain : Domain, optional
        The vectors that count.

    Raises
    ------
    ModuleNotFoundError
        Without Hypothesis (``pip install ratedist[laws]``).
    """
    from hypothesis import strategies as st

    entry = st.one_of(
        st.floats(-4, 4, width=32),
        st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]),
        st.floats(-(2.0**100), 2.0**100, width=32),
        st.floats(-(2.0**-120), 2.0**-120, width=32),
    )
    short = st.lists(entry, min_size=1, max_size=12).map(lambda v: np.array(v, np.float32))

    @st.composite
    def long(draw: DrawFn) -> np.ndarray:
        d, rng = draw(st.sampled_from(Budget().sizes)), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        x = list(drawn(d, 5, rng))[draw(st.integers(0, 4))].x
        layers = np.repeat(10.0 ** rng.uniform(-6, 2, -(-d // 100)), 100)[:d] if draw(st.booleans()) else 1.0
        kept = rng.random(d) < draw(st.sampled_from([1.0, 0.3, 0.02]))
        x = np.where(kept, x * layers, draw(st.sampled_from([0.0, -0.0])))
        return (x * draw(st.sampled_from([1.0, 2.0**-80, 2.0**60]))).astype(np.float32)

    fitted = st.one_of(short, long()).map(domain.fit)
    return fitted.filter(lambda x: x is not None)
