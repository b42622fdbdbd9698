"""Gathering and two shots against the plain all-reduce, on a shaped network and with many simulated workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bounds.runtime import Constant, RuntimeModel
from operators import Feedback, Key, Operator
from operators.exchange import Exchange, mean_of_ranks

from ...distributed.collectives import barrier, gather_arrays
from ...distributed.launch import RankContext, run_ranks
from ...local_sgd.periodic_averaging import PeriodicAveraging
from ...measurement.spec import TrainingRun
from ...measurement.training import run_training
from ...network import Network, Shape
from ...records.storage import Record
from ...verdicts.verdict import Comparison
from ...workloads import SmallNetwork
from ..study import Figure, Study
from ..unit import read_unit
from .analysis import rows
from .figures import figures
from .problems import (
    CODECS,
    DENSE,
    EXACT,
    EXCHANGES,
    KINDS,
    TRAINED,
    Networked,
    Simulated,
    Train,
    expected_error,
    vectors,
)

HANG_TIMEOUT_S = 120.0
SHAPE = Shape(rate_bit_per_s=1e8, delay_s=2e-4)
WARM_UP = 2
GATHER_HEADER_BYTES, SHARD_HEADER_BYTES, POSITION_BYTES = 8, 32, 4


class Vector(torch.nn.Module):
    """A model of d parameters."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.zeros(d))


