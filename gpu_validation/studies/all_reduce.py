"""Gathering and two shots against the plain all-reduce, on a shaped network and with many simulated workers."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bounds.claims import Unbiased
from bounds.runtime import Constant, RuntimeModel
from bounds.theorems import gather_error, two_shot_error
from operators import EDEN, QSGD, TCDQ, ErrorFeedback, Feedback, Key, Operator, ScaledSign, TopK
from operators.exchange import Exchange, mean_of_ranks
from operators.exchange.choice import shards
from operators.feedback.memoryless import BiasWarning
from operators.random import normal

from ..averaging.exchange.parts import Gather, TwoShot, exchange_named
from ..averaging.periodic_averaging import PeriodicAveraging
from ..judging.comparisons import exact_row, interval_row, unjudged_row
from ..judging.intervals import student_interval
from ..judging.plotting import LINES, PALETTE, canvas, colour, plain_ticks, ticks_at
from ..judging.verdict import Comparison
from ..network import Network, Shape
from ..processes.collectives import barrier, gather_arrays
from ..processes.launch import RankContext, run_ranks
from ..records.compression import Sample
from ..workloads import SmallNetwork
from .runs.spec import TrainingRun
from .runs.training import run_training
from .study import Figure, Record, Study

# -- exchanges -------------------------------------------------------------------------------------------------------

DENSE = "float32"
EXCHANGES = ("gather", "two_shot")
CODECS: dict[str, Operator | Feedback] = {
    "tcdq": TCDQ(omega=0.1),
    "qsgd": QSGD(levels=16, bucket=512),
    "eden": EDEN(bits_per_coordinate=4),
    "topk": ErrorFeedback(TopK(fraction=0.01)),
    "sign": ErrorFeedback(ScaledSign()),
}
FORGETFUL = "sign, owner forgets"
EXACT = "exact"
Method = tuple[Operator | Feedback | None, Operator | Feedback | None]  # of both stages
TRAINED: dict[str, Method] = {
    EXACT: (None, None),
    "tcdq": (TCDQ(omega=0.02), None),
    "qsgd": (QSGD(levels=16, bucket=512), None),
    "eden": (EDEN(bits_per_coordinate=3), None),
    "topk": (ErrorFeedback(TopK(fraction=0.05)), None),
    "sign": (ErrorFeedback(ScaledSign()), None),
    FORGETFUL: (ErrorFeedback(ScaledSign()), ScaledSign()),
}


def vectors(seed: int, step: int, m: int, d: int) -> list[torch.Tensor]:
    """Return independent Gaussian vectors of all ranks, float32.

    Parameters
    ----------
    seed : int
        Of the run.
    step : int
        Number of the exchange.
    m : int
        Number of ranks.
    d : int
        Number of coordinates.
    """
    keys = [Key(seed, step=step, rank=rank).fold_in(1) for rank in range(m)]
    return [torch.from_numpy(normal(key, d).astype(np.float32)) for key in keys]


def expected_error(operator: Operator | Feedback, exchange: str, x: Sequence[torch.Tensor]) -> float | None:
    """Return what the law gives for the squared error of the mean, by the claims at the lengths that are encoded.

    Parameters
    ----------
    operator : Operator or Feedback
        Of both stages.
    exchange : str
        "gather" or "two_shot".
    x : sequence of tensor, shape (d,)
        The vectors of all ranks.

    Returns
    -------
    float or None
        None for an operator without a claim of no bias, and for one with memory.
    """
    if isinstance(operator, Feedback):
        return None
    rows = torch.stack(list(x)).double()
    m, d = rows.shape
    total = 0.0
    for shard in [slice(0, d)] if exchange == "gather" else shards(d, m):
        part = rows[:, shard]
        claim = operator.claim(part.shape[1])
        if not isinstance(claim, Unbiased):
            return None
        square, of_mean = float(part.square().sum()) / m, float(part.mean(dim=0).square().sum())
        if exchange == "gather":
            total += float(gather_error(mean_square=square, m=m, omega=claim.omega))
        else:
            omegas = {"omega1": claim.omega, "omega2": claim.omega}
            total += float(two_shot_error(mean_square=square, square_of_mean=of_mean, m=m, **omegas))
    return total


def is_tight(operator: Operator | Feedback, d: int) -> bool:
    """Return whether the law is an equality.

    Parameters
    ----------
    operator : Operator or Feedback
        Of both stages.
    d : int
        Number of coordinates that are encoded.
    """
    claim = operator.claim(d) if isinstance(operator, Operator) else None
    return isinstance(claim, Unbiased) and claim.tight


# -- rows ------------------------------------------------------------------------------------------------------------

NEAR, AWAY, SHARE = 0.005, 0.05, 1 / 8  # of the exact loss, of the exact loss, of the dense bytes
ROUNDING = 1e-12  # NMSE of the exact mean in binary32
MARGIN = 0.05  # of an equality
JUDGED = ("tcdq", "sign")


def _exchange_rows(record: Record, m: int, d: int, level: float) -> Iterator[Comparison]:
    codec, exchange = record["codec"], record["exchange"]
    real = "seconds" in record
    name = codec if codec == DENSE else f"{codec}, {exchange}"
    about: dict[str, Any] = {"operator": name, "workload": f"{'real' if real else 'simulated'}, m = {m}"}
    if real:
        sent, predicted = record["payload_bytes"], record["predicted_bytes"]
        theorem = "lengths of the messages alone"
        quantity = "payload bytes of all exchanges"
        yield exact_row(sent, predicted, sent == predicted, quantity=quantity, theorem=theorem, unit="byte", **about)
    if codec == DENSE:
        worst = max(record["nmse"])
        yield exact_row(worst, ROUNDING, worst <= ROUNDING, quantity="largest error of the exact mean", **about)
        return
    operator = CODECS[codec]
    about["quantity"] = "error of the mean over its law"
    if not record["over_law"]:
        reason = "error of one exchange with a memory at both ends" if codec in ("topk", "sign") else "no claim at d"
        about["quantity"] = "error of the mean over its energy"
        yield unjudged_row(record["nmse"], f"no law: {reason}", **about)
    else:
        yield _against_law(record["over_law"], exchange, is_tight(operator, d), level, about)


def _against_law(
    values: Sequence[float], exchange: str, tight: bool, level: float, about: dict[str, Any]
) -> Comparison:
    """Judge by Student's interval: a draw is a sum over tens of thousands of coordinates."""
    sample = Sample.of(values)
    interval = student_interval(sample, level)
    theorem = "two_shot_exact_error" if tight and exchange == "two_shot" else f"{exchange}_error"
    about |= {"theorem": theorem, "reason": "Student's interval of sums over all coordinates", "n": sample.n}
    return interval_row(sample.mean, interval, 1.0, "tight" if tight else "upper", margin=MARGIN, **about)


