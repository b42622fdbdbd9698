"""Bytes of messages on the wire: payload against the frames of an emulated network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import numpy as np
import torch

from operators import Key, Operator, all_operators

from ..distributed.launch import RankContext, run_ranks
from ..distributed.topologies import TOPOLOGIES
from ..measurement.wire import WirePlan, measure_wire
from ..network import Network, Shape
from ..records.storage import Record
from ..reporting.plotting import MARKS, PALETTE, chart
from ..verdicts.envelope import ETHERNET_BYTES, HEADERS_BYTES
from ..verdicts.verdict import Comparison
from ..verdicts.wire import fitted_line, wire_rows
from .study import Figure, Study

HANG_TIMEOUT_S = 120.0
SHAPE = Shape(rate_bit_per_s=1e8, delay_s=1e-3)


def every_operator() -> tuple[Operator, ...]:
    """Return the first example of each operator in the catalogue."""
    return tuple(cls.examples()[0] for cls in all_operators().values())


@dataclass(frozen=True)
class WireStudy(Study):
    """Every operator's message for ``d`` coordinates and bare messages of ``lengths_bytes``, by every topology.

    Parameters
    ----------
    sizes : tuple of int, optional
        Numbers of ranks, on a network of the stated shape and with SCHED_RR if the machine allows them.
    """

    sizes: tuple[int, ...] = (2, 4, 8)
    shape: Shape = SHAPE
    operators: tuple[Operator, ...] = field(default_factory=every_operator)
    d: int = 100_000
    lengths_bytes: tuple[int, ...] = (2, 500, 1_400, 3_000, 10_000, 30_000, 100_000, 300_000)
    exchanges: int = 2

    name = "wire"
    description = "payload against interface bytes of every operator's messages by every topology"
    minutes = 3
    processes = 8
    measures_seconds = True

    def plan(self) -> Iterator[tuple[str | int, ...]]:
        """Yield every topology, for every number of ranks."""
        yield from (("each", m, topology.name) for m in self.sizes for topology in TOPOLOGIES)

    def measure_each(self, m: int, topology: str) -> Record:
        """Create the network of m ranks, start them in it, and return rank 0's records of a topology."""
        chosen = tuple(t for t in TOPOLOGIES if t.name == topology)
        frame = self.shape.mtu - (HEADERS_BYTES - ETHERNET_BYTES)  # the MTU excludes Ethernet headers
        plan = WirePlan(self.operators, self.d, self.lengths_bytes, self.exchanges, frame, chosen, self.seed)
        for operator in self.operators:  # compile before the processes fork
            operator.encode(torch.linspace(-1, 1, 64), key=Key(0))

        def work(place: RankContext, emit: Any) -> None:
            for record in measure_wire(place, plan):
                if place.rank == 0:
                    emit(record)

        with Network.of(self.shape, m) as network:
            running = run_ranks(
                work, processes=m, hang_timeout_s=HANG_TIMEOUT_S, network=network, scheduling="realtime"
            )
            records = list(running)
            switched = network.switch_count()
            return {
                "method": network.description,
                "refusals": list(network.refusals),
                "late_max_s": None if switched is None else switched.late_max_s,
                "bytes_from_to": None if switched is None else switched.bytes.tolist(),
                "records": records,
            }

    def judge(self, records: Sequence[Record]) -> list[Comparison]:
        """Return rows for payload bytes, exactly and against streams and interfaces."""
        return list(wire_rows(_exchanges(records)))

    def figures(self, records: Sequence[Record]) -> list[Figure]:
        """Return a figure of interface bytes over payload bytes."""
        counted = [r for r in _exchanges(records) if r["interface_bytes"] is not None and r["own_network"]]
        if not counted:
            return []
        caption = (
            "Measured: bytes that all interfaces together sent in one exchange over payload bytes; marks are the "
            f"operators' messages. Lines: the fits a + b payload to bare messages, within a frame and above; their "
            f"form is theory (headers come by the frame), a and b are fitted and judge nothing. {counted[0]['method']}."
        )
        ratios = [r["interface_bytes"] / r["payload_bytes"] for r in counted if r["kind"] == "operator"]
        finding = f"Interfaces send {np.median(ratios):.2f} times the payload in the median" if ratios else ""
        return [Figure(lambda: _draw(counted), caption, finding=finding)]


def _exchanges(records: Sequence[Record]) -> list[Record]:
    return [r for unit in records for r in unit["records"]]


def _draw(records: Sequence[Record]) -> Any:
    def draw(ax: Any, m: int) -> None:
        for topology, colour, mark in zip(dict.fromkeys(r["topology"] for r in records), cycle(PALETTE), cycle(MARKS)):
            _draw_topology(ax, [r for r in records if (r["topology"], r["m"]) == (topology, m)], colour, mark, topology)

    sizes, x, y = sorted({r["m"] for r in records}), "payload bytes, all ranks", "interface bytes / payload bytes"
    return chart(sizes, draw, height=4, title="m = {}".format, logs="xy", x=x, y=y)


def _draw_topology(ax: Any, mine: Sequence[Record], colour: str, mark: str, label: str) -> None:
    for one_frame in (True, False):
        chosen = [r for r in mine if r["kind"] == "line" and r["one_frame"] == one_frame]
        line = fitted_line(chosen) if chosen else None
        if line is not None:
            ends = min(r["payload_bytes"] for r in chosen), max(r["payload_bytes"] for r in chosen)
            x = np.geomspace(*ends, 100)
            ax.plot(x, (line[0] + line[1] * x) / x, color=colour, linewidth=1)
    sent = [r for r in mine if r["kind"] == "operator"]
    payload = np.array([r["payload_bytes"] for r in sent])
    counted = np.array([r["interface_bytes"] for r in sent])
    ax.plot(payload, counted / payload, mark, color=colour, markersize=4, label=label)


PRESET = WireStudy()
