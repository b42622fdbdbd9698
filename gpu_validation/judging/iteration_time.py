"""Comparison of seconds per iteration with the runtime model, whose parts are fitted to rounds and steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bounds.estimate import Estimate, mean_estimate
from operators import Key

from ..records.storage import Record
from ..timing import delay_from_rounds, fit_law, fit_rounds
from .comparisons import exact_row
from .verdict import Comparison, Verdict


def smoothed(
    seconds: Sequence[float], losses: Sequence[float], at: float | np.ndarray, *, window_s: float
) -> np.ndarray:
    """Return the mean of the curve over the ``window_s`` seconds before ``at``, fewer near the start.

    ``seconds`` increase from 0.  After the last point its loss is constant.  The result has the shape of ``at``.

    Raises
    ------
    ValueError
        For other points, or a window that is not positive.
    """
    times, values = np.asarray(seconds, float), np.asarray(losses, float)
    if times.shape != values.shape or times.size == 0 or times[0] != 0 or (np.diff(times) <= 0).any():
        raise ValueError("a curve needs one loss for each of increasing times that begin at 0")
    if not window_s > 0:
        raise ValueError(f"window_s must be > 0; got window_s = {window_s}")
    ends = np.asarray(at, float)
    begins = np.maximum(ends - window_s, 0.0)
    areas = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])

    def area(t: np.ndarray) -> np.ndarray:
        i = np.clip(np.searchsorted(times, t, side="right") - 1, 0, None)
        return areas[i] + values[i] * (t - times[i])

    lengths = ends - begins
    means = (area(ends) - area(begins)) / np.where(lengths > 0, lengths, 1.0)
    return np.where(lengths > 0, means, values[0])


def time_to_loss(seconds: Sequence[float], losses: Sequence[float], target: float, *, window_s: float) -> float:
    """Return the first time in seconds at which the smoothed curve reaches ``target``; inf if it never does."""
    times = np.asarray(seconds, float)
    corners = np.unique(np.concatenate([times, times + window_s]))
    corners = corners[corners <= times[-1]]
    values = smoothed(seconds, losses, corners, window_s=window_s)
    below = np.flatnonzero(values <= target)
    if below.size == 0:
        return math.inf
    i = int(below[0])
    if i == 0:
        return float(corners[0])
    share = (values[i - 1] - target) / (values[i - 1] - values[i])  # linear between corners, except at the start
    return float(corners[i - 1] + share * (corners[i] - corners[i - 1]))


def arrival(seconds: Sequence[float], losses: Sequence[float], target: float, *, share: float = 1 / 8) -> float:
    """Return the first time at which the mean loss over the last ``share`` of the time reaches ``target``, or inf.

    If a run does the same in 1/k of the time, its arrival is exactly k times earlier.  A window of fixed length would
    not separate early targets.  The means are interpolated linearly, starting with the first loss.
    """
    times = np.asarray(seconds, float)
    if losses[0] <= target:
        return 0.0
    means = [losses[0], *(float(smoothed(seconds, losses, t, window_s=share * t)) for t in times[1:])]
    i = next((i for i, mean in enumerate(means) if mean <= target), 0)
    if not i:
        return math.inf
    part = (means[i - 1] - target) / (means[i - 1] - means[i])
    return float(times[i - 1] + part * (times[i] - times[i - 1]))


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


def compared(real: Record, simulated: Record) -> Record:
    """Return the number of steps that both records have, and the largest difference of their losses."""
    ends = dict(zip(simulated["step"], simulated["losses"], strict=True))
    differences = [abs(loss - ends[k]) for k, loss in zip(real["step"], real["losses"], strict=True) if k in ends]
    return {"compared": len(differences), "largest_difference": max(differences)}


def agreement_rows(record: Record, *, steps: int, step_s: float, tau: int, **about: Any) -> list[Comparison]:
    """Return rows for equal losses and for seconds per iteration near the runtime model's; the latter never decide.

    ``record`` has the result of ``compared``, ``raced_s`` and ``steps`` of the timed run, ``fenced_s`` of averagings
    timed behind barriers, ``scheduling`` and ``method``.  ``step_s`` is Y in seconds.
    """
    about["tau"] = tau
    equal = exact_row(
        record["largest_difference"],
        0.0,
        record["largest_difference"] == 0 and record["compared"] > 1,
        quantity="real against virtual workers: largest difference of losses",
        facts={"compared": record["compared"]},
        theorem="the same steps, bit for bit",
        **about,
    )
    delay_s = float(np.mean(record["fenced_s"]))
    measured, predicted = record["raced_s"] / steps, step_s + delay_s / tau
    verdict, reason = near(measured, predicted)
    seconds = Comparison(
        quantity="seconds per iteration of real processes",
        measured=measured,
        interval=(measured, measured),
        bound=predicted,
        side="tight",
        verdict=verdict,
        reason=reason,
        theorem=f"Y + D/tau, D = {1e3 * delay_s:.3g} ms timed by itself; {record['scheduling']}; {record['method']}",
        decides=False,
        unit="s",
        **about,
    )
    return [equal, seconds]
