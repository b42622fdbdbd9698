"""What a pilot foretells of training on a cluster: seconds and progress of a step, against synchronous training."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from bounds import Interval, plan
from bounds.claims import Contractive, Unbiased
from bounds.estimate import Estimate
from bounds.frame import frame
from bounds.runtime import Empirical

from ..numbers import whole
from ..records import plain
from .choosing import Asked, averaging, choice_of
from .cluster import Cluster, checked_cluster
from .codec import Codec
from .compressors import operator_of
from .limits import PlannedRun
from .node_travel import gathered_by_nodes, in_two_shots_of_nodes
from .planned_problem import problem_of
from .progress import (
    LEVEL,
    Averaging,
    LocalPath,
    RoundRows,
    kept_by_staleness,
    kept_with_errors,
    kept_with_feedback,
)
from .travel import DENSE_BITS, Travel, in_two_shots, travel

if TYPE_CHECKING:
    from pandas import DataFrame

    from operators import Operator

Way = Literal["gather", "two_shot", "node_gather", "node_two_shot"]
WAYS: tuple[Way, ...] = ("gather", "two_shot", "node_gather", "node_two_shot")
Limit = Literal["compute", "latency", "bandwidth", "noise"]
QUANTITIES = ("seconds_per_step", "progress_per_step", "time_ratio")
CERTIFIED_TARGET = 0.1
LEAST_SCALE = 1e-9
OPTIMIZER = (
    "momentum, adaptive rates, and learning rates that change are not in the model, which is that of plain steps on "
    "workers with the same data"
)
HORIZON = "how progress changes later in training: the pilot has seen its own stretch of the path only"
LOCAL = (
    "what local steps cost where gradients are not linear: nothing on quadratics; the lower end of progress is that of "
    "a synchronous run whose gradient would stay what it is at the start of a round"
)
STALE = "the lower end of progress in flight: the pilot has not looked at gradients that are {old} steps old"
HIDDEN = "progress: the noise of the pilot hides the gradient; take more moments, or larger batches"
BIASED = (
    "error feedback: the residuals, up to {lag:.3g} gradients of a rank, are late at the end, and are taken to be "
    "curved as a step is"
)
CURVED = "how errors of messages lie to the curvature: taken to be curved as the messages are"
FIXED = "seconds of links and of coding are taken as given, without an interval"
STEPS = "how the cluster's law of a step was found: its seconds have no interval"
TAILS = "steps slower than the slowest of the {samples} in the pilot, of which {workers} workers would see some"
BEYOND = "what is left of a gradient beyond {last} steps, which was not looked at: taken as falling on as before"
CONVEX = (
    "progress where the loss curves downwards along the path, as here: errors of messages are taken to cost nothing"
)


@dataclass(frozen=True)
class Sent:
    """One operator, as a pilot has measured it.

    Parameters
    ----------
    operator : str
        Its specification.
    omega : Estimate
        Relative squared error of a message.
    bits : float, bits
        A coordinate.
    residual : float or None
        Largest norm of error feedback's residual over that of a gradient; None where it was not tried.
    codec : Codec
        Seconds a coordinate.
    """

    operator: str
    omega: Estimate
    bits: float
    residual: float | None
    codec: Codec


@dataclass(frozen=True)
class Prediction:
    """Seconds and progress of a step, and the time to a loss over that of synchronous uncompressed training.

    Parameters
    ----------
    seconds_per_step : Estimate
        Of one local step with its share of an averaging, seconds.
    progress_per_step : Estimate or None
        Expected fall of the loss over that of a synchronous uncompressed step; None where noise hides it.
    time_ratio : Estimate or None
        Seconds to the same fall of the loss over those of synchronous uncompressed training; below 1 is faster.
    limits : {"compute", "latency", "bandwidth", "noise"}
        What takes most of a step; "noise" where most of what a gradient would gain is lost to noise and errors.
    unknown : tuple of str
        What the pilot does not tell, in sentences; an interval holds what is in none of them.
    operator : str
        Its specification; "" without compression.
    exchange : str
        How messages travel.
    tau : int
        Local steps between two averages.
    overlap : bool
        Whether averages travel while the next round is computed.
    certified_time_ratio : float or None
        The worst case beside the prediction: the same ratio as a theorem guarantees it for strongly convex problems of
        condition number 100; None where there is none.
    certified : str
        The theorem and its setting in a sentence, or why there is none.
    """

    seconds_per_step: Estimate
    progress_per_step: Estimate | None
    time_ratio: Estimate | None
    limits: str
    unknown: tuple[str, ...]
    operator: str
    exchange: str
    tau: int
    overlap: bool
    certified_time_ratio: float | None
    certified: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}

    def to_frame(self) -> DataFrame:
        """Return one row a quantity: value, ends of its interval, level."""
        return frame(
            [
                {
                    "quantity": name,
                    "value": None if estimate is None else estimate.value,
                    "low": None if estimate is None else float(estimate.interval.lo),
                    "high": None if estimate is None else float(estimate.interval.hi),
                    "level": None if estimate is None else estimate.level,
                }
                for name in QUANTITIES
                for estimate in (getattr(self, name),)
            ]
        )


def predicted(
    path: LocalPath,
    step: Estimate,
    cluster: Cluster,
    sent: Sent | None,
    *,
    d: int,
    exchange: Any,
    tau: Any,
    overlap: bool,
) -> Prediction:
    """Return what a path, an operator and a cluster foretell.

    Parameters
    ----------
    path : LocalPath
        What a worker has measured.
    step : Estimate
        Mean seconds of its steps.
    cluster : Cluster
        Workers and links.
    sent : Sent or None
        The operator; None without compression.
    d : int
        Trained parameters.
    exchange : {"gather", "two_shot", "node_gather", "node_two_shot"}
        How compressed messages travel.
    tau : int
        Local steps between two averages.
    overlap : bool
        Whether averages travel while the next round is computed.

    Raises
    ------
    ValueError
        For bad arguments, more local steps than were looked at, and operators without a model.
    """
    cluster, steps = checked_cluster(cluster), whole("tau", tau)
    if exchange not in WAYS:
        raise ValueError(f"exchange must be one of {', '.join(WAYS)}; got {exchange!r}: choose one of them")
    operator = None if sent is None else operator_of(sent.operator)
    way = _travel(operator, sent, cast(Way, exchange), d, cluster)
    rows, single = path.of_round(steps), path.of_round(1)
    whose = _averaging(way, cluster)
    unknown = [OPTIMIZER, HORIZON]
    kept = _kept(rows, sent, way, whose, unknown)
    kept = _stale(kept, path, rows, single, whose, (steps, overlap), unknown)
    seconds, ratio, limit = _seconds(way, sent, cluster, step, (d, steps, overlap), unknown)
    if _noisy(rows, sent, whose):
        limit = "noise"
    time_ratio = None if kept is None else _over(ratio, kept)
    certified = _certified(operator, sent, d, cluster, cast(Way, exchange), (steps, overlap))
    shown = "" if sent is None else sent.operator
    return Prediction(seconds, kept, time_ratio, limit, tuple(unknown), shown, way.exchange, steps, overlap, *certified)


# -- progress ------------------------------------------------------------------------------------------------
def _kept(rows: RoundRows, sent: Sent | None, way: Travel, whose: Averaging, unknown: list[str]) -> Estimate | None:
    """Return what the messages leave of a synchronous round's progress."""
    if rows.bends.mean() < 0:
        unknown.append(CONVEX)
    if sent is None:
        return Estimate(1.0, Interval(1.0, 1.0), LEVEL)
    if isinstance(way.claim, Unbiased):
        kept = kept_with_errors(rows, sent.omega, whose)
        unknown.append(CURVED)
    elif isinstance(way.claim, Contractive) and sent.residual is not None:
        kept = kept_with_feedback(rows, sent.residual, whose)
        unknown.append(BIASED.format(lag=sent.residual))
    else:
        raise ValueError(
            f"a prediction needs an unbiased operator, or error feedback that the pilot has tried; got {sent.operator} "
            "without either: make a pilot with another operator"
        )
    if kept is None:
        unknown.append(HIDDEN)
    return kept


