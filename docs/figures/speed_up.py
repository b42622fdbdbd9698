"""How much faster an iteration gets by averaging every tau steps only (after Wang and Joshi 2018, speed-up)."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, joined, panels, points, study

from bounds.runtime import Constant, RuntimeModel
from gpu_validation.judging.comparisons import exact_row
from gpu_validation.judging.iteration_time import barrier_timed_delay, iteration
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure

STUDY = "straggler"
RATIOS = (0.25, 1.0, 4.0, 16.0)
TAUS = (1, 2, 4, 8, 16, 32, 64, 128)


def measured() -> dict[tuple[str, int], list[dict[str, Any]]]:
    """(case, m) -> records by tau, for steps of one length and for exponential ones."""
    straggler, units, _ = study(STUDY)
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for unit, measured_unit in straggler.table(units, "pace"):
        if unit.case in ("logistic", "network", "exponential"):
            found[unit.case, unit.m] = sorted(measured_unit["records"], key=lambda record: record["tau"])
    return found


def predicted(record: dict[str, Any]) -> float:
    """E max + D/tau, in seconds."""
    return float(record["predicted_compute_s"] + barrier_timed_delay(record).value / record["tau"])


def draw() -> Any:
    """Left the formula, right measured against predicted."""
    figure, (left, *rights) = panels(3, columns=3, height=4)
    for i, r in enumerate(RATIOS):
        model = RuntimeModel(Constant(1.0), delay_s=r)
        gain = [model.speed_up(tau=tau, m=1) for tau in TAUS]
        joined(left, i, TAUS, gain, f"D/Y = {r:g}")
    left.set(xscale="log", yscale="log", xlabel="tau", ylabel="speed-up", title="theory, equal steps")
    for right, random in zip(rights, (False, True), strict=True):
        chosen = {key: records for key, records in measured().items() if (key[0] == "exponential") == random}
        for i, ((case, m), records) in enumerate(chosen.items()):
            first = records[0]
            theory = [predicted(first) / predicted(record) for record in records]
            gains = [iteration(first).value / iteration(record).value for record in records]
            taus = [record["tau"] for record in records]
            curve(right, i, taus, theory, linewidth=1)
            points(right, i, taus, gains, f"{case}, m = {m}")
        title = f"measured, {'exponential' if random else 'equal steps'}"
        right.set(xscale="log", xlabel="tau", ylabel="speed-up over tau = 1", title=title)
    for ax in (left, *rights):
        ax.set_ylim(top=(8 if ax is left else 1.5) * ax.get_ylim()[1])
        ax.legend(loc="upper left")
    return figure


def figures() -> list[Figure]:
    """The one figure."""
    method = next(iter(measured().values()))[0]
    caption = (
        "Left, theory: seconds per iteration at tau = 1 over those at tau, (1 + r)/(1 + r/tau) with r = D/Y. The "
        "others, marks: measured, real processes with padded steps on a shaped network; lines: the runtime model, "
        "whose D was timed by itself; exponential steps gain more, since their maxima fall with tau. "
        f"{method['scheduling']}."
    )
    gains = [iteration(of_case[0]).value / iteration(r).value for of_case in measured().values() for r in of_case]
    finding = f"Averaging rarely makes an iteration up to {max(gains):.1f} times shorter on this network"
    return [Figure(draw, caption, f"Record: docs/data/studies/{STUDY}.jsonl.", finding=finding)]


def check() -> list[Comparison]:
    """The formula is the model's, and no speed-up is beyond its ceiling 1 + D/Y."""
    rows = []
    for r in RATIOS:
        model = RuntimeModel(Constant(1.0), delay_s=r)
        for tau in TAUS:
            gain, formula = model.speed_up(tau=tau, m=1), (1 + r) / (1 + r / tau)
            about = {"operator": "", "workload": f"D/Y = {r:g}", "quantity": "speed-up", "tau": tau}
            rows.append(exact_row(gain, formula, bool(np.isclose(gain, formula, rtol=1e-12)), **about))
            rows.append(exact_row(gain, 1 + r, gain <= 1 + r, **{**about, "quantity": "ceiling of the speed-up"}))
    return rows
