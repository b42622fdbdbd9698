"""Seconds of an averaging as a pilot predicts them against seconds of real ranks on shaped networks, as JSON lines.

Run ``python docs/measure.py benchmarks/plan_on_networks.py`` on a quiet machine (root, or user namespaces, for the
networks; some four minutes).

On every network the ranks first make a pilot of the training that they then run, with the operators that are compared:
steps, links and codecs come from it and from nothing else.  Then they train: a local step and an averaging, by every
operator and exchange in turns, each behind a barrier, so that noise hits all alike.

way : what was predicted ("predicted_s", "coding_s" and "links_s" of it) and measured (the slowest rank's seconds, the
median "measured_s" and all "seconds"), for an operator and an exchange.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from ranks import Action, at_rate, in_turns, network, on_network
from torch.nn.functional import cross_entropy

from gpu_validation.averaging.exchange.parts import exchange_named
from gpu_validation.averaging.periodic_averaging import PeriodicAveraging
from gpu_validation.piloting.pilot import pilot
from gpu_validation.processes.launch import RankContext
from gpu_validation.processes.linux import Scheduling
from operators import ErrorFeedback, Key, Operator, compressor, specification
from ratedist.pilots.pilot import Pilot
from ratedist.plans.run import Rhythm

WARM_UP = 3
INPUTS, OUTPUTS, BATCH = 64, 10, 16
MOST_BYTES, MOST_S = 1 << 24, 1.0  # of the longest vector that times a link: what it carries in a second
OPERATORS = ("qsgd:16,bucket=512", "tcdq:omega=1", "scaled_sign", "topk:0.01")
WAYS = (
    ("", "sum"),
    *((operator, "gather") for operator in OPERATORS),
    *((operator, "two_shot") for operator in OPERATORS[:2]),
)


def loss(model: torch.nn.Module, batch: Any) -> torch.Tensor:
    return cross_entropy(model(batch[0]), batch[1])


def batches(rank: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Random classes around random means."""
    means = torch.randn(OUTPUTS, INPUTS, generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(1 + rank)
    while True:
        classes = torch.randint(OUTPUTS, (BATCH,), generator=draw)
        yield means[classes] + torch.randn(BATCH, INPUTS, generator=draw), classes


def of_pilot(rank: int, hidden: int, mbit: float) -> Pilot:
    """Measure the training and the network."""
    most_bytes = min(MOST_BYTES, int(MOST_S * 1e6 * mbit / 8))
    model = network(INPUTS, hidden, OUTPUTS)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    given = {"moments": 8, "taus": (1, 2), "operators": OPERATORS, "most_bytes": most_bytes}
    return pilot(model, optimizer, loss, batches(rank), **given)  # type: ignore[arg-type]


def trained(operator: str, exchange: str, rank: int, hidden: int) -> Action:
    """Return one local step with its averaging."""
    model, chosen = network(INPUTS, hidden, OUTPUTS), compressor(operator) if operator else None
    fed = ErrorFeedback(chosen) if isinstance(chosen, Operator) and operator in OPERATORS[2:] else chosen
    way: Any = "gather" if exchange == "sum" else exchange  # without an operator whole models are summed
    averaging = PeriodicAveraging(model, exchange=exchange_named(way, fed, errors=False))  # type: ignore[arg-type]
    optimizer, data = torch.optim.SGD(model.parameters(), lr=0.01), batches(rank)

    def step() -> None:
        optimizer.zero_grad()
        loss(model, next(data)).backward()
        optimizer.step()
        averaging.average()

    return step


def slowest(steps: list[Action], repeats: int) -> np.ndarray:
    """Slowest rank's seconds of every step, shape (steps, repeats)."""
    seconds = torch.from_numpy(in_turns(steps, repeats, WARM_UP))
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.numpy()


def predicted(measured: Pilot, operator: str, exchange: str, processes: int) -> dict[str, float]:
    """Return seconds of a step and an averaging, and what of them codes and what travels."""
    predictor = measured.predictor(measured.cluster(workers=processes))
    sent = measured.sent(operator) if operator else None
    run = predictor.forecast(sent, "gather" if exchange == "sum" else exchange, Rhythm()).run  # type: ignore[arg-type]
    links_s = run.way.communicate_s(run.cluster)
    return {"predicted_s": run.seconds, "coding_s": run.coding_s, "links_s": links_s, "compute_s": run.compute_s}


def records_of(measured: Pilot, seconds: np.ndarray, processes: int) -> Iterator[dict[str, Any]]:
    """Return the pilot's numbers, and then a record a way."""
    link = measured.link()
    yield {
        "record": "pilot",
        "d": measured.d,
        "step_s": measured.step().value,
        "link": {"bandwidth_bit_per_s": link.bandwidth_bit_per_s, "latency_s": link.latency_s},
        "bits": {trial.operator: sum(trial.bits) / len(trial.bits) for trial in measured.operators},
        "codecs": {name: codec.to_dict() for name, codec in measured.codecs().items()},
    }
    for (operator, exchange), row in zip(WAYS, seconds, strict=True):
        row_s = [round(float(second), 6) for second in row]
        yield {
            "record": "way",
            "operator": operator or "binary32",
            "specification": specification(compressor(operator)) if operator else "",
            "exchange": exchange,
            "measured_s": float(np.median(row)),
            **predicted(measured, operator, exchange, processes),
            "seconds": row_s,
        }


def compared(hidden: int, mbit: float, repeats: int, place: RankContext) -> Iterator[dict[str, Any]]:
    """Make a pilot on this network, and train in all ways."""
    measured = of_pilot(place.rank, hidden, mbit)
    steps = [trained(operator, exchange, place.rank, hidden) for operator, exchange in WAYS]
    yield from records_of(measured, slowest(steps, repeats), place.size)


def main(
    processes: int = 4,
    hidden: int = 384,
    mbit: tuple[float, ...] = (10.0, 200.0, 2000.0),
    repeats: int = 30,
    scheduling: Scheduling = "normal",
) -> Iterator[dict[str, Any]]:
    warnings.filterwarnings("ignore", "When period is 1")  # it is what one averaging takes, not how to train
    for name in OPERATORS:  # compile once, before the fork
        chosen = compressor(name)
        chosen(torch.randn(4096), key=Key(0))  # type: ignore[operator]
    for rate in mbit:
        work = partial(compared, hidden, rate, repeats)
        yield from on_network(work, processes, at_rate(rate), scheduling, mbit_per_s=rate)