def _stale(
    kept: Estimate | None,
    path: LocalPath,
    rows: RoundRows,
    single: RoundRows,
    whose: Averaging,
    way: tuple[int, bool],
    unknown: list[str],
) -> Estimate | None:
    """Return the same with a lower end for old gradients."""
    tau, overlap = way
    last = path.taus[-1]
    if 2 * tau - 1 > last:
        unknown.append(BEYOND.format(last=last))
    if kept is None or (tau == 1 and not overlap):
        return kept
    unknown.append(LOCAL)
    oldest = 2 * tau if overlap else tau
    if oldest > last:
        unknown.append(STALE.format(old=oldest))
        share = None
    else:
        share = kept_by_staleness(rows if oldest == tau else path.of_round(oldest), single, oldest, whose)
    least = 0.0 if share is None else float(share.interval.lo)
    return Estimate(kept.value, Interval(float(kept.interval.lo) * least, kept.interval.hi), LEVEL)


def _noisy(rows: RoundRows, sent: Sent | None, whose: Averaging) -> bool:
    """Tell whether noise and errors take more than half of what a round without them would gain."""
    signal, omega = rows.signal.value, 0.0 if sent is None else sent.omega.value
    if not math.isfinite(signal):
        return True
    gained, lost = whose.sides(rows, signal, omega)
    return bool(2 * (gained - lost).mean() < (2 - signal) * rows.falls.mean())