def _training_rows(trained: Sequence[tuple[Any, Record]]) -> Iterator[Comparison]:
    """Return every method's worst seed against the exact run of that seed."""
    for method, runs in _over_exact(trained).items():
        away = [ratio - 1 for ratio, _ in runs]
        about: dict[str, Any] = {"operator": method, "workload": f"digits, real, seeds {len(runs)}"}
        quantity = "final loss over that of exact gradients, less 1"
        if method == FORGETFUL:
            least = min(away)
            quantity = f"least {quantity}: measurably away"
            yield exact_row(least, AWAY, least >= AWAY, quantity=quantity, **about)
        elif method in JUDGED:
            worst = max(map(abs, away))
            yield exact_row(worst, NEAR, worst <= NEAR, quantity=f"largest {quantity}, absolute", **about)
            share = max(record["sent_bits"] / record["dense_bits"] for _, record in runs)
            yield exact_row(share, SHARE, share <= SHARE, quantity="bytes over those of float32", **about)
        else:
            yield unjudged_row(away, "no theorem with known constants covers the network", quantity=quantity, **about)


def _over_exact(trained: Sequence[tuple[Any, Record]]) -> dict[str, list[tuple[float, Record]]]:
    """Return (final loss over that of exact gradients, record) of every seed, by method."""
    exact = {unit.seed: record["loss"] for unit, record in trained if unit.method == EXACT}
    runs: dict[str, list[tuple[float, Record]]] = {}
    for unit, record in trained:
        if unit.method != EXACT and unit.seed in exact:
            runs.setdefault(unit.method, []).append((record["loss"] / exact[unit.seed], record))
    return runs


# -- drawings --------------------------------------------------------------------------------------------------------


def wire_bits(record: Record, m: int, d: int) -> float:
    """Return the bits that a rank sends a coordinate, headers included where they were sent.

    Parameters
    ----------
    record : Record
        Of one method.
    m : int
        Number of workers.
    d : int
        Number of coordinates.
    """
    if "sent_bits" in record:
        return float(record["sent_bits"])
    return float(8 * record["payload_bytes"] / (record["exchanges"] * m * d))


