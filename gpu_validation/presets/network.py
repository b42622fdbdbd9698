"""A network of our own: what messages cost on the wire, and seconds per iteration against the runtime model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np
import torch

from bounds.runtime import Constant, ShiftedExponential
from bounds.runtime.law import Law
from operators import Identity, Key, Operator, all_operators

from ..launch import Place, run_ranks
from ..network import Network, Shape
from ..pace import PacePlan, fenced_delay, measure_pace, pace_rows
from ..page import LINES, MARKS, PALETTE, canvas
from ..records import Comparison
from ..study import Figure, Record, Study
from ..timing import predicted_seconds_per_iteration
from ..wire import WirePlan, fitted_line, measure_wire, wire_rows
from ..workloads import LogisticRegression, SmallNetwork, Workload

WORKLOADS: dict[str, Callable[[], Workload]] = {"logistic": LogisticRegression, "network": SmallNetwork}
STRAGGLERS = "stragglers"  # the first workload with drawn steps
SILENCE_S = 120.0
HEADERS_BYTES = 20 + 32  # of IP, and of TCP with time stamps, in every packet
SHAPE = Shape(rate_bit_per_s=1e8, delay_s=1e-3)
SLOW_STEPS = ShiftedExponential(4e-3, 2e-3)


def every_operator() -> tuple[Operator, ...]:
    """The first example of each operator in the catalogue."""
    return tuple(cls.examples()[0] for cls in all_operators().values())


@dataclass(frozen=True)
class OwnNetwork(Study):
    """m ranks on a network of our own, of a stated shape if the machine allows it.

    Wire: every operator's message for ``d`` coordinates by every topology, and bare messages of ``lengths_bytes``.
    Pace: workloads at every tau with steps padded to ``step_s``, and one with stragglers; SCHED_RR if allowed.
    """

    sizes: tuple[int, ...] = (2, 4)
    shape: Shape = SHAPE
    operators: tuple[Operator, ...] = field(default_factory=every_operator)
    d: int = 100_000
    lengths_bytes: tuple[int, ...] = (2, 500, 1_400, 3_000, 10_000, 30_000, 100_000, 300_000)
    exchanges: int = 2
    taus: tuple[int, ...] = (1, 4, 16)
    step_s: float = 5e-3
    stragglers: Law = SLOW_STEPS
    steps: int = 64
    repeats: int = 5

    name = "network"
    description = "bytes on the wire and seconds per iteration on a network with set rate and delay"
    minutes = 3
    processes = 4

    def units(self) -> Sequence[str]:
        """wire:M and pace:M:WORKLOAD, for every number of ranks M."""
        kinds = (*WORKLOADS, STRAGGLERS)
        return [name for m in self.sizes for name in (f"wire:{m}", *(f"pace:{m}:{kind}" for kind in kinds))]

    def measure(self, unit: str) -> Record:
        """Make the network, start the ranks in it, and keep rank 0's records."""
        kind, size, *what = unit.split(":")
        m = int(size)
        work = self._wire() if kind == "wire" else self._pace(what[0])
        with Network.of(self.shape, m) as network:
            running = run_ranks(work, processes=m, silence_s=SILENCE_S, network=network, scheduling="realtime")
            records = list(running)
            switched = network.switch_count()
            return {
                "method": network.description,
                "refusals": list(network.refusals),
                "late_max_s": None if switched is None else switched.late_max_s,
                "bytes_from_to": None if switched is None else switched.bytes.tolist(),
                "records": records,
            }

    def _wire(self) -> Callable[[Place, Callable[[Any], None]], None]:
        plan = WirePlan(self.operators, self.d, self.lengths_bytes, self.exchanges, self.shape.mtu - HEADERS_BYTES)
        for operator in self.operators:  # compile before the processes fork
            operator.encode(torch.linspace(-1, 1, 64), key=Key(0))

        def work(place: Place, emit: Callable[[Any], None]) -> None:
            for record in measure_wire(place, plan):
                if place.rank == 0:
                    emit(record)

        return work

    def _pace(self, kind: str) -> Callable[[Place, Callable[[Any], None]], None]:
        workload = WORKLOADS[kind if kind != STRAGGLERS else next(iter(WORKLOADS))]()
        law = self.stragglers if kind == STRAGGLERS else Constant(self.step_s)
        plans = [PacePlan(workload, Identity(), law, tau, self.steps, self.repeats) for tau in self.taus]
        workload.objective(workload.model())  # loads the data before the processes fork

        def work(place: Place, emit: Callable[[Any], None]) -> None:
            for plan in plans:
                record = measure_pace(place, plan)
                if place.rank == 0:
                    emit(record)

        return work

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Payload bytes exactly; interface bytes against their line; seconds against the model, deciding nothing."""
        wire, pace = _of_kind(records, "wire"), _of_kind(records, "pace")
        return [*wire_rows(wire), *pace_rows(pace)]

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Interface bytes against payload, and seconds per iteration against tau."""
        wire, pace = _of_kind(records, "wire"), _of_kind(records, "pace")
        counted = [r for r in wire if r["interface_bytes"] is not None and r["own_network"]]
        drawn = []
        if counted:
            caption = (
                "Measured: bytes that all interfaces together sent in one exchange over payload bytes; dots are the "
                f"operators' messages. Lines: the fits a + b payload, within a frame and above. {counted[0]['method']}."
            )
            drawn.append(Figure(lambda: _draw_wire(counted), caption))
        if pace:
            caption = (
                "Measured (marks): median seconds per iteration with padded steps, bars from the fastest to the "
                "slowest repeat. Theory (lines): E max of the mean of tau steps + D/tau, D timed behind a barrier. "
                f"{pace[0]['method']}; {pace[0]['scheduling']}."
            )
            drawn.append(Figure(lambda: _draw_pace(pace), caption))
        return drawn


