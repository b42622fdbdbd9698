"""One unit of work inside a rank: a probe of an operator, or a training run of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache

import numpy as np
import torch

from operators import Key, Operator, specification
from operators.operator import canonical
from operators.random import normal

from .averaging import PeriodicAveraging, Round
from .ensemble import GRADIENT, MESSAGE
from .envelope import averaging_messages, fence_messages
from .exchange import Exchange, fence, gather_arrays
from .launch import GLOO, Place
from .network.streams import StreamCount
from .norms import RealRun, evaluated, model_at, norms_of_all, norms_of_real
from .presets.preset import Cells, Preset
from .records import Compression, Curve, Declared, Probe, Sample, Timing, Traffic, Training
from .tensors import flat, floating_tensors, load
from .theory import covered
from .timing import PaddedSteps
from .workloads import Constants, Workload

SOURCE = 2  # fold of a run's key, beside those of the ensemble
CALIBRATION_ROUNDS = 16


def probe(place: Place, preset: Preset, operator: Operator, source: str) -> Probe | None:
    """Encode and decode synthetic vectors in every rank; rank 0 returns the record."""
    d = preset.probe_d
    rows = np.empty((preset.probe_messages, 3))
    for i in range(preset.probe_messages):
        key = Key(preset.seed, step=i, rank=place.rank)
        x = canonical(normal(key.fold(SOURCE), d) if source == "gaussian" else np.ones(d))
        message = operator.encode(x, key=key.fold(MESSAGE))
        error = operator.decode(message, d=d, key=key.fold(MESSAGE)).numpy().astype(np.float64) - x
        rows[i] = message.bits, error @ error, np.square(x, dtype=np.float64).sum()
    everyone = np.concatenate([part.numpy() for part in gather_arrays(torch.from_numpy(rows))])
    if place.rank:
        return None
    return Probe(specification(operator), _compression(operator, source, d, everyone))


def _compression(operator: Operator, source: str, d: int, rows: np.ndarray) -> Compression:
    """rows : shape (messages, 3) of bits, squared error, squared norm."""
    bits, error2, norm2 = rows.T
    ratio = np.divide(error2, norm2, out=np.zeros_like(error2), where=norm2 > 0)
    return Compression(
        source=source,
        d=d,
        declared=Declared.of(operator.claim(d), operator.bits(d)),
        bits=Sample.of(bits),
        ratio=Sample.of(ratio),
        error_per_coordinate=Sample.of(error2 / d),
    )


@dataclass
class _Run:
    """What one rank collects during one seed."""

    rounds: list[Round] = field(default_factory=list)
    trace: list[torch.Tensor] = field(default_factory=list)
    anchors: list[torch.Tensor] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    step_s: list[float] = field(default_factory=list)
    stream_bytes: int | None = None


def train(place: Place, cells: Cells, operator: Operator, tau: int) -> Training | None:
    """Run one cell in all ranks; rank 0 returns the record.

    The traffic covers the averagings of all seeds; anything gathered for the record itself is outside it.
    """
    workload, exchange = cells.workload, Exchange(place.device)
    workload.require_workers(place.size)
    delays = _calibrate(place, cells, operator, exchange)  # first, so that it also warms up
    exchange.payload_bytes = exchange.predicted_bytes = 0
    fence()
    counter = _counter(place)
    runs = [_one_seed(place, cells, operator, tau, exchange, seed) for seed in cells.seeds]
    fence()
    after = _counter(place)
    payload = int(sum(int(part) for part in gather_arrays(torch.tensor([exchange.payload_bytes]))))
    interface = interface_bytes(place, counter, after)
    streams = _everyone([run.stream_bytes for run in runs])

    d = sum(p.numel() for p in workload.model().parameters())
    own = np.array([[r.bits[place.rank], r.error2, r.norm2] for run in runs for r in run.rounds])
    rows = np.concatenate([part.numpy() for part in gather_arrays(torch.from_numpy(own))])
    steps_s = torch.cat(gather_arrays(torch.tensor(runs[0].step_s, dtype=torch.float64)))
    _require_equal_anchors(runs)
    compression = _compression(operator, f"round deltas of {workload.name}", d, rows)
    virtual = bool(cells.virtual) and covered(compression.declared)
    kept = [RealRun(torch.stack(run.trace), run.anchors[-1]) for run in runs]
    if virtual:
        norms = norms_of_all(place, cells, operator, tau, kept)
    else:
        norms = norms_of_real(workload, kept, root=place.rank == 0)
    if place.rank:
        return None

    first = runs[0]
    return Training(
        workload=workload.name,
        operator=specification(operator),
        tau=tau,
        processes=place.size,
        steps=cells.steps,
        seeds=(*cells.seeds, *(cells.virtual_seeds if virtual else ())),
        parameters=_parameters(workload),
        exact_constants=_constants(workload).exact,
        inexact_reason=_constants(workload).reason,
        **vars(norms),
        accuracy=tuple(workload.accuracy(model_at(workload, run.anchors[-1])) for run in runs),
        data=asdict(workload.description()),
        compression=compression,
        virtual=cells.virtual if virtual else 0,
        problem=asdict(workload) if workload.description().synthetic else {},  # type: ignore[call-overload]
        traffic=Traffic(
            codec_bits=sum(sum(r.bits) for run in runs for r in run.rounds),
            payload_bytes=payload,
            predicted_payload_bytes=exchange.predicted_bytes,
            interface_bytes=interface,
            interface_method=place.port.method,
            stream_bytes=streams,
            messages=sum(
                len(run.rounds) * averaging_messages(place.size) + 2 * fence_messages(place.size) for run in runs
            ),
        ),
        timing=Timing(
            round_s=tuple(np.diff([0.0, *first.seconds]).tolist()),
            step_s=tuple(steps_s.tolist()),
            delay_s=Sample.of(delays),
            wanted_step_s=cells.step_s,
        ),
        curve=Curve(
            seconds=tuple(first.seconds),
            codec_bits=tuple(int(b) for b in np.cumsum([sum(r.bits) for r in first.rounds])),
            loss=tuple(evaluated(workload, anchor)[0] for anchor in first.anchors),
        ),
    )


def _counter(place: Place) -> int | None:
    """Bytes that the interface has sent, where the backend's traffic crosses that interface."""
    count = place.port.count() if place.backend == GLOO else None
    return None if count is None else count.sent_bytes


