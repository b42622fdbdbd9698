"""Whether a compressor keeps its word: every law of the conformance kit, judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from bounds.claims import Claim, Contractive, Unbiased

from ..cluster.compressors import operator_of
from ..records import Answer, Table
from .arguments import Specification, Whole
from .call import Call, Command, Route

MOST_SHOWN = 3  # entries of the vector on which a law failed
SEVERITY = ("FAIL", "INCONCLUSIVE", "note")  # the order in which verdicts are shown

if TYPE_CHECKING:
    from operators.laws import Report, Verdict
    from operators.laws.kit.subject import ClaimSource, Subject, Target


def check(
    op: str | Target | Subject,
    *,
    budget: Literal["quick", "standard", "deep"] = "standard",
    claim: ClaimSource = None,
    seed: int | None = None,
) -> Report:
    """Judge a compressor by every law of the conformance kit.

    Parameters
    ----------
    op
        Compressor such as scaled_sign.  In Python also an Operator, an object with encode and decode, or a function.
    budget : {"quick", "standard", "deep"}, optional
        How much is tried.
    claim : optional
        Overrides its own.
    seed : int or None, optional
        Seed of a report, which is then replayed.

    Returns
    -------
    Report
        a Report with ``ok``.

    Raises
    ------
    ValueError
        For an unknown specification or budget.

    Examples
    --------
    >>> import ratedist as rd
    >>> rd.check("scaled_sign", budget="quick", seed=1).ok
    True
    """
    from operators.laws import Budget
    from operators.laws import check as judge

    budgets = {"quick": Budget.quick, "standard": Budget, "deep": Budget.deep}
    if budget not in budgets:
        raise ValueError(f"budget must be one of {', '.join(budgets)}; got {budget!r}: choose one of them")
    try:
        return judge(operator_of(op) if isinstance(op, str) else op, claim=claim, budget=budgets[budget](), seed=seed)
    except TypeError as failure:
        raise ValueError(f"{failure}: give an instance with encode and decode, or a function") from None


def _run(subject: str, *, omega: float | None = None, alpha: float | None = None, **given: Any) -> Report:
    """Judge what a text names, against a claim from the command line.

    Parameters
    ----------
    subject : str
        A specification such as "qsgd:4", or package.module:object.
    omega : float or None, optional
        Claim: unbiased with this constant.
    alpha : float or None, optional
        Claim: contractive with this constant.
    """
    from ..cluster.compressors import subject as subject_of

    judged = subject_of(subject)
    report = check(judged, claim=_claim(omega, alpha), **given)
    has_no_name = report.subject == type(judged).__name__
    return replace(report, subject=subject) if has_no_name else report


def _claim(omega: float | None, alpha: float | None) -> Claim | None:
    if omega is not None and alpha is not None:
        raise ValueError(f"claim omega or alpha, not both; got {omega} and {alpha}: drop one")
    if omega is not None:
        return Unbiased(omega)
    return None if alpha is None else Contractive(alpha)


def _record(report: Report) -> dict[str, Any]:
    return {
        "subject": report.subject,
        "ok": report.ok,
        "judged": report.judged,
        "seed": report.seed,
        "reproduce": report.reproduce,
        "verdicts": [{"law": v.law, "outcome": v.outcome.value, "text": v.text} for v in report.verdicts],
    }


def answer_of(report: Report) -> Answer:
    """Return whether a compressor keeps its claim, and what failed.

    Parameters
    ----------
    report : Report
        Every law's verdict.
    """
    from operators.laws import Outcome

    judged = [str(v).strip() for v in report.verdicts if v.outcome is not Outcome.NOT_APPLICABLE]
    shown = [v for v in report.verdicts if v.outcome in (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.NOTE)]
    shown.sort(key=lambda v: SEVERITY.index(v.outcome.value))
    rows = tuple((v.law, f"{v.outcome.value}: {v.text}{_place(v)}") for v in shown)
    return Answer(
        f"{report.headline}.",
        {
            "by draws alone": report.by_draws_alone,
            "could be missed": "" if report.failures else str(report.power),
            "tried": "" if report.failures else report.tried,
        },
        tables=(Table(("law", "finding"), rows, left=frozenset({"finding"})),) if rows else (),
        follow_up="" if report.judged else "state what it is: --omega X (unbiased) or --alpha X (contractive)",
        evidence={"laws": [*judged, *report.not_applicable], "again": report.reproduce},
    )


def _place(verdict: Verdict) -> str:
    if verdict.x is None:
        return ""
    first = ", ".join(f"{value:.3g}" for value in verdict.x[:MOST_SHOWN])
    return f" [at {verdict.example}, x = ({first}{', ...' * (verdict.x.size > MOST_SHOWN)}), d = {verdict.x.size}]"


def _show(report: Report) -> Any:
    return answer_of(report)


def _answer(op: str, seed: int | None = None) -> dict[str, Any]:
    record = _record(check(op, budget="quick", seed=seed))
    del record["reproduce"]  # in Python; a request is replayed with its seed
    return record


CALL = Call(
    name="check",
    summary="judge a compressor by the conformance laws; exit status 1 unless it passes",
    place=8,
    function=check,
    command=Command(
        examples=("scaled_sign --budget quick --seed 1", "my_compressor:halve --omega 0.1 --budget quick --seed 1"),
        run=_run,
        kinds={"op": None, "claim": None},
        record=_record,
        show=_show,
        ok=lambda report: report.ok,
    ),
    route=Route(
        about="A compressor of the catalogue, judged within the quick budget.",
        example={"op": "scaled_sign", "seed": 1},
        run=_answer,
        kinds={"op": Specification(), "seed": Whole(0, 2**32 - 1)},
        stated=False,
    ),
)