def _averaging(way: Travel, cluster: Cluster) -> Averaging:
    """Return whose messages are averaged, and how often."""
    across = way.exchange in ("node_gather", "node_two_shot")
    cast_again = way.exchange == "sum" and isinstance(way.claim, Unbiased) and way.claim.omega > 0
    return Averaging(
        cluster.workers, cluster.nodes or 1 if across else cluster.workers, way.second is not None or cast_again
    )


# -- seconds -------------------------------------------------------------------------------------------------
def _travel(operator: Operator | None, sent: Sent | None, exchange: Way, d: int, cluster: Cluster) -> Travel:
    """Return how messages of the measured length travel."""
    dense = DENSE_BITS * d
    if operator is None or sent is None:
        return Travel("sum", Unbiased(0.0), dense, dense, None, 0, 0, "summed on its way")
    bits = sent.bits * d
    if exchange == "gather":
        return travel(operator, operator.claim(d), bits, d, cluster)
    if exchange == "node_gather":
        return replace(gathered_by_nodes(operator, d, cluster), bits=bits, link_bits=bits)
    shots = in_two_shots if exchange == "two_shot" else in_two_shots_of_nodes
    return replace(shots(operator, operator, d, cluster), bits=bits, link_bits=bits, result_bits=bits)


def _seconds(
    way: Travel,
    sent: Sent | None,
    cluster: Cluster,
    step: Estimate,
    planned: tuple[int, int, bool],
    unknown: list[str],
) -> tuple[Estimate, Estimate, Limit]:
    """Return seconds of a step, their ratio to those of synchronous training, and what takes most of them."""
    d, tau, overlap = planned
    codec, m, law = None if sent is None else sent.codec, cluster.workers, cluster.step()
    spent = averaging(way, codec, codec, d, cluster)
    coding_s, links_s = spent["encode_s"] + spent["decode_s"], spent["communicate_s"]
    dense_s = cluster.averaging_s(DENSE_BITS * d).midpoint
    single_s, round_s = law.expected_max(m=m), tau * law.expected_max(m=m, tau=tau)

    def per_step(scale: float) -> float:
        if overlap:
            flight_s = scale * law.expected_max_above(links_s / scale, m=m, tau=tau)
            return (flight_s + coding_s) / tau
        return (scale * round_s + links_s + coding_s) / tau

    scales = _scales(cluster, step, unknown)
    unknown.append(FIXED)
    inner = [links_s / round_s] if round_s and scales[0] < links_s / round_s < scales[1] else []
    looked_at = [1.0, *(max(scale, LEAST_SCALE) for scale in (*scales, *inner))]
    seconds = [per_step(scale) for scale in looked_at]
    synchronous = [scale * single_s + dense_s for scale in looked_at]
    ratios = [each / other if other else 1.0 for each, other in zip(seconds, synchronous, strict=True)]
    low, high = (math.inf if math.isinf(scales[1]) else max(each) for each in (seconds, ratios))
    estimates = (
        Estimate(seconds[0], Interval(min(seconds), low), LEVEL),
        Estimate(ratios[0], Interval(min(ratios), high), LEVEL),
    )
    run = PlannedRun(way, cluster, rounds=1, tau=tau, compute_s=round_s, coding_s=coding_s)
    return *estimates, _limit(run, overlap)


