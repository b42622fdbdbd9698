"""What follows from the records of the ``adacomm`` study: seconds against the model, ratios, accuracies, theorems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

from bounds import AssumptionViolated, Bound, theorems
from bounds.runtime.law import Law
from bounds.theorems.local_sgd import schedule_sums

from ...records.storage import Record
from ...verdicts.comparisons import NO_RANGE, mean_row, median_row, unjudged_row
from ...verdicts.intervals import Median, median_of
from ...verdicts.iteration_time import TOLERANCE
from ...verdicts.time_to_target import smoothed, time_to_loss
from ...verdicts.verdict import Comparison, Verdict
from ..unit import of_kind, read_unit
from .problems import CONSTANT, CROWD, GOAL, KINDS, Compare, Crowd, Design, Prove

ESTIMATED = "Theorem 1 asks for L and sigma2 that hold for all x; for a network they can only be estimated"


@dataclass(frozen=True)
class TimeToTarget:
    """When one run came to the target of its seed.

    Parameters
    ----------
    seconds : float
        Infinite if it did not.
    ratio : float
        The synchronous run's seconds over these; 0 if it did not.
    accuracy : float or None
        On held-out data, of the averaged model at that time or else at the end.
    """

    name: str
    seconds: float
    ratio: float
    accuracy: float | None


@dataclass(frozen=True)
class Group:
    """Runs that differ in schedule and seed alone.

    Parameters
    ----------
    hits
        By schedule, one a seed; the synchronous one first.
    """

    course: str
    rate: str
    m: int
    races: dict[str, list[Record]]
    times_to_target: dict[str, list[TimeToTarget]]

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.course}, {self.rate} rate, m = {self.m}"

    def speedup(self, name: str) -> Median:
        """Return how many times faster than the synchronous run, over the seeds."""
        return median_of([hit.ratio for hit in self.times_to_target[name]])

    @property
    def best_fixed(self) -> str:
        """The fixed tau of the largest median."""
        return max(
            (name for name in self.times_to_target if name.startswith("tau")), key=lambda name: self.speedup(name).value
        )


def times_to_target(unit: Record, budget_s: float, window: float) -> list[TimeToTarget]:
    """Return them of a unit's runs; the first, synchronous one gives the target, its smoothed loss at the budget."""
    synchronous, window_s = unit["races"][0], window * budget_s
    target = float(smoothed(synchronous["seconds"], synchronous["losses"], budget_s, window_s=window_s))
    times = [time_to_loss(r["seconds"], r["losses"], target, window_s=window_s) for r in unit["races"]]
    times[0] = min(times[0], budget_s)  # where the target was taken, should no corner of the curve be as low
    return [
        TimeToTarget(race["name"], seconds, _ratio(times[0], seconds), _accuracy(race, seconds))
        for race, seconds in zip(unit["races"], times, strict=True)
    ]


def _ratio(synchronous_s: float, seconds: float) -> float:
    """Return 1 where all begin at the target, because the synchronous run learnt nothing."""
    return 1.0 if seconds == synchronous_s else synchronous_s / seconds


def _accuracy(race: Record, at: float) -> float | None:
    return next(
        (a for t, a in zip(race["seconds"], race["accuracies"], strict=True) if t >= at), race["accuracies"][-1]
    )


def groups(records: Sequence[Record], budget_s: Callable[[str], float], window: float) -> list[Group]:
    """Return the reported runs, in order.

    Parameters
    ----------
    budget_s : callable
        Seconds of a run, by the name of its course.
    window : float
        Of the smoothing, in shares of the budget.
    """
    by_setting: dict[tuple[str, str, int], Group] = {}
    for record in records:
        match read_unit(record["unit"], KINDS):
            case Compare(course, rate):
                setting = (course, rate, record["m"])
            case Crowd():
                setting = (CROWD, CONSTANT, record["m"])
            case _:
                continue
        group = by_setting.setdefault(setting, Group(*setting, {}, {}))
        for race, hit in zip(record["races"], times_to_target(record, budget_s(group.course), window), strict=True):
            group.races.setdefault(hit.name, []).append(race)
            group.times_to_target.setdefault(hit.name, []).append(hit)
    return list(by_setting.values())


def rows(design: Design, records: Sequence[Record], *, false_alarm: float) -> list[Comparison]:
    """Return ratios first, then accuracies and seconds, then the convex runs under their theorems.

    Parameters
    ----------
    false_alarm : float
        Chance that the rows of the theorems accuse a true claim.
    """
    all_groups = groups(records, design.budget_s, design.window)
    proofs = [r for _, r in of_kind(records, Prove)]
    return [
        *(row for group in all_groups for row in ratio_rows(group)),
        *(row for group in all_groups for row in end_rows(group)),
        *(row for group in all_groups for row in _seconds_rows(group, design.course(group.course).step)),
        *(_theorem_rows(design, proofs, false_alarm) if proofs else ()),
    ]


# -- what is reported --------------------------------------------------------------------------------------------
def ratio_rows(group: Group) -> Iterable[Comparison]:
    """Return how many times faster than the synchronous run, and than the best fixed tau."""
    best = group.best_fixed
    for name in list(group.times_to_target)[1:]:
        speedup = group.speedup(name)
        quantity = "time to the synchronous run's last loss, times faster"
        yield median_row(name, speedup, _beside(group), workload=group.title, quantity=quantity)
        if not name.startswith("tau"):
            pairs = zip(group.times_to_target[best], group.times_to_target[name], strict=True)
            against = median_of([hit.ratio / other.ratio if other.ratio else float("inf") for other, hit in pairs])
            quantity = f"the same against the best fixed tau, {best}"
            reason = "the best fixed tau was found on the same seeds"
            yield median_row(name, against, reason, workload=group.title, quantity=quantity)