def _of_kind(records: Sequence[Record], kind: str) -> list[Record]:
    return [r for unit in records if unit["unit"].startswith(f"{kind}:") for r in unit["records"]]


def _draw_wire(records: Sequence[Record]) -> Any:
    figure, axes = canvas(1, 1, height=4)
    ax = axes[0, 0]
    groups = list(dict.fromkeys((r["topology"], r["m"]) for r in records))
    for (topology, m), colour, mark in zip(groups, cycle(PALETTE), cycle(MARKS), strict=False):
        mine = [r for r in records if (r["topology"], r["m"]) == (topology, m)]
        for one_frame in (True, False):
            chosen = [r for r in mine if r["kind"] == "line" and r["one_frame"] == one_frame]
            x = np.geomspace(min(r["payload_bytes"] for r in chosen), max(r["payload_bytes"] for r in chosen), 100)
            line = fitted_line(chosen)
            if line is not None:
                ax.plot(x, (line[0] + line[1] * x) / x, color=colour, linewidth=1)
        sent = [r for r in mine if r["kind"] == "operator"]
        payload = np.array([r["payload_bytes"] for r in sent])
        ratio = np.array([r["interface_bytes"] for r in sent]) / payload
        ax.plot(payload, ratio, mark, color=colour, markersize=4, label=f"{topology}, m = {m}")
    ax.set(xscale="log", yscale="log", xlabel="payload bytes, all ranks", ylabel="interface bytes / payload bytes")
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    return figure


def _draw_pace(records: Sequence[Record]) -> Any:
    figure, axes = canvas(1, 1, height=4)
    ax = axes[0, 0]
    groups = list(dict.fromkeys((r["workload"], r["m"], r["law"]) for r in records))
    for group, colour, mark, line in zip(groups, cycle(PALETTE), cycle(MARKS), cycle(LINES), strict=False):
        mine = sorted((r for r in records if (r["workload"], r["m"], r["law"]) == group), key=lambda r: r["tau"])
        taus = [r["tau"] for r in mine]
        values = [r["seconds_per_iteration"] for r in mine]
        middle = np.array([median(v) for v in values])
        spread = [middle - [min(v) for v in values], [max(v) for v in values] - middle]
        label = f"{group[0]}, m = {group[1]}" + ("" if group[2].startswith("Constant") else ", stragglers")
        ax.errorbar(taus, middle, yerr=spread, fmt=mark, color=colour, markersize=5, capsize=3, label=label)
        ax.plot(taus, [_model(r) for r in mine], line, color=colour, linewidth=1)
    ax.set(xscale="log", yscale="log", xlabel="tau", ylabel="seconds per iteration", xticks=taus)
    ax.set_xticks(taus, [str(tau) for tau in taus])
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    return figure


def _model(record: Record) -> float:
    computing = Constant(record["predicted_compute_s"])  # the maximum over workers is in it
    return predicted_seconds_per_iteration(computing, fenced_delay(record).value, tau=record["tau"], m=1)


PRESET = OwnNetwork()
