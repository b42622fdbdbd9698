"""AdaComm and compression together: loss against time and bits, and the joint bound of a varying period and omega."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bounds.runtime import Constant, RingGather, RuntimeModel
from operators import Feedback

from ...measurement.simulation import simulate
from ...measurement.spec import TrainingRun
from ...measurement.training import run_training
from ...network import Shape
from ...records.storage import Record
from ...verdicts.simulation_agreement import compared
from ...verdicts.verdict import Comparison
from ..study import Figure, Study
from ..unit import of_kind, read_unit
from .analysis import bound_row, real_rows, time_rows
from .figures import draw_bounds, draw_losses, draw_real
from .problems import (
    DENSE_S,
    FLOAT_BITS,
    KINDS,
    LATENCY_S,
    METHODS,
    STEP_S,
    WORKLOADS,
    Real,
    Virtual,
    dimension,
    schedule,
)

SHAPE = Shape(rate_bit_per_s=1e8, delay_s=2e-3)


@dataclass(frozen=True)
class JointStudy(Study):
    """Every compressor with every schedule on simulated workers and a simulated ring, for a budget of seconds.

    ``real`` runs are repeated by real processes on a network of the stated shape for ``real_steps`` steps; with a
    fixed tau their losses must agree with simulated workers bit for bit.
    """

    schedules: tuple[str, ...] = ("1", "8", "adacomm")
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    m: int = 4
    time_s: float = 3.0
    interval_s: float = 0.3
    points: int = 40
    real: tuple[tuple[str, str], ...] = (("tcdq", "8"), ("tcdq", "adacomm"), ("ef(topk)", "8"))
    real_steps: int = 160
    shape: Shape = SHAPE

    name = "joint"
    description = "AdaComm with QSGD, TCDQ and top-k with memory: loss against time and bits, and the joint bound"
    minutes = 3
    processes = 4
    measures_seconds = True

    def units(self) -> Sequence[str]:
        """Return virtual:WORKLOAD:SCHEDULE:METHOD and real:WORKLOAD:SCHEDULE:METHOD."""
        return [
            *(str(Virtual(w, kind, method)) for w in WORKLOADS for kind in self.schedules for method in METHODS),
            *(str(Real(w, kind, method)) for w in WORKLOADS for method, kind in self.real),
        ]

    def measure(self, unit: str) -> Record:
        """Simulate every seed, or run real processes."""
        match read_unit(unit, KINDS):
            case Real(name, kind, method):
                return self._real(name, kind, method)
            case Virtual(name, kind, method):
                runs = [self._virtual(name, kind, method, seed) for seed in self.seeds]
                return {"eta": WORKLOADS[name].eta, "runs": runs}

    def _race(self, name: str, kind: str, method: str, seed: int, **ends: Any) -> TrainingRun:
        rule = schedule(kind, name, self.interval_s)
        operator = METHODS[method]
        return TrainingRun(
            WORKLOADS[name], rule, Constant(STEP_S), seed, operator=operator, points=self.points, trace=True, **ends
        )

    def _runtime(self, name: str) -> RuntimeModel:
        """Return a hop of the ring takes LATENCY_S, and DENSE_S more for an uncompressed message."""
        dense_bytes = FLOAT_BITS / 8 * dimension(WORKLOADS[name])
        ring = RingGather(LATENCY_S, dense_bytes / DENSE_S)
        return RuntimeModel(step=Constant(STEP_S), communication=ring, m=self.m)

    def _virtual(self, name: str, kind: str, method: str, seed: int) -> Record:
        race = self._race(name, kind, method, seed, budget_s=self.time_s)
        biased = isinstance(METHODS[method], Feedback)
        run = simulate(race, self._runtime(name), locally=biased)
        kept = {key: run[key] for key in ("seconds", "bits", "losses", "rounds", "steps_done", "took_s")}
        local_norms = {"local_gradient2": float(np.mean(run["local_gradient2"]))} if biased else {}
        return {**kept, **local_norms, "gradient2": float(np.mean(run["gradient2"]))}

    def _real(self, name: str, kind: str, method: str) -> Record:
        race = self._race(name, kind, method, self.seeds[0], steps=self.real_steps)
        (real,) = run_training([race], m=self.m, shape=self.shape)
        kept = {key: real[key] for key in ("seconds", "bits", "losses", "rounds", "steps_done", "fenced_s")}
        record = {**kept, "raced_s": real["took_s"], "method": real["method"], "scheduling": real["scheduling"]}
        if kind == "adacomm":
            return record  # its decisions depend on the clock
        simulated_run = simulate(race, self._runtime(name))
        return {**record, **compared(real, simulated_run)}

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Judge by the joint bound, and real workers by simulated ones; times to a loss are for comparison."""
        level = self.false_alarm / max(1, sum(Virtual.read(unit) is not None for unit in self.units()))
        virtual = dict(of_kind(records, Virtual))
        rows: list[Comparison] = []
        for record in records:
            match read_unit(record["unit"], KINDS):
                case Virtual() as unit:
                    rows.append(bound_row(unit, record, self.m, level))
                    rows += time_rows(unit, virtual)
                case Real() as unit:
                    rows += real_rows(unit, record)
        return rows

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return loss against time and against bits; the share of the joint bound that is used."""
        virtual, real = of_kind(records, Virtual), of_kind(records, Real)
        if not virtual:
            return []
        clock = (
            f"Simulated ring: Y = {STEP_S * 1e3:g} ms, {LATENCY_S * 1e3:g} ms a hop and {DENSE_S * 1e3:g} ms more for "
            "an uncompressed message. Virtual workers compute bit for bit what real processes do."
        )
        drawn = [
            *(
                Figure(
                    partial(draw_losses, virtual, key, label),
                    f"Measured: F - inf F at the averagings of the first seed, against {label}. No theory. {clock}",
                )
                for key, label in (("seconds", "simulated seconds"), ("bits", "bits of all workers"))
            ),
            Figure(
                lambda: draw_bounds(virtual, self.m),
                "Measured (dots, range of the seeds): mean of |grad F|^2 over the steps of the budget. Theory (bars): "
                f"the joint bound of the run's own schedule and omega. {clock}",
            ),
        ]
        if real:
            words = f"Measured: the same losses of real processes against their own clock. {real[0][1]['method']}."
            drawn.append(Figure(lambda: draw_real(real), words))
        return drawn


PRESET = JointStudy()