def _beside(group: Group) -> str:
    best = group.speedup(group.best_fixed)
    low, high = best.interval
    return (
        f"reported beside the goal of {GOAL:g} for AdaComm: no bound covers it; best fixed: {group.best_fixed}, "
        f"{best.value:.3g} [{low:.3g}, {high:.3g}]"
    )


def end_rows(group: Group) -> Iterable[Comparison]:
    """Return losses at the end, and held-out accuracies at the target."""
    for name, races in group.races.items():
        about: dict[str, Any] = {"operator": name, "workload": group.title}
        yield unjudged_row([r["losses"][-1] for r in races], ESTIMATED, quantity="loss at the end", **about)
        ends = [hit.accuracy for hit in group.times_to_target[name] if hit.accuracy is not None]
        if ends:
            reason = "no theorem speaks of held-out data"
            yield unjudged_row(ends, reason, quantity="held-out accuracy at the target, or else at the end", **about)


def _seconds_rows(group: Group, step: Law) -> Iterable[Comparison]:
    for name, races in group.races.items():
        yield _seconds_row(races, step, group.m, {"operator": name, "workload": group.title})
    fenced = [fmean(r["fenced_s"]) / step.mean_s for r in next(iter(group.races.values()))]
    reason = "set beforehand by the network's shape, to about 4 at m = 4"
    yield unjudged_row(fenced, reason, operator="", workload=group.title, quantity="D/Y")


def predicted_seconds(race: Record, step: Law, m: int) -> float:
    """Return seconds per iteration by the runtime model, for the rounds that were made: E max of the mean of Y, and
    D/tau.
    """
    delay_s = fmean(race["fenced_s"])
    total = sum(n * (tau * step.expected_max(m=m, tau=tau) + delay_s) for tau, n in race["rounds"])
    return total / race["steps_done"]


def _seconds_row(races: Sequence[Record], step: Law, m: int, about: dict[str, Any]) -> Comparison:
    measured = [race["took_s"] / race["steps_done"] for race in races]
    bound = median(predicted_seconds(race, step, m) for race in races)
    away = median(measured) / bound - 1
    close = abs(away) <= TOLERANCE
    return Comparison(
        quantity="seconds per iteration, median over the seeds",
        measured=median(measured),
        interval=(min(measured), max(measured)),
        bound=bound,
        side="tight",
        verdict=Verdict.HOLDS if close else Verdict.INCONCLUSIVE,
        reason="" if close else f"{away:+.1%} from the model; the noise of a shared machine has no bound",
        theorem=f"E max of mean Y + D / tau; {races[0]['scheduling']}; {races[0]['method']}",
        n=len(races),
        decides=False,
        unit="s",
        **about,
    )


# -- what is proved ----------------------------------------------------------------------------------------------
def _theorem_rows(design: Design, proofs: Sequence[Record], false_alarm: float) -> Iterable[Comparison]:
    constants, eta = design.proof.workload.constants(), design.proof.workload.eta
    common = {"L": constants.L, "sigma2": constants.sigma2, "gap": constants.gap, "m": design.m}
    names = [race["name"] for race in proofs[0]["races"]]
    fixed = [name for name in names if name.startswith("tau")]
    level = false_alarm / (2 * len(fixed) + len(names) - len(fixed))
    for i, name in enumerate(names):
        races = [unit["races"][i] for unit in proofs]
        about: dict[str, Any] = {"operator": name, "workload": f"logistic, eta L = {eta * constants.L:.3g}"}
        if name not in fixed:
            yield _variable_row(races, eta, common, level, about)
            continue
        arguments = {**common, "eta": eta, "tau": races[0]["rounds"][0][0], "K": races[0]["steps_done"]}
        means = [fmean(race["gradient2"]) for race in races]
        for bound in (theorems.pasgd_iterations, theorems.pasgd_convex):
            yield _bounded_row(bound, arguments, means, level, about)


def _bounded_row(
    bound: Bound, at: dict[str, float], means: Sequence[float], level: float, about: dict[str, Any]
) -> Comparison:
    about = {**about, "quantity": "squared gradient norm, average over steps", "theorem": bound.name}
    try:
        value = bound(**at)
    except AssumptionViolated as violated:
        return unjudged_row(means, str(violated), **about)
    return mean_row(means, value, "upper", level=level, **about)


def _variable_row(
    races: Sequence[Record], eta: float, common: dict[str, float], level: float, about: dict[str, Any]
) -> Comparison:
    """Compare the sums of Theorem 3, also where tau depends on what happened before: their difference is at most 0."""
    bound, excess = theorems.pasgd_variable, []
    about = {**about, "quantity": "sum of eta |grad F|^2, less the right side of Theorem 3", "theorem": bound.name}
    weighted = [eta * sum(race["gradient2"]) for race in races]
    for race, left in zip(races, weighted, strict=True):
        taus = [tau for tau, n in race["rounds"] for _ in range(n)]
        sums = schedule_sums([eta] * len(taus), taus, L=common["L"])
        try:
            excess.append(left - bound(**common, **sums) * sums["sum_eta"])
        except AssumptionViolated as violated:
            return unjudged_row(weighted, str(violated), **{**about, "quantity": "sum of eta |grad F|^2"})
    return unjudged_row(excess, NO_RANGE, **about)
