"""Seconds of a local step on a cluster as a pilot foretells them, and their ratio to synchronous training's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from bounds import Interval
from bounds.claims import Unbiased
from bounds.estimate import Estimate
from bounds.runtime import Empirical

from .choosing import Way, averaging
from .cluster import Cluster
from .compressors import operator_of
from .node_travel import gathered_by_nodes, in_two_shots_of_nodes
from .planned_run import PlannedRun
from .prediction_records import Sent
from .rhythm import BACKWARD_SHARE, Rhythm, buckets_of
from .travel import DENSE_BITS, Travel, in_two_shots, travel

LEAST_SCALE = 1e-9
FIXED = "seconds of links and of coding are taken as given, without an interval"
STEPS = "how the cluster's law of a step was found: its seconds have no interval"
TAILS = "steps slower than the slowest of the {samples} in the pilot, of which {workers} workers would see some"
BACKWARD = f"how long the backward pass takes: taken to be {BACKWARD_SHARE:.2f} of a step"
BUCKETS = "when the buckets of a gradient are ready: taken to be equal ones, one after the other"


@dataclass(frozen=True, eq=False)
class StepSeconds:
    """What steps on a cluster take, against synchronous uncompressed training on it.

    Parameters
    ----------
    step : Estimate
        Mean seconds of a step in the pilot.
    cluster : Cluster
        Workers and links.
    d : int
        Trained parameters.
    level : float
        Confidence of the intervals.
    exchanges : mapping of (str, str) to Estimate, optional
        Seconds of whole averagings by operator and exchange, where they were timed on this cluster.
    baseline : Rhythm or None, optional
        When synchronous training averages; None: waiting, or in DistributedDataParallel's buckets where that is sooner.
    """

    step: Estimate
    cluster: Cluster
    d: int
    level: float
    exchanges: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    baseline: Rhythm | None = None

    @cached_property
    def travel(self) -> Callable[[Sent | None, Way], Travel]:
        """Return how messages of an operator travel on a way, whole."""
        return cache(lambda sent, exchange: _travel_of(sent, exchange, self.d, self.cluster))

    def run(self, sent: Sent | None, way: Travel, rhythm: Rhythm) -> PlannedRun:
        """Return one round.

        Parameters
        ----------
        sent : Sent or None
            The operator; None without compression.
        way : Travel
            Of its whole messages.
        rhythm : Rhythm
            When they average.
        """
        codec = None if sent is None else sent.codec
        message = way if rhythm.messages == 1 else way.cut(rhythm.messages)
        spent = averaging(message, codec, codec, self.d, self.cluster)
        coding_s = spent["encode_s"] + spent["decode_s"]
        timed = self.exchanges.get(("" if sent is None else sent.operator, way.exchange))
        links_s = way.communicate_s(self.cluster)
        if timed is None or links_s <= 0:
            return PlannedRun(message, self.cluster, rounds=1, rhythm=rhythm, coding_s=coding_s)
        coding_s = min(coding_s, timed.value)
        scale = (timed.value - coding_s) / links_s
        return PlannedRun(message, self.cluster, rounds=1, rhythm=rhythm, coding_s=coding_s, link_scale=scale)

    def of(self, run: PlannedRun) -> tuple[Estimate, Estimate]:
        """Return seconds of a step, and their ratio to those of synchronous training.

        Parameters
        ----------
        run : PlannedRun
            One round.
        """
        scales, _ = self._scales
        ends = [max(scale, LEAST_SCALE) for scale in scales]
        # where passes and links of either take equally long the ratio may have its end
        evens = {each.even for each in (run, self.synchronous) if ends[0] < each.even < ends[1]}
        looked_at = [1.0, *ends, *sorted(evens)]
        seconds = [replace(run, step_scale=scale).seconds / run.tau for scale in looked_at]
        others = [self._synchronous_s(scale) for scale in looked_at]
        ratios = [each / other if other else 1.0 for each, other in zip(seconds, others, strict=True)]
        tops = (math.inf if math.isinf(scales[1]) else max(each) for each in (seconds, ratios))
        return (
            Estimate(seconds[0], Interval(min(seconds), next(tops)), self.level),
            Estimate(ratios[0], Interval(min(ratios), next(tops)), self.level),
        )

    def unknown(self, run: PlannedRun) -> tuple[str, ...]:
        """Return what is not known of these seconds.

        Parameters
        ----------
        run : PlannedRun
            One round.
        """
        buckets = max(run.rhythm.buckets, self.synchronous.rhythm.buckets)
        backward = (BUCKETS,) if self.cluster.backward_share is not None else (BACKWARD, BUCKETS)
        return (*(backward if buckets > 1 else ()), *self._scales[1], FIXED)

    @cached_property
    def synchronous(self) -> PlannedRun:
        """The step of synchronous uncompressed training, in its own rhythm."""
        way = self.travel(None, "gather")
        if self.baseline is not None:
            return self.run(None, way, self.baseline)
        waiting, buckets = self.run(None, way, Rhythm()), buckets_of(self.d)
        if not 1 < buckets <= self.d // self.cluster.workers:
            return waiting
        overlapped = self.run(None, way, Rhythm(buckets=buckets))
        return overlapped if overlapped.seconds < waiting.seconds else waiting

    @cached_property
    def _synchronous_s(self) -> Callable[[float], float]:
        return cache(lambda scale: replace(self.synchronous, step_scale=scale).seconds)

    @cached_property
    def _scales(self) -> tuple[tuple[float, float], tuple[str, ...]]:
        """Return by what the cluster's step could be shorter or longer than its law says, and what is not known."""
        law, step = self.cluster.compute, self.step
        if not (isinstance(law, Empirical) and step.value > 0 and math.isclose(law.mean_s, step.value, rel_tol=1e-6)):
            return (1.0, 1.0), (STEPS,)
        samples, workers = len(law.samples), self.cluster.workers
        tails = (TAILS.format(samples=samples, workers=workers),) if workers > samples else ()
        return (max(float(step.interval.lo), 0.0) / step.value, float(step.interval.hi) / step.value), tails


def _travel_of(sent: Sent | None, exchange: Way, d: int, cluster: Cluster) -> Travel:
    """Return how messages of the measured length travel."""
    dense = DENSE_BITS * d
    if sent is None:
        return Travel("sum", Unbiased(0.0), dense, dense, None, 0, 0, "summed on its way")
    operator, bits = operator_of(sent.operator), sent.bits * d
    if exchange == "gather":
        return travel(operator, operator.claim(d), bits, d, cluster)
    if exchange == "node_gather":
        return replace(gathered_by_nodes(operator, d, cluster), bits=bits, link_bits=bits)
    shots: Any = in_two_shots if exchange == "two_shot" else in_two_shots_of_nodes
    return replace(shots(operator, operator, d, cluster), bits=bits, link_bits=bits, result_bits=bits)
