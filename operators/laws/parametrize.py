"""Run the laws as pytest tests: one test for each operator and law."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..functions.global_streams import seeded
from .betting.budget import Budget
from .check import reconciled, reproduction
from .kit.law import Context, Law
from .kit.subject import ClaimSource, Subject
from .kit.verdict import Outcome
from .operator.exact_marginals import ExactMarginals
from .operator.tightness import NO_CEILING
from .suite import laws_for, statistical_laws

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