def _scales(cluster: Cluster, step: Estimate, unknown: list[str]) -> tuple[float, float]:
    """Return by what the cluster's step could be shorter or longer than its law says."""
    law = cluster.compute
    if not (isinstance(law, Empirical) and step.value > 0 and math.isclose(law.mean_s, step.value, rel_tol=1e-6)):
        unknown.append(STEPS)
        return 1.0, 1.0
    if cluster.workers > len(law.samples):
        unknown.append(TAILS.format(samples=len(law.samples), workers=cluster.workers))
    return max(float(step.interval.lo), 0.0) / step.value, float(step.interval.hi) / step.value


def _limit(run: PlannedRun, overlap: bool) -> Limit:
    """Return what takes most of a round; of a round in flight, of what is not hidden."""
    shares = run.limits().shares
    parts: dict[Limit, float] = {
        "compute": shares["compute"] + shares["stragglers"] + shares["coding"],
        "latency": shares["latency"],
        "bandwidth": shares["bandwidth"],
    }
    if overlap and parts["compute"] >= parts["latency"] + parts["bandwidth"]:
        return "compute"
    if overlap:
        parts["compute"] = 0.0
    return max(parts, key=parts.__getitem__)


def _over(seconds: Estimate, progress: Estimate) -> Estimate:
    """Return the quotient of two positive estimates."""
    low, high = float(progress.interval.lo), float(progress.interval.hi)
    value = seconds.value / progress.value if progress.value > 0 else math.inf
    top = float(seconds.interval.hi) / low if low > 0 else math.inf
    return Estimate(value, Interval(min(float(seconds.interval.lo) / high, value) if high else value, top), LEVEL)


# -- the worst case ------------------------------------------------------------------------------------------
def _certified(
    operator: Operator | None, sent: Sent | None, d: int, cluster: Cluster, exchange: Way, way: tuple[int, bool]
) -> tuple[float | None, str]:
    """Return the ratio of seconds that theorems guarantee on any strongly convex problem, or why there is none."""
    if way != (1, False):
        return None, "no worst case: theorems for local steps need L, sigma^2 and a gap, which a pilot does not certify"
    if operator is None or sent is None:
        return 1.0, "certified worst case: this is the synchronous training that it is compared with"
    nothing: dict[str, Any] = {"L": None, "sigma2": None, "gap": None}
    rest: dict[str, Any] = {"G": None, "time_s": None, "eta": None, "condition": None, "curvature": None}
    problem, _ = problem_of(nothing, target=CERTIFIED_TARGET, **rest)
    assert isinstance(problem, plan.Conditioned)
    dense_bits = DENSE_BITS * d
    problem = replace(problem, dense_bits=dense_bits, dense_s=cluster.averaging_s(dense_bits).midpoint)
    goal = {"target": CERTIFIED_TARGET, "time_s": None, "eta": None}
    asked = Asked(d, cluster, problem, goal, sent.codec, None, exchange)
    choice, plainly = choice_of(operator, asked), choice_of(operator_of("identity"), asked)
    if not (choice.feasible and plainly.feasible and choice.seconds and plainly.seconds):
        return None, f"no worst case: {choice.reasons[0]}"
    return choice.seconds / plainly.seconds, (
        f"certified worst case, by {choice.theorem} with the claimed error of a message: full gradients of a strongly "
        f"convex F with L/mu = {problem.kappa:g}, to {CERTIFIED_TARGET:g} of the squared distance"
    )