@dataclass(frozen=True)
class AllReduceStudy(Study):
    """Means of Gaussian vectors, d coordinates, and the digits trained with gradients that travel in two shots."""

    sizes: tuple[int, ...] = (2, 4, 8)
    crowds: tuple[int, ...] = (16, 64, 256)
    shape: Shape = SHAPE
    d: int = 65_536
    rounds: int = 24
    repeats: tuple[int, ...] = (8, 6, 2)  # of each crowd
    workers: int = 8
    steps: int = 400
    seeds: tuple[int, ...] = (0, 1, 2)

    name = "all-reduce"
    description = "gather, two shots and plain all-reduce: bytes, error, seconds at m = 2 to 256; the digits with each"
    minutes = 17
    processes = 8
    measures_seconds = True

    def units(self) -> Sequence[str]:
        """Return network:M, train:METHOD:SEED, simulated:CODEC:M."""
        return [
            *(str(Networked(m)) for m in self.sizes),
            *(str(Train(method, seed)) for seed in self.seeds for method in TRAINED),
            *(str(Simulated(codec, m)) for m in self.crowds for codec in CODECS),
        ]

    def measure(self, unit: str) -> Record:
        """Exchange between real processes, train them, or exchange between simulated workers."""
        match read_unit(unit, KINDS):
            case Networked(m):
                return self._networked(m)
            case Train(method, seed):
                return self._trained(method, seed)
            case Simulated(codec, m):
                return {"m": m, "methods": [self._simulated(codec, exchange, m) for exchange in EXCHANGES]}

    # -- real processes ----------------------------------------------------------------------------------
    def _networked(self, m: int) -> Record:
        """Return all methods' records; they take turns, round by round."""
        for operator in CODECS.values():  # compile before the processes fork
            mean_of_ranks([torch.ones(64)], operator, key=Key(0))

        def work(place: RankContext, emit: Callable[[Any], None]) -> None:
            measured = self._in_turns(m)
            if place.rank == 0:
                emit(measured)

        with Network.of(self.shape, m) as network:
            (measured,) = run_ranks(work, processes=m, hang_timeout_s=HANG_TIMEOUT_S, network=network)
            return {"m": m, "method": network.description, "methods": measured}

    def _in_turns(self, m: int) -> list[Record]:
        methods: list[tuple[str, Exchange]] = [(DENSE, "gather")]
        methods += [(codec, exchange) for codec in CODECS for exchange in EXCHANGES]  # type: ignore[misc]
        averagings = [self._averaging(codec, exchange) for codec, exchange in methods]
        measured: list[Record] = [
            {"codec": codec, "exchange": exchange, "seconds": [], "nmse": [], "over_law": []}
            for codec, exchange in methods
        ]
        for step in range(-WARM_UP, self.rounds):
            x = vectors(self.seed, step + WARM_UP, m, self.d)
            for averaging, record in zip(averagings, measured, strict=True):
                seconds, movement = _timed(averaging, x)
                if step >= 0:
                    record["seconds"].append(seconds)
                    _add_error(record, movement, x)
        for averaging, record in zip(averagings, measured, strict=True):
            transport = averaging.transport
            sent = gather_arrays(torch.tensor([transport.payload_bytes]))
            record["payload_bytes"] = sum(int(count) for count in sent)
            record["predicted_bytes"] = transport.predicted_bytes
            record["exchanges"] = self.rounds + WARM_UP
        return measured

    def _averaging(self, codec: str, exchange: Exchange) -> PeriodicAveraging:
        operator = CODECS.get(codec)
        return PeriodicAveraging(
            Vector(self.d), operator=operator, exchange=exchange, key=Key(self.seed).fold_in(2), errors=False
        )

    # -- training ----------------------------------------------------------------------------------------
    def _trained(self, method: str, seed: int) -> Record:
        """Return final loss and accuracy, and the bits that a rank has sent a coordinate and step, headers included."""
        operator, second = TRAINED[method]
        run = TrainingRun(
            SmallNetwork(),
            schedule=1,
            step=None,
            seed=seed,
            steps=self.steps,
            points=2,
            operator=operator,
            second=second,
            exchange="gather" if method == EXACT else "two_shot",
            runtime=RuntimeModel(step=Constant(1.0), m=self.workers),
        )
        (record,) = run_training([run], m=self.workers, shape=None, scheduling="normal", hang_timeout_s=600.0)
        model, m = SmallNetwork().model(), self.workers
        d = sum(p.numel() for p in model.parameters())
        headers = 8 * (m - 1) * (SHARD_HEADER_BYTES + GATHER_HEADER_BYTES + POSITION_BYTES) / d
        sent = (1 - 1 / m) * record["bits"][-1] / (m * self.steps * d) + headers
        return {
            "loss": record["losses"][-1],
            "accuracy": record["accuracies"][-1],
            "sent_bits": 64 * (1 - 1 / m) if method == EXACT else sent,
            "dense_bits": 64 * (1 - 1 / m),
        }

    # -- simulated workers -------------------------------------------------------------------------------
    def _simulated(self, codec: str, exchange: str, m: int) -> Record:
        operator, bits = CODECS[codec], []
        record: Record = {"codec": codec, "exchange": exchange, "nmse": [], "over_law": []}
        for step in range(dict(zip(self.crowds, self.repeats, strict=True))[m]):
            x = vectors(self.seed, step, m, self.d)
            key = Key(self.seed, step=step).fold_in(2)
            result = mean_of_ranks(x, operator, exchange=exchange, key=key)  # type: ignore[arg-type]
            bits.append(sum(result.sent_bits) / (m * self.d))
            _add_error(record, result.mean, x)
        return {**record, "sent_bits": sum(bits) / len(bits)}

    # -- verdicts ----------------------------------------------------------------------------------------
    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return bytes exactly, errors against their laws, and losses against exact gradients."""
        return rows(records, d=self.d, level=self.false_alarm)

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return error, wire and seconds against the number of workers, and losses."""
        return figures(records, d=self.d)


def _timed(averaging: PeriodicAveraging, x: Sequence[torch.Tensor]) -> tuple[float, torch.Tensor]:
    """Move this rank's model by its vector and average; returns seconds, and the mean movement."""
    (parameter,) = averaging.parameters
    before = parameter.detach().clone()
    parameter.data.add_(x[averaging.transport.rank])
    barrier()
    began = time.perf_counter()
    averaging.average()
    return time.perf_counter() - began, parameter.detach() - before


def _add_error(record: Record, mean: torch.Tensor, x: Sequence[torch.Tensor]) -> None:
    """Put down the error over the mean's energy, and over the law's."""
    exact = torch.stack(list(x)).double().mean(dim=0)
    error = float((mean.double() - exact).square().sum())
    operator: Operator | Feedback | None = CODECS.get(record["codec"])
    law = None if operator is None else expected_error(operator, record["exchange"], x)
    record["nmse"].append(error / float(exact.square().sum()))
    if law is not None:
        record["over_law"].append(error / law)


PRESET = AllReduceStudy()
