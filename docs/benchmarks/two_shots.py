"""Two shots with operators of few bits against plain all-reduce on a network of 1 Gbit/s, as JSON lines.

Run ``python docs/measure.py benchmarks/two_shots.py`` on a quiet machine (root, or user namespaces, for the network).
All actions take turns in one run of real processes, each behind a barrier, so that noise hits all alike.

averaging : seconds of one averaging of d parameters on rank 0; "torch" is PeriodicModelAverager, a ring all-reduce of
float32, "whole" PeriodicAveraging without operator; "errors" says whether rounds also tell the error of compression.
hook : seconds of one backward pass of a model that costs next to nothing, with its exchange; "torch" is
DistributedDataParallel without a hook.
speed_up is the median of torch's seconds over the median, with its 95 % bootstrap interval.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from comparing import quotient
from ranks import Action, Sent, Vector, at_rate, backward_passes, in_turns, on_network, ring_bytes
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager

from gpu_validation.averaging.exchange import parts
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.processes.launch import RankContext
from operators import TCDQ, ErrorFeedback, Feedback, Key, KLevel, Operator, ScaledSign, TernGrad
from operators.exchange import TwoShot

WARM_UP = 5
OPERATORS: dict[str, Operator | Feedback] = {
    "scaled sign, feedback": ErrorFeedback(ScaledSign()),
    "16 levels": KLevel(k=16),
    "TernGrad": TernGrad(),
    "TCDQ, omega .1": TCDQ(omega=0.1),
}


def averagings(d: int) -> Iterator[tuple[dict[str, Any], Action, Sent]]:
    """What it is, one averaging, and the bytes that this rank has handed over."""
    update = torch.randn(d)

    def of(averaging: PeriodicAveraging) -> Action:
        def act() -> None:
            averaging.model.x.data.add_(update)  # type: ignore[operator, union-attr]
            averaging.average()

        return act

    model = Vector(d)
    model.x.grad = update
    averager, calls = PeriodicModelAverager(period=1), [0]

    def torch_average() -> None:
        calls[0] += 1
        model.x.data.add_(update)
        averager.average_parameters(model.parameters())

    yield {"method": "torch"}, torch_average, lambda: ring_bytes(d, calls[0])
    whole = PeriodicAveraging(Vector(d))
    yield {"method": "whole"}, of(whole), lambda: whole.transport.payload_bytes
    for name, operator in OPERATORS.items():
        for errors in (False, True):
            averaging = PeriodicAveraging(Vector(d), exchange=parts.TwoShot(operator, errors=errors))
            sent = lambda own=averaging: own.transport.payload_bytes  # noqa: E731
            yield {"method": name, "errors": errors}, of(averaging), sent  # type: ignore[misc]


def hooks(d: int) -> Iterator[tuple[dict[str, Any], Action, Sent]]:
    """The same for one backward pass."""
    for name, act, sent in backward_passes(d, OPERATORS, "two_shot"):
        yield {"method": name}, act, sent


def measured(d: int, repeats: int, _: RankContext) -> Iterator[dict[str, Any]]:
    """All records, of this rank."""
    kinds = {"averaging": averagings, "hook": hooks}
    rows = [(kind, *row) for kind, make in kinds.items() for row in make(d)]
    before = [sent() for *_, sent in rows]
    seconds = in_turns([act for _, _, act, _ in rows], repeats, WARM_UP)
    plain = {kind: seconds[i] for i, (kind, what, *_) in enumerate(rows) if what["method"] == "torch"}
    for (kind, what, _, sent), was, row in zip(rows, before, seconds, strict=True):
        sent_bytes = (sent() - was) // (repeats + WARM_UP)
        speed_up, interval = quotient(plain[kind], row)
        yield {
            "benchmark": kind,
            **what,
            "median_s": float(np.median(row)),
            "repeats": repeats,
            "speed_up": speed_up,
            "interval": interval,
            "payload_bytes_per_rank": sent_bytes,
            "bits_per_coordinate": round(8 * sent_bytes / d, 3),
        }


def main(processes: int = 4, d: int = 500_000, mbit: float = 1000.0, repeats: int = 100) -> Iterator[dict[str, Any]]:
    warnings.filterwarnings("ignore", "When period is 1")  # it is what one averaging takes, not how to train
    for operator in OPERATORS.values():  # compile once, before the fork
        TwoShot(operator, operator, Key(0), rank=0, m=1, d=8).encode(torch.randn(8), 0)
    yield from on_network(partial(measured, d, repeats), processes, at_rate(mbit), mbit_per_s=mbit, d=d)
