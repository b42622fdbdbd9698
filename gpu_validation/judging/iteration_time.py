"""Comparison of seconds per iteration with the runtime model, whose parts are fitted to rounds and steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bounds.estimate import Estimate, mean_estimate
from operators import Key

from ..records.storage import Record
from ..timing import delay_from_rounds, fit_law, fit_rounds
from .comparisons import exact_row
from .intervals import Interval
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
    }


def near(measured: float, bound: float) -> tuple[Verdict, str]:
    """Return HOLDS within TOLERANCE, else INCONCLUSIVE with the reason."""
    away = measured / bound - 1
    if abs(away) <= TOLERANCE:
        return Verdict.HOLDS, ""
    return Verdict.INCONCLUSIVE, f"{away:+.1%} from the model; the noise of a shared machine has no bound"


def _near_row(measured: float, interval: Interval, bound: float, **about: Any) -> Comparison:
    """Compare seconds with the model's; the row decides nothing."""
    verdict, reason = near(measured, bound)
    about |= {"verdict": verdict, "reason": reason, "side": "tight", "unit": "s", "decides": False}
    return Comparison(measured=measured, interval=interval, bound=bound, **about)


def seconds_row(races: Sequence[Record], predicted: Sequence[float], words: str, **about: Any) -> Comparison:
    """Compare real seconds per iteration with the runtime model; deciding nothing.

    ``races`` and ``predicted`` have one entry a seed.  ``words`` describes the machine.
    """
    measured = [race["took_s"] / race["steps_done"] for race in races]
    about |= {"quantity": "seconds per iteration, median over the seeds", "n": len(races)}
    about["theorem"] = f"E max of mean Y + D / tau; {words}"
    return _near_row(float(np.median(measured)), (min(measured), max(measured)), float(np.median(predicted)), **about)


def _ends(estimate: Estimate) -> Interval:
    return float(estimate.interval.lo), float(estimate.interval.hi)


def _iteration_row(record: Record) -> Comparison:
    """Compare the mean with the prediction, by the interval of the drawn steps."""
    estimate = iteration(record)
    low, high = _ends(estimate)
    predicted = record["predicted_compute_s"] + barrier_timed_delay(record).value / record["tau"]
    row = _near_row(
        estimate.value,
        (low, high),
        predicted,
        quantity="seconds per iteration, mean of the rounds",
        theorem=f"E max of mean Y + D / tau; {record['scheduling']}; {record['method']}",
        tau=record["tau"],
        n=sum(len(part) for part in record["round_s"]),
        **_common(record),
    )
    return replace(row, verdict=Verdict.HOLDS, reason="") if low <= predicted <= high else row


def _delay_row(record: Record) -> Comparison:
    """Compare D, estimated from the rounds minus the steps, with D timed behind a barrier."""
    rounds = np.concatenate([np.asarray(part) for part in record["round_s"]])
    steps = np.concatenate([np.asarray(part) for part in np.swapaxes(np.asarray(record["step_s"]), 0, 1)], axis=1)
    estimate, fenced = delay_from_rounds(rounds, steps, tau=record["tau"]), barrier_timed_delay(record)
    about = {**_common(record), "tau": record["tau"], "n": rounds.size, "theorem": "D timed behind a barrier"}
    about["quantity"] = "D, from rounds without the slowest worker's steps"
    return _near_row(estimate.value, _ends(estimate), fenced.value, **about)


def _law_row(record: Record) -> Comparison:
    fit = fit_law(np.asarray(record["step_s"][0]).reshape(-1), key=Key(0).fold_in(FIT))
    right = fit.accepted and record["law"].startswith(fit.best.family)
    p_value = float(fit.best.p_value or 0.0)
    return Comparison(
        quantity="law of Y: p-value of the best fit, rank 0",
        measured=p_value,
        interval=(p_value, p_value),
        bound=None,
        side="lower",
        verdict=Verdict.HOLDS if right else Verdict.INCONCLUSIVE,
        reason=fit.statement,
        theorem=f"drawn from {record['law']}",
        tau=record["tau"],
        n=fit.n,
        decides=False,
        **_common(record),
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
        about = {**_common(group[0]), "theorem": source, "n": len(rounds)}
        about["quantity"] = f"{name}, fitted to the rounds of all tau"
        yield _near_row(estimate.value, _ends(estimate), bound, **about)


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
    about["theorem"] = (
        f"Y + D/tau, D = {1e3 * delay_s:.3g} ms timed by itself; {record['scheduling']}; {record['method']}"
    )
    about["quantity"] = "seconds per iteration of real processes"
    return [equal, _near_row(measured, (measured, measured), predicted, **about)]
