"""The small run into which wrong things are put: cells of ``quick`` on two simulated workers, judged as a run is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch

from gpu_validation.judging.envelope import PIECES, PREAMBLE_BYTES
from gpu_validation.judging.verdict import Comparison
from gpu_validation.processes.tensors import floating_tensors, load
from gpu_validation.processes.vectors import averaging_messages
from gpu_validation.records.compression import Compression, Declared, Sample
from gpu_validation.records.storage import Record as Line
from gpu_validation.records.storage import plain
from gpu_validation.studies.grid.planned import Planned, of_messages
from gpu_validation.studies.grid.records import Cells, Curve, Probe, Timing, Traffic, Training
from gpu_validation.studies.grid.rows import compare
from gpu_validation.studies.grid.study import not_as_planned, typed
from gpu_validation.studies.quick import FEW_KEPT, MOST_KEPT, PRESET
from gpu_validation.studies.required import Required, not_measured, required_of
from gpu_validation.studies.runs.ensemble import Rows, run_seeds
from gpu_validation.workloads import LogisticRegression, Workload
from gpu_validation.workloads.data import Bundled
from operators import QSGD, Identity, Key, Operator, RandomisedSparseDithering, ScaledSign, TopK, specification
from operators.ddp.collectives import predicted_payload_bytes
from operators.inputs import canonical
from operators.random import normal

MESSAGES, PROBE_D, FEW_STEPS = 200, 1000, 8
STEP_S, DELAY_S = 2e-3, 8e-3
SOURCE, MESSAGE = 0, 1  # folds
POSITION_BITS = 32  # of a message of a round: how far its sender is
SOURCES = ("gaussian", "flat")
LOSSLESS, LOSSY = Identity(), QSGD(levels=16)
PROBED: tuple[Operator, ...] = (LOSSLESS, LOSSY, RandomisedSparseDithering(omega=1.0), ScaledSign(), TopK(fraction=0.1))

Record = Probe | Training
Change = Callable[[Training], Training]


@dataclass(frozen=True)
class Cell:
    """One operator at one period on one workload, run with several seeds."""

    workload: Workload
    operator: Operator
    tau: int
    steps: int
    seeds: int


@dataclass(frozen=True)
class Bench:
    """A run of m workers.

    Parameters
    ----------
    known : Workload, optional
        Of known law, ``seeds`` runs of a cell of ``steps``.
    taus : tuple of int, optional
        Of the lossless operator, the first one also of the lossy one.
    labelled : Workload, optional
        Real data with held-out labels, one run of a cell.
    """

    known: Workload = PRESET.cells[0].workload
    steps: int = PRESET.cells[0].steps
    taus: tuple[int, int, int] = (1, 4, 8)
    m: int = 2
    seeds: int = 64
    labelled: Workload = field(default_factory=lambda: LogisticRegression(source=Bundled("wine", held_out=0.2)))

    @cached_property
    def cells(self) -> list[Cell]:
        """The training cells of a run."""
        cells = [*(self.cell(LOSSLESS, tau) for tau in self.taus), self.cell(LOSSY, self.taus[0])]
        cells += [
            Cell(c.workload, c.operators[0], 1, c.steps, self.seeds) for c in (MOST_KEPT, FEW_KEPT) if c.operators
        ]
        return [*cells, *(Cell(self.labelled, operator, 1, FEW_STEPS, 1) for operator in (LOSSLESS, LOSSY))]

    @cached_property
    def records(self) -> list[Record]:
        """What an honest run leaves."""
        probes = [probed(operator, source) for operator in PROBED for source in SOURCES]
        return [*probes, *map(self.trained, self.cells)]

    @cached_property
    def planned(self) -> list[Planned]:
        """What each record must have."""
        probes = [
            Planned({"operator": specification(operator)}, of_messages(operator, source, PROBE_D), MESSAGES)
            for operator in PROBED
            for source in SOURCES
        ]
        return [*probes, *(replace(self._planned(cell), n=MESSAGES) for cell in self.cells)]

    def _planned(self, cell: Cell) -> Planned:
        cells = Cells(cell.workload, (cell.tau,), cell.steps, (0,), STEP_S, DELAY_S, virtual=cell.seeds - 1)
        return Planned.training(cells, cell.operator, cell.tau, self.m)

    def cell(self, operator: Operator, tau: int) -> Cell:
        """Return the cell of the workload of known law."""
        return Cell(self.known, operator, tau, self.steps, self.seeds)

    @property
    def middle(self) -> Training:
        """The lossless cell at the middle tau."""
        return next(r for r in self.records if isinstance(r, Training) and r.tau == self.taus[1])

    def judge(self, records: Iterable[Record]) -> list[Comparison]:
        """Judge as at the end of a run; the required rows are those of the honest one."""
        rows = self._compare(records)
        return [*rows, *not_measured(self._required, rows)]

    @cached_property
    def _required(self) -> Counter[Required]:
        return required_of(self._compare(self.records))

    def _compare(self, records: Iterable[Record]) -> list[Comparison]:
        return compare(records, false_alarm=PRESET.false_alarm)

    def with_trainings(self, change: Change) -> list[Comparison]:
        """Return the rows when every training record is another one."""
        return self.judge(change(r) if isinstance(r, Training) else r for r in self.records)

    def with_compressions(self, change: Callable[[Compression], Compression]) -> list[Comparison]:
        """Return the rows when all messages are others."""
        return self.judge(replace(r, compression=change(r.compression)) for r in self.records)

    def with_lines(self, change: Callable[[Line], Line]) -> list[Comparison]:
        """Return the rows when every line of the file of records is another one.

        Parameters
        ----------
        change : callable
            From the plain values of a record to those that are read.
        """
        records = typed([change(plain(record)) for record in self.records])
        pairs = zip(records, self.planned, strict=True)
        rows = [row for r, planned in pairs for row in not_as_planned(r, planned, operator=r.operator)]
        return [*self.judge(records), *rows]

    def in_place_of_the_middle(self, record: Training) -> list[Comparison]:
        """Return the rows when one lossless cell has run otherwise."""
        return self.judge(record if r is self.middle else r for r in self.records)

    def with_probe(self, operator: Operator) -> list[Comparison]:
        """Return the rows of one more operator on synthetic vectors."""
        return self.judge([*self.records, *(probed(operator, source) for source in SOURCES)])

    def trained(self, cell: Cell, *, done: int | None = None) -> Training:
        """Return the record of a cell.

        Parameters
        ----------
        done : int or None, optional
            Its true period, where it differs from the one in the record.
        """
        w, operator, tau, chosen = cell.workload, cell.operator, cell.tau, tuple(range(cell.seeds))
        run = run_seeds(w, operator, tau=done or tau, steps=cell.steps, seeds=chosen, m=self.m)
        rows, d = Rows(w), run.points.shape[-1]
        averages = [
            rows.evaluate(points.reshape(-1, d))[1].reshape(cell.seeds, -1).mean(dim=1)
            for points in (run.points.mean(dim=2), run.points)
        ]
        rounds = cell.steps // tau
        anchors = torch.cat([run.points[0, tau::tau].mean(dim=1)[: rounds - 1], run.last[:1]])
        timing = self._timing(tau, rounds)
        compression = messages(operator, f"round deltas of {w.name}", d)
        model = w.model()
        load(run.last[0], floating_tensors(model))
        return Training(
            **self._planned(cell).fields,
            gradient_norm2=tuple(averages[0].tolist()),
            local_gradient_norm2=tuple(averages[1].tolist()) if w.description().synthetic else (),
            final_loss=tuple(rows.evaluate(run.last)[0].tolist()),
            compression=compression,
            traffic=self._traffic(compression, rounds),
            timing=timing,
            curve=Curve(
                seconds=tuple(np.cumsum(timing.round_s).tolist()),
                codec_bits=tuple(round(i * self.m * compression.bits.mean) for i in range(1, rounds + 1)),
                loss=tuple(rows.evaluate(anchors)[0].tolist()),
            ),
            accuracy=(w.accuracy(model),),
        )

    def _traffic(self, compression: Compression, rounds: int) -> Traffic:
        """Of messages of mean length, as the transport would carry them."""
        bits = round(compression.bits.mean)
        payload = rounds * predicted_payload_bytes([POSITION_BITS + bits] * self.m, self.m)
        pieces = rounds * averaging_messages(self.m)
        streams = payload + PIECES * PREAMBLE_BYTES * pieces
        codec_bits = round(rounds * self.m * compression.bits.mean)
        return Traffic(codec_bits, payload, payload, streams, "as the formats say", streams, pieces)

    def _timing(self, tau: int, rounds: int) -> Timing:
        """Of a quiet machine: rounds that scatter by a thousandth."""
        scatter = 1 + 1e-3 * (np.arange(rounds) % 3 - 1)
        return Timing(
            round_s=tuple(((tau * STEP_S + DELAY_S) * scatter).tolist()),
            step_s=(STEP_S,) * (rounds * tau * self.m),
            delay_s=Sample.of([DELAY_S * (1 + 1e-3 * (i % 3)) for i in range(6)]),
            wanted_step_s=STEP_S,
        )


def probed(operator: Operator, source: str) -> Probe:
    """Return the record of an operator on synthetic vectors."""
    return Probe(specification(operator), messages(operator, source, PROBE_D))


def messages(operator: Operator, source: str, d: int) -> Compression:
    """Return bits and errors of messages, with what the operator declares."""
    measured: list[Sequence[float]] = []
    for i in range(MESSAGES):
        key = Key(0, step=i)
        x = canonical(np.ones(d) if source == "flat" else normal(key.fold_in(SOURCE), d))
        message = operator.encode(x, key=key.fold_in(MESSAGE))
        error = operator.decode(message, d=d, key=key.fold_in(MESSAGE)).numpy().astype(np.float64) - x
        measured.append((message.bits, float(error @ error), float(np.square(x, dtype=np.float64).sum())))
    bits, error2, norm2 = np.array(measured).T
    declared = Declared.of(operator.claim(d), operator.bits(d))
    return Compression(source, d, declared, Sample.of(bits), Sample.of(error2 / norm2), Sample.of(error2 / d))
