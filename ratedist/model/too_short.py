"""For which answers of a plan its pilot is too short, and how much longer it would have to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .choosing import Way
from .cluster import Cluster
from .pilot import Pilot
from .pilot_choice import PilotChoice
from .prediction import HIDDEN

MOST_REPEATS = 1024


def too_short(
    pilot: Pilot, cluster: Cluster, best: PilotChoice, way: Way, ranking: Sequence[PilotChoice]
) -> Iterator[str]:
    """Yield the answers that the pilot's moments do not suffice for."""
    moments = len(pilot.survival)
    if best.progress_per_step is not None and best.progress_per_step.interval.lo <= 0:
        needed = moments_needed(pilot, cluster, best, way)
        more = (
            f"not even {MOST_REPEATS * moments} like these would do: take larger batches"
            if needed is None
            else f"at least about {needed - moments} more like these would bring its lower end to half its limit"
        )
        yield f"the pilot is too short for this answer: with its {moments} moments the progress could be 0; {more}"
    hidden = list(dict.fromkeys(choice.operator for choice in ranking if choice.reason == HIDDEN))
    if hidden:
        yield f"the pilot is too short for {', '.join(hidden)}: noise hides the progress; take more moments"


def moments_needed(pilot: Pilot, cluster: Cluster, choice: PilotChoice, way: Way) -> int | None:
    """Return after how many moments like a pilot's own the lower end of a progress is half of its limit.

    Parameters
    ----------
    pilot : Pilot
        What was measured.
    cluster : Cluster
        Workers and links.
    choice : PilotChoice
        Whose progress it is.
    way : {"gather", "two_shot", "node_gather", "node_two_shot"}
        How its messages travel.

    Notes
    -----
    The moments are repeated: means and variances stay as the pilot has found them, intervals shrink.  Few moments find
    too small a variance more often than too large a one, so that more may be needed.  The limit is taken after 1024
    times as many; None where it is 0.
    """
    trials = tuple(trial for trial in pilot.operators if trial.operator == choice.operator)
    alone = replace(pilot, operators=trials)

    def lower_end(times: int) -> float:
        longer = alone.repeated(times)
        sent = longer.sent(choice.operator) if trials else None
        progress = longer.predictor(cluster).foretell(sent, way, choice.rhythm).progress
        return 0.0 if progress is None else float(progress.interval.lo)

    limit = lower_end(MOST_REPEATS)
    if limit <= 0:
        return None
    low, high = 0, MOST_REPEATS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if lower_end(middle) >= limit / 2 else (middle, high)
    return high * len(pilot.survival)
