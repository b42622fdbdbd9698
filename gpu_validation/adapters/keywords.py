"""What every adapter hands on to ``PeriodicAveraging``."""

from __future__ import annotations

import os
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
    """Settings of ``PeriodicAveraging`` that mean the same in every adapter; it documents them.

    Not among them are ``schedule``, which every adapter has in the words of its library, and ``uneven`` and ``quorum``,
    which those libraries do not survive: they make collectives of all ranks themselves.
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
    outer: OuterFactory | None
    overlap: Overlap
    delay: int | None
    fragments: int
    ranks_per_node: int


def finish(averaging: PeriodicAveraging) -> None:
    """End the round, if one has begun, and merge what is in flight: all ranks then hold the same model.

    Parameters
    ----------
    averaging : PeriodicAveraging
        Every rank's, after the same step.
    """
    if isinstance(averaging.inputs, MeasuredInputs):  # no period follows to measure for, and gradients may be gone
        averaging.inputs.record_step([None], [None], (), averaging.clock)
    if averaging.periods.local_steps or averaging.overlapped is not None:  # else outer momentum would move it once more
        averaging.average()
