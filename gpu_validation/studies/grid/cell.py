"""One unit of work inside a rank: a probe of an operator, or a training run of it and of simulated workers."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from operators import Key, Operator, specification
from operators.feedback.memoryless import BiasWarning
from operators.inputs import canonical
from operators.random import normal

from ...averaging.periodic_averaging import PeriodicAveraging, Round
from ...processes.collectives import ProcessTransport, barrier, gather_arrays
from ...processes.launch import GLOO, RankContext
from ...processes.position import at
from ...processes.tensors import flat, floating_tensors, load
from ...processes.vectors import averaging_messages, barrier_messages
from ...records.compression import Compression, Sample
from ...timing import PaddedSteps
from ...workloads import Workload
from ..runs.ensemble import Ensemble, Rows, run_seeds
from ..runs.local_steps import training_rounds
from ..runs.spec import MESSAGES, VECTORS, TrainingRun
from ..runs.training import interface_bytes, interface_counter, joined, sent_between, timed_synchronisations
from .planned import Planned, of_messages
from .records import Cells, Curve, Design, Probe, Timing, Traffic, Training
from .theory import covered


@dataclass(frozen=True)
class RealRun:
    """What one rank keeps of one seed.

    Parameters
    ----------
    points : tensor
        Its own model before every step, shape (steps, d).
    last : tensor
        The averaged model at the end, shape (d,).
    """

    points: torch.Tensor
    last: torch.Tensor


@dataclass(frozen=True)
class Norms:
    """One number a seed, real ones first; the fields are those of ``Training``."""

    gradient_norm2: tuple[float, ...]
    final_loss: tuple[float, ...]
    local_gradient_norm2: tuple[float, ...] = ()
    apart: float | None = None
    compared: int = 0


def norms_of_real(workload: Workload, runs: Sequence[RealRun], *, root: bool) -> Norms:
    """Return norms and losses of any model; every rank must call it, and only the root evaluates.

    Parameters
    ----------
    root : bool
        Whether this is it.
    """
    means = [torch.stack(gather_arrays(run.points.double())).mean(dim=0) for run in runs]
    if not root:
        return Norms((), ())
    squares = [[evaluated(workload, x)[1] for x in mean] for mean in means]
    return Norms(
        gradient_norm2=tuple(sum(steps) / len(steps) for steps in squares),
        final_loss=tuple(evaluated(workload, run.last)[0] for run in runs),
    )


def norms_of_all(place: RankContext, cells: Cells, operator: Operator, tau: int, runs: Sequence[RealRun]) -> Norms:
    """Return them where simulated workers repeat the run: each rank the real seeds, and a share of the others."""
    everyone = [torch.stack(gather_arrays(run.points), dim=1) for run in runs]
    real = Ensemble(torch.stack(everyone), torch.stack([run.last for run in runs]))
    local_seeds = cells.virtual_seeds[place.rank :: place.size]
    repeated = run_seeds(
        cells.workload, operator, tau=tau, steps=cells.steps, seeds=(*cells.seeds, *local_seeds), m=place.size
    )
    n = len(runs)
    difference = max(
        _largest_difference(real.points, repeated.points[:n]), _largest_difference(real.last, repeated.last[:n])
    )
    difference = max(float(other) for other in gather_arrays(torch.tensor(difference)))
    table = [_table(cells.workload, real)]
    share = -(-cells.virtual // place.size)
    local_table = torch.full((share, 3), math.nan, dtype=torch.float64)
    if local_seeds:
        local_table[: len(local_seeds)] = _table(cells.workload, Ensemble(repeated.points[n:], repeated.last[n:]))
    parts = gather_arrays(local_table)
    table += [parts[i % place.size][i // place.size][None] for i in range(cells.virtual)]
    gradients, local, losses = (tuple(column.tolist()) for column in torch.cat(table).T)
    return Norms(gradients, losses, local, difference, real.points.numel() + real.last.numel())


def _largest_difference(real: torch.Tensor, repeated: torch.Tensor) -> float:
    return 0.0 if torch.equal(real, repeated) else float((real - repeated).abs().nan_to_num(nan=math.inf).max())


def _table(workload: Workload, runs: Ensemble) -> torch.Tensor:
    """Return averages over the steps of ``|grad F|^2`` at the workers' mean and at the workers, and F at the end,
    float64.
    """
    rows, seeds, d = Rows(workload), len(runs.points), runs.points.shape[-1]
    _, at_mean = rows.evaluate(runs.points.mean(dim=2).reshape(-1, d))
    _, at_workers = rows.evaluate(runs.points.reshape(-1, d))
    last, _ = rows.evaluate(runs.last)
    averages = [at_mean.reshape(seeds, -1).mean(dim=1), at_workers.reshape(seeds, -1).mean(dim=1)]
    return torch.stack([*averages, last.double()], dim=1)


def evaluated(workload: Workload, x: torch.Tensor) -> tuple[float, float]:
    """Return (F, ``|grad F|^2``) at a vector of parameters and floating-point buffers."""
    return workload.evaluate(model_at(workload, x))


def model_at(workload: Workload, x: torch.Tensor) -> torch.nn.Module:
    """Return a model with these parameters and buffers."""
    model = workload.model()
    load(x, floating_tensors(model))
    return model


CALIBRATION_ROUNDS = 16


def probe(place: RankContext, design: Design, operator: Operator, source: str, seed: int) -> Probe | None:
    """Encode and decode synthetic vectors in every rank; rank 0 returns the record."""
    d = design.probe_d
    rows = np.empty((design.probe_messages, 3))
    for i in range(design.probe_messages):
        at(step=f"message {i + 1} of {design.probe_messages}", tensor=f"{source} vector of {d} numbers")
        key = Key(seed, step=i, rank=place.rank)
        x = canonical(normal(key.fold_in(VECTORS), d) if source == "gaussian" else np.ones(d))
        message = operator.encode(x, key=key.fold_in(MESSAGES))
        error = operator.decode(message, d=d, key=key.fold_in(MESSAGES)).numpy().astype(np.float64) - x
        rows[i] = message.bits - operator.carried_bits(d), error @ error, np.square(x, dtype=np.float64).sum()
    everyone = np.concatenate([part.numpy() for part in gather_arrays(torch.from_numpy(rows))])
    if place.rank:
        return None
    return Probe(specification(operator), _compression(operator, source, d, everyone))


def _compression(operator: Operator, source: str, d: int, rows: np.ndarray) -> Compression:
    """Parameters
    ----------
    rows : ndarray, shape (messages, 3) of bits, squared error, squared norm
    """
    bits, error2, norm2 = rows.T
    ratio = np.divide(error2, norm2, out=np.zeros_like(error2), where=norm2 > 0)
    return Compression(
        **of_messages(operator, source, d),
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


def train(place: RankContext, cells: Cells, operator: Operator, tau: int) -> Training | None:
    """Run one cell in all ranks; rank 0 returns the record.

    The traffic covers the averagings of all seeds; anything gathered for the record itself is outside it.
    """
    workload, transport = cells.workload, ProcessTransport(place.device)
    workload.require_workers(place.size)
    delays = _calibrate(place, cells, operator, transport)  # first, so that it also warms up
    d = sum(p.numel() for p in workload.model().parameters())
    runs, traffic = _counted(place, cells, operator, tau, transport, carried_bits=operator.carried_bits(d))
    compression = _compression_of_deltas(place, workload, operator, runs)
    steps_s = torch.cat(gather_arrays(torch.tensor(runs[0].step_s, dtype=torch.float64)))
    _require_equal_anchors(runs)
    virtual = bool(cells.virtual) and covered(compression.declared)
    kept = [RealRun(torch.stack(run.trace), run.anchors[-1]) for run in runs]
    if virtual:
        norms = norms_of_all(place, cells, operator, tau, kept)
    else:
        norms = norms_of_real(workload, kept, root=place.rank == 0)
    if place.rank:
        return None
    return Training(
        **Planned.training(cells, operator, tau, place.size).fields,
        **vars(norms),
        accuracy=tuple(workload.accuracy(model_at(workload, run.anchors[-1])) for run in runs),
        compression=compression,
        traffic=traffic,
        timing=Timing(_durations(runs[0]), tuple(steps_s.tolist()), Sample.of(delays), cells.step_s),
        curve=_curve(workload, runs[0]),
    )


def _counted(
    place: RankContext, cells: Cells, operator: Operator, tau: int, transport: ProcessTransport, *, carried_bits: int
) -> tuple[list[_Run], Traffic]:
    """Run every seed; return what this rank collected, and the bytes of all ranks.

    Parameters
    ----------
    carried_bits : int, bits
        Of every message, that do not count.
    """
    transport.payload_bytes = transport.predicted_bytes = 0
    barrier()
    before = interface_counter(place)
    runs = [_one_seed(place, cells, operator, tau, transport, seed) for seed in cells.seeds]
    barrier()
    after = interface_counter(place)
    payload = int(sum(int(part) for part in gather_arrays(torch.tensor([transport.payload_bytes]))))
    for run in runs:
        run.rounds = [replace(r, bits=tuple(bits - carried_bits for bits in r.bits)) for r in run.rounds]
    rounds = [r for run in runs for r in run.rounds]
    barriers, longest = 2 * len(runs), max(max(r.bits) for r in rounds)
    return runs, Traffic(
        codec_bits=sum(sum(r.bits) for r in rounds),
        payload_bytes=payload,
        predicted_payload_bytes=transport.predicted_bytes,
        interface_bytes=interface_bytes(place, before, after),
        interface_method=place.port.method,
        stream_bytes=_everyone([run.stream_bytes for run in runs]),
        messages=len(rounds) * averaging_messages(place.size, -(-longest // 8))
        + barriers * barrier_messages(place.size),
    )


def _compression_of_deltas(
    place: RankContext, workload: Workload, operator: Operator, runs: Sequence[_Run]
) -> Compression:
    """Return what all ranks measured of the messages of their rounds."""
    d = sum(p.numel() for p in workload.model().parameters())
    local_rows = np.array([[r.bits[place.rank], r.error2, r.norm2] for run in runs for r in run.rounds])
    rows = np.concatenate([part.numpy() for part in gather_arrays(torch.from_numpy(local_rows))])
    return _compression(operator, f"round deltas of {workload.name}", d, rows)


def _durations(run: _Run) -> tuple[float, ...]:
    return tuple(np.diff([0.0, *run.seconds]).tolist())


def _curve(workload: Workload, run: _Run) -> Curve:
    return Curve(
        seconds=tuple(run.seconds),
        codec_bits=tuple(int(b) for b in np.cumsum([sum(r.bits) for r in run.rounds])),
        loss=tuple(evaluated(workload, anchor)[0] for anchor in run.anchors),
    )


def _everyone(counts: Sequence[int | None]) -> int | None:
    """Return the sum of what all ranks have counted; None if one of them could not."""
    total = -1 if None in counts else sum(number for number in counts if number is not None)
    parts = [int(part) for part in gather_arrays(torch.tensor([total]))]
    return None if min(parts) < 0 else sum(parts)


def _one_seed(
    place: RankContext, cells: Cells, operator: Operator, tau: int, transport: ProcessTransport, seed: int
) -> _Run:
    timed = seed == cells.seeds[0]
    run = TrainingRun(cells.workload, tau, None, seed, steps=cells.steps, operator=operator)
    averaging, replica = joined(place, run, transport=transport, device="cpu")
    pacing, collected, watched = PaddedSteps(cells.step_s if timed else 0.0), _Run(), floating_tensors(replica.model)
    barrier()
    before = place.streams.count() if place.backend == GLOO else None
    began = time.perf_counter()

    names = [name for name, _ in replica.model.named_parameters()]
    numbers = sum(p.numel() for p in replica.model.parameters())
    tensors = f"parameters {', '.join(names)} ({numbers} numbers)"

    def trace() -> None:
        at(step=f"seed {seed}, step {len(collected.trace) + 1} of {cells.steps}", tensor=tensors)
        collected.trace.append(flat(watched))

    for (account,) in training_rounds(averaging.engine, [replica], before_step=trace, pacing=pacing):
        if timed:
            time.sleep(cells.delay_s)
        collected.rounds.append(account)
        collected.anchors.append(flat(watched))
        collected.seconds.append(time.perf_counter() - began)
        if run.is_over(collected.seconds[-1], averaging.total_steps):
            break
    barrier()
    sent = sent_between(before, place.streams.count())
    collected.stream_bytes = None if sent is None else sent.sent_bytes
    collected.step_s = pacing.durations
    return collected


def _calibrate(place: RankContext, cells: Cells, operator: Operator, transport: ProcessTransport) -> list[float]:
    """Return seconds of single synchronisations of realistic model updates, each after a padded step and behind a
    barrier.
    """
    model = cells.workload.model()
    with warnings.catch_warnings(action="ignore", category=BiasWarning):  # times messages
        averaging = PeriodicAveraging(model, operator=operator, process_group=transport, key=Key(cells.seeds[0]))

    def move(k: int) -> None:
        """Compute as long as a local step does, then change the model by a random vector."""
        cells.workload.loss(model, key=Key(k)).backward()
        start = flat(averaging.parameters)
        step = torch.from_numpy(normal(Key(k, rank=place.rank).fold_in(VECTORS), start.numel()))
        load(start + 0.01 * step.to(start), averaging.parameters)

    def sleep() -> None:
        time.sleep(cells.delay_s)

    return timed_synchronisations(averaging, move, times=CALIBRATION_ROUNDS, step_s=cells.step_s, sleep=sleep)


def _require_equal_anchors(runs: list[_Run]) -> None:
    """Every rank must hold the same averaged model, bit for bit."""
    local_models = torch.cat([anchor.double() for run in runs for anchor in run.anchors])
    for rank, other in enumerate(gather_arrays(local_models)):
        if not torch.equal(local_models, other):
            raise RuntimeError(f"this rank and rank {rank} hold different averaged models")
