"""Comparison of seconds per iteration with the runtime model, whose parts are fitted to rounds and steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bounds.estimate import Estimate, mean_estimate
from operators import Key

from ..records.storage import Record
from ..timing import delay_from_rounds, fit_law, fit_rounds
from .verdict import Comparison, Verdict

TOLERANCE = 0.10  # relative to the prediction
LEVEL = 0.95
FIT = 5  # folded into the key by which a law is fitted


def iteration_time_rows(records: Sequence[Record]) -> Iterable[Comparison]:
    """Return rows for seconds per iteration, Y, D, and the law of Y fitted to rounds and steps.

    A law is fitted to the first record that has it; laws with correlated steps or unequal workers are not fitted.
    Timings never decide a verdict: the noise of a shared machine has no bound.
    """
    fitted = {"Constant", "AutoregressiveLogNormal", "PersistentStragglers"}
    for record in records:
        yield _iteration_row(record)
        yield _delay_row(record)
        family = record["law"].split("(")[0]
        if family not in fitted and record["law"] not in fitted:
            fitted.add(record["law"])
            yield _law_row(record)
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        if record["law"].startswith("Constant"):
            groups.setdefault((record["workload"], record["m"]), []).append(record)
    for group in groups.values():
        if len(group) > 1:
            yield from _fitted_rows(group)


def barrier_timed_delay(record: Record) -> Estimate:
    """Return the mean of D timed behind a barrier, with its interval."""
    return mean_estimate(record["delay_s"], LEVEL)


def iteration(record: Record) -> Estimate:
    """Return the mean seconds per iteration over all rounds, with its interval."""
    rounds = np.concatenate([np.asarray(part) for part in record["round_s"]])
    return mean_estimate(rounds / record["tau"], LEVEL)


def _common(record: Record) -> dict[str, Any]:
    law = "" if record["law"].startswith("Constant") else f", steps {record['law']}"
    return {
        "operator": record["operator"],
        "workload": f"{record['workload']}, m = {record['m']}{law}",
        "unit": "s",
        "side": "tight",
        "decides": False,
    }


def near(measured: float, bound: float) -> tuple[Verdict, str]:
    """Return HOLDS within TOLERANCE, else INCONCLUSIVE with the reason."""
    away = measured / bound - 1
    if abs(away) <= TOLERANCE:
        return Verdict.HOLDS, ""
    return Verdict.INCONCLUSIVE, f"{away:+.1%} from the model; the noise of a shared machine has no bound"


def seconds_row(races: Sequence[Record], predicted: Sequence[float], words: str, **about: Any) -> Comparison:
    """Compare real seconds per iteration with the runtime model; deciding nothing.

    ``races`` and ``predicted`` have one entry a seed.  ``words`` describes the machine.
    """
    measured, bound = [race["took_s"] / race["steps_done"] for race in races], float(np.median(predicted))
    verdict, reason = near(float(np.median(measured)), bound)
    return Comparison(
        quantity="seconds per iteration, median over the seeds",
        measured=float(np.median(measured)),
        interval=(min(measured), max(measured)),
        bound=bound,
        side="tight",
        verdict=verdict,
        reason=reason,
        theorem=f"E max of mean Y + D / tau; {words}",
        n=len(races),
        decides=False,
        unit="s",
        **about,
    )


def _iteration_row(record: Record) -> Comparison:
    """Compare the mean with the prediction, by the interval of the drawn steps."""
    estimate = iteration(record)
    low, high = float(estimate.interval.lo), float(estimate.interval.hi)
    predicted = record["predicted_compute_s"] + barrier_timed_delay(record).value / record["tau"]
    verdict, reason = (Verdict.HOLDS, "") if low <= predicted <= high else near(estimate.value, predicted)
    return Comparison(
        quantity="seconds per iteration, mean of the rounds",
        measured=estimate.value,
        interval=(low, high),
        bound=predicted,
        verdict=verdict,
        reason=reason,
        theorem=f"E max of mean Y + D / tau; {record['scheduling']}; {record['method']}",
        tau=record["tau"],
        n=sum(len(part) for part in record["round_s"]),
        **_common(record),
    )


def _delay_row(record: Record) -> Comparison:
    """Compare D, estimated from the rounds minus the steps, with D timed behind a barrier."""
    rounds = np.concatenate([np.asarray(part) for part in record["round_s"]])
    steps = np.concatenate([np.asarray(part) for part in np.swapaxes(np.asarray(record["step_s"]), 0, 1)], axis=1)
    estimate, fenced = delay_from_rounds(rounds, steps, tau=record["tau"]), barrier_timed_delay(record)
    verdict, reason = near(estimate.value, fenced.value)
    return Comparison(
        quantity="D, from rounds without the slowest worker's steps",
        measured=estimate.value,
        interval=(float(estimate.interval.lo), float(estimate.interval.hi)),
        bound=fenced.value,
        verdict=verdict,
        reason=reason,
        theorem="D timed behind a barrier",
        tau=record["tau"],
        n=rounds.size,
        **_common(record),
    )


def _law_row(record: Record) -> Comparison:
    fit = fit_law(np.asarray(record["step_s"][0]).reshape(-1), key=Key(0).fold_in(FIT))
    right = fit.accepted and record["law"].startswith(fit.best.family)
    p_value = float(fit.best.p_value or 0.0)
    return Comparison(
        quantity="law of Y: p-value of the best fit, rank 0",
        measured=p_value,
        interval=(p_value, p_value),
        bound=None,
        verdict=Verdict.HOLDS if right else Verdict.INCONCLUSIVE,
        reason=fit.statement,
        theorem=f"drawn from {record['law']}",
        tau=record["tau"],
        n=fit.n,
        **(_common(record) | {"side": "lower", "unit": ""}),
    )


def _fitted_rows(group: Sequence[Record]) -> Iterable[Comparison]:
    """Return rows for Y and D as slope and intercept over all tau of a workload."""
    taus, rounds = [], []
    for record in group:
        for seconds in (s for part in record["round_s"] for s in part):
            taus.append(record["tau"])
            rounds.append(seconds)
    fit = fit_rounds(taus, rounds)
    delay_s = float(np.mean([barrier_timed_delay(record).value for record in group]))
    for name, estimate, bound, source in (
        ("Y", fit.step_s, group[0]["mean_step_s"], "the padded step"),
        ("D", fit.delay_s, delay_s, "D timed behind a barrier"),
    ):
        verdict, reason = near(estimate.value, bound)
        yield Comparison(
            quantity=f"{name}, fitted to the rounds of all tau",
            measured=estimate.value,
            interval=(float(estimate.interval.lo), float(estimate.interval.hi)),
            bound=bound,
            verdict=verdict,
            reason=reason,
            theorem=source,
            n=len(rounds),
            **_common(group[0]),
        )