def _draw(exchanged: Sequence[tuple[int, Record]], d: int) -> Any:
    figure, axes = canvas(2, 3, height=3.2)
    for row, (exchange, words) in zip(axes, (("gather", "gathered"), ("two_shot", "two shots")), strict=True):
        error, wire, seconds = row
        for codec in (*CODECS, DENSE):
            ways = ("gather",) if codec == DENSE else (exchange,)  # the exact sum is shown in both rows
            chosen = [(m, r) for m, r in exchanged if r["codec"] == codec and r["exchange"] in ways]
            chosen.sort(key=lambda pair: pair[0])
            timed = [(m, r) for m, r in chosen if "seconds" in r]
            style: dict[str, Any] = {"color": colour(codec), "marker": "o", "markersize": 3, "label": codec}
            if codec != DENSE:
                error.plot([m for m, _ in chosen], [np.mean(r["nmse"]) for _, r in chosen], **style)
            wire.plot([m for m, _ in chosen], [wire_bits(r, m, d) for m, r in chosen], **style)
            seconds.plot([m for m, _ in timed], [np.median(r["seconds"]) for _, r in timed], **style)
        for ax, label in ((error, "error over energy"), (wire, "bits sent a coordinate"), (seconds, "seconds")):
            ax.set(title=words, xlabel="workers", ylabel=label, xscale="log", yscale="log")
            ticks_at(ax, sorted({m for m, r in exchanged if ax is not seconds or "seconds" in r}))
        plain_ticks(wire.yaxis)
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=len(CODECS) + 1)
    return figure


def _draw_losses(trained: Sequence[tuple[Any, Record]]) -> Any:
    figure, ((ax,),) = canvas(1, 1, height=3.6)
    of_method = _over_exact(trained)
    for i, runs in enumerate(of_method.values()):
        ax.plot([i] * len(runs), [ratio for ratio, _ in runs], "o", color=PALETTE[i % len(PALETTE)], markersize=4)
    ax.axhline(1.0, linestyle=LINES[1], color="grey", linewidth=1)
    ax.set_xticks(range(len(of_method)), list(of_method), rotation=30, ha="right")
    ax.set(ylabel="final loss over the exact one")
    return figure


# -- the study -------------------------------------------------------------------------------------------------------

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

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield the numbers of real processes, the trainings, and the codecs between simulated workers."""
        yield from (("network", m) for m in self.sizes)
        yield from (("train", method, seed) for seed in self.seeds for method in TRAINED)
        yield from (("simulated", codec, m) for m in self.crowds for codec in CODECS)

    # -- real processes ----------------------------------------------------------------------------------
    def measure_network(self, m: int) -> Record:
        """Exchange by all methods, in turns, between m real processes on the shaped network."""
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
        way = exchange_named(exchange, CODECS.get(codec), errors=False)
        with warnings.catch_warnings(action="ignore", category=BiasWarning):
            return PeriodicAveraging(Vector(self.d), exchange=way, key=Key(self.seed).fold_in(2))

    # -- training ----------------------------------------------------------------------------------------
    def measure_train(self, method: str, seed: int) -> Record:
        """Return final loss and accuracy, and the bits that a rank has sent a coordinate and step, headers included."""
        operator, second = TRAINED[method]
        run = TrainingRun(
            SmallNetwork(),
            schedule=1,
            step=None,
            seed=seed,
            steps=self.steps,
            points=2,
            exchange=Gather() if operator is None else TwoShot(operator, second),
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
    def measure_simulated(self, codec: str, m: int) -> Record:
        """Exchange by one codec between m workers of one process."""
        return {"m": m, "methods": [self._simulated(codec, exchange, m) for exchange in EXCHANGES]}

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
        exchanged = self._exchanges(records)
        share = self.false_alarm / max(1, len(exchanged))
        judged = [row for m, method in exchanged for row in _exchange_rows(method, m, self.d, share)]
        return [*judged, *_training_rows(self.table(records, "train"))]

    def _exchanges(self, records: Sequence[Record]) -> list[tuple[int, Record]]:
        """Return the number of workers, and the record of one codec by one exchange, of all units that have them."""
        units = [*self.table(records, "network"), *self.table(records, "simulated")]
        return [(unit.m, method) for unit, record in units for method in record["methods"]]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return error, wire and seconds against the number of workers, and losses."""
        exchanged, trained = self._exchanges(records), self.table(records, "train")
        exchanges_words = (
            f"Measured, independent Gaussian vectors of d = {self.d:,} coordinates; above gathered, below in two "
            "shots, the exact sum in both. Error of the mean over its energy, and bits that a rank sends, in real "
            "processes up to m = 8, then in simulated workers, whose feedback has no memory yet and whose bits are "
            "without headers; median seconds of an averaging on the shaped network, where m ranks share this "
            "machine's cores."
        )
        losses_words = "Measured: final loss of the digits over that of exact gradients, one mark a seed."
        sent = {(m, r["codec"], r["exchange"]): wire_bits(r, m, self.d) for m, r in exchanged}
        m = max((m for m, codec, _ in sent if codec == DENSE), default=0)
        fewer = sent[m, DENSE, "gather"] / sent[m, "tcdq", "two_shot"] if m else math.nan
        finding = f"Between {m} processes two shots of TCDQ send {fewer:.0f} times fewer bits than float32"
        drawn = [Figure(lambda: _draw(exchanged, self.d), exchanges_words, finding=finding)] if exchanged else []
        return [*drawn, Figure(lambda: _draw_losses(trained), losses_words)] if trained else drawn


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
