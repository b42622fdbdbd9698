"""Settings that every adapter passes to ``PeriodicAveraging``."""

from __future__ import annotations

import os

import torch.distributed as dist

from ..averaging.pacing.probing import MeasuredInputs
from ..averaging.periodic_averaging import PeriodicAveraging
from ..averaging.settings import Parts
from ..processes.collectives import ProcessTransport


class AveragingKeywords(Parts, total=False):
    """Keywords of ``PeriodicAveraging`` with the same meaning in every adapter; see there.

    ``schedule`` is missing because every adapter uses its library's word for it.
    """

    process_group: dist.ProcessGroup | ProcessTransport | None
    telemetry: bool | str | os.PathLike[str]


def finish(averaging: PeriodicAveraging) -> None:
    """End the current round and merge averages in flight, so that all ranks hold the same model.

    Every rank must call it after the same step.
    """
    engine = averaging.engine
    if isinstance(engine.inputs, MeasuredInputs):  # no period follows, and gradients may have been deleted
        engine.inputs.record_step([None], [None], (), engine.clock)
    if engine.periods.local_steps or engine.overlapped is not None:  # else outer momentum would move the model
        averaging.average()
