"""Settings that every adapter passes to ``PeriodicAveraging``."""

from __future__ import annotations

import os

import torch.distributed as dist

from ..distributed.collectives import ProcessTransport
from ..local_sgd.keywords import Parts
from ..local_sgd.periodic_averaging import PeriodicAveraging
from ..local_sgd.sensing import MeasuredInputs


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
    if isinstance(averaging.inputs, MeasuredInputs):  # no period follows, and gradients may have been deleted
        averaging.inputs.record_step([None], [None], (), averaging.clock)
    if averaging.periods.local_steps or averaging.overlapped is not None:  # else outer momentum would move the model
        averaging.average()
