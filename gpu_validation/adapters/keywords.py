"""Settings that every adapter passes to ``PeriodicAveraging``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TypedDict

import torch.distributed as dist

from operators import Feedback, Key, Operator
from operators.exchange import Exchange
from operators.summed import Summed

from ..distributed.collectives import ProcessTransport
from ..local_sgd.clock import Clock
from ..local_sgd.config import OptimizerState
from ..local_sgd.merge_rules import Overlap
from ..local_sgd.mixing import Mixing
from ..local_sgd.outer import OuterFactory
from ..local_sgd.periodic_averaging import PeriodicAveraging
from ..local_sgd.sensing import MeasuredInputs


class AveragingKeywords(TypedDict, total=False):
    """Settings of ``PeriodicAveraging`` with the same meaning in every adapter; see there.

    ``schedule`` is missing because every adapter uses its library's word for it.  ``uneven`` and ``quorum`` are missing
    because those libraries run collectives of all ranks themselves.
    """

    operator: Operator | Feedback | Summed | None
    mixing: Mixing | Literal["full"]
    process_group: dist.ProcessGroup | None
    transport: ProcessTransport | None
    key: Key
    optimizer_state: OptimizerState
    block_momentum: float
    steps: int | None
    clock: Clock | None
    telemetry: bool | str | os.PathLike[str]
    piggyback: bool
    exchange: Exchange
    second: Operator | Feedback | None
    errors: bool
    outer: OuterFactory | Sequence[OuterFactory] | None
    overlap: Overlap
    delay: int | None
    fragments: int | Sequence[str]
    local_weight: float
    ranks_per_node: int


def finish(averaging: PeriodicAveraging) -> None:
    """End the current round and merge averages in flight, so that all ranks hold the same model.

    Every rank must call it after the same step.
    """
    if isinstance(averaging.inputs, MeasuredInputs):  # no period follows, and gradients may have been deleted
        averaging.inputs.record_step([None], [None], (), averaging.clock)
    if averaging.periods.local_steps or averaging.overlapped is not None:  # else outer momentum would move the model
        averaging.average()