def _everyone(own: Sequence[int | None]) -> int | None:
    """The sum of what all ranks have counted; None if one of them could not."""
    total = -1 if None in own else sum(number for number in own if number is not None)
    parts = [int(part) for part in gather_arrays(torch.tensor([total]))]
    return None if min(parts) < 0 else sum(parts)


def sent_between(before: StreamCount | None, after: StreamCount | None) -> StreamCount | None:
    """What this rank's connections carried in between."""
    return None if before is None or after is None else after - before


def interface_bytes(place: Place, before: int | None, after: int | None) -> int | None:
    """What all ranks together have sent in between: the sum of their counters, or the one that they share."""
    own = -1 if before is None or after is None else after - before
    parts = [int(part) for part in gather_arrays(torch.tensor([own]))]
    if min(parts) < 0:
        return None
    return own if place.port.shared else sum(parts)


def _one_seed(place: Place, cells: Cells, operator: Operator, tau: int, exchange: Exchange, seed: int) -> _Run:
    workload, timed = cells.workload, seed == cells.seeds[0]
    model = workload.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=workload.eta)
    key = Key(seed)
    averaging = PeriodicAveraging(
        model, optimizer, schedule=tau, operator=operator, exchange=exchange, key=key.fold(MESSAGE)
    )
    padding, run = PaddedSteps(cells.step_s if timed else 0.0), _Run()
    fence()
    before = place.streams.count() if place.backend == GLOO else None
    began = time.perf_counter()
    for k in range(cells.steps):
        run.trace.append(flat(floating_tensors(model)))
        padding.begin()
        optimizer.zero_grad()
        loss = workload.loss(model, key=Key(seed, step=k, rank=place.rank).fold(GRADIENT))
        loss.backward()
        optimizer.step()
        padding.end()
        if timed and (k + 1) % tau == 0:
            time.sleep(cells.delay_s)
        account = averaging.step()
        if account is not None:
            run.rounds.append(account)
            run.anchors.append(flat(floating_tensors(model)))
            run.seconds.append(time.perf_counter() - began)
    fence()
    sent = sent_between(before, place.streams.count())
    run.stream_bytes = None if sent is None else sent.sent_bytes
    run.step_s = padding.durations
    return run


def _calibrate(place: Place, cells: Cells, operator: Operator, exchange: Exchange) -> list[float]:
    """Seconds of single averagings of realistic deltas, each after a padded step and behind a fence."""
    model = cells.workload.model()
    averaging = PeriodicAveraging(model, operator=operator, exchange=exchange, key=Key(cells.seeds[0]))
    delays = []
    padding = PaddedSteps(cells.step_s)
    for i in range(CALIBRATION_ROUNDS + 1):
        padding.begin()
        cells.workload.loss(model, key=Key(i)).backward()
        start = flat(averaging.parameters)
        step = torch.from_numpy(normal(Key(i, rank=place.rank).fold(SOURCE), start.numel()))
        load(start + 0.01 * step.to(start), averaging.parameters)
        padding.end()  # as in the run: an averaging follows a sleep
        fence()
        began = time.perf_counter()
        time.sleep(cells.delay_s)
        averaging.average()
        delays.append(time.perf_counter() - began)
    return delays[1:]  # the first one warms up


@lru_cache
def _constants(workload: Workload) -> Constants:
    return workload.constants()


def _parameters(workload: Workload) -> dict[str, float]:
    """Numeric fields of the workload, and its constants under their names in the notation table."""
    constants = _constants(workload)
    numbers = {k: float(v) for k, v in asdict(workload).items() if isinstance(v, int | float)}  # type: ignore[call-overload]
    return {**numbers, "eta": workload.eta, "L": constants.L, "sigma2": constants.sigma2, "gap": constants.gap}


def _require_equal_anchors(runs: list[_Run]) -> None:
    """Every rank must hold the same averaged model, bit for bit."""
    own = torch.cat([anchor.double() for run in runs for anchor in run.anchors])
    for rank, other in enumerate(gather_arrays(own)):
        if not torch.equal(own, other):
            raise RuntimeError(f"this rank and rank {rank} hold different averaged models")
