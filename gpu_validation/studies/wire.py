"""Bytes of messages on the wire: payload as predicted, and the frames that an interface counts for them.

The interface sends more than the payload: headers of frames, acknowledgements, and what the transport says to itself.
How much more it may be follows from the formats beforehand (``envelope``), on both sides and for every topology; by
that the operators' messages are judged.  The line interface = a + b payload, fitted to bare messages of chosen lengths
within a frame and above, is drawn for the eye and judges nothing: a transport that sent every body four times over
would only get a steeper one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np
import torch

from bounds.estimate import delay_by_fenced_regression
from operators import Key, Message, Operator, all_operators, specification
from operators.random import normal

from ..judging.comparisons import exact_row
from ..judging.envelope import ETHERNET_BYTES, HEADERS_BYTES, in_streams, on_interface, payload_on_interface
from ..judging.intervals import Interval
from ..judging.judge import rows_of
from ..judging.plotting import MARKS, PALETTE, chart
from ..network import Network, Shape
from ..network.streams import StreamCount
from ..processes.collectives import barrier, gather_arrays
from ..processes.launch import RankContext, run_ranks
from ..processes.vectors import barrier_messages
from .runs.spec import MESSAGES, VECTORS
from .runs.training import interface_bytes, sent_between
from .study import Comparison, Figure, Record, Study
from .topologies import TOPOLOGIES, Topology

SHORT_FACTOR = 5  # one acknowledgement more or less is much beside a short message: average over more exchanges
FRAME_BYTES = 1448  # stream bytes of one frame at an MTU of 1500
HANG_TIMEOUT_S = 120.0
SHAPE = Shape(rate_bit_per_s=1e8, delay_s=1e-3)


# -- measurements ----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class WirePlan:
    """What is sent: the messages of operators for d coordinates, and bare messages of chosen lengths.

    Parameters
    ----------
    repeats : int
        How often each is exchanged, SHORT_FACTOR times as often within one frame; the counters are read around all of
        them.
    frame_bytes : int, bytes, optional
        Of payload in one frame, 1448 at an MTU of 1500.
    topologies : tuple of Topology, optional
        By which it is sent.
    seed : int, optional
        Of the operators' vectors and messages.

    Raises
    ------
    ValueError
        Unless three different lengths are within a frame and three above it: a line needs as many.
    """

    operators: tuple[Operator, ...]
    d: int
    lengths_bytes: tuple[int, ...]
    repeats: int
    frame_bytes: int = FRAME_BYTES
    topologies: tuple[Topology, ...] = TOPOLOGIES
    seed: int = 0

    def __post_init__(self) -> None:
        short = sum(length <= self.frame_bytes for length in set(self.lengths_bytes))
        if min(short, len(set(self.lengths_bytes)) - short) < 3:
            raise ValueError(
                f"lengths_bytes needs three different lengths up to {self.frame_bytes} and three above; "
                f"got {self.lengths_bytes}"
            )


def measure_wire(place: RankContext, plan: WirePlan) -> list[Record]:
    """Exchange everything by every one of the topologies; all ranks return the same records."""
    records = []
    for topology in plan.topologies:
        for length in plan.lengths_bytes:
            message = Message(torch.zeros(length, dtype=torch.uint8), 8 * length)
            records.append({"kind": "line", **_exchanged(place, topology, message, plan)})
        for operator in plan.operators:
            key = Key(plan.seed, rank=place.rank)
            message = operator.encode(torch.from_numpy(normal(key.fold_in(VECTORS), plan.d)), key=key.fold_in(MESSAGES))
            measured = _exchanged(place, topology, message, plan)
            records.append({"kind": "operator", "operator": specification(operator), **measured})
    return records


def _exchanged(place: RankContext, topology: Topology, message: Message, plan: WirePlan) -> Record:
    """Return bytes of all ranks together for one exchange, on average over the repeats."""
    topology.all_gather(message)  # connects whom it has to
    bits = [int(part) for part in gather_arrays(torch.tensor([message.bits]))]
    longest = (max(bits) + 7) // 8
    repeats = plan.repeats * (SHORT_FACTOR if longest <= plan.frame_bytes else 1)
    barrier()
    before, streams = place.port.count(), place.streams.count()
    sent = sum(topology.all_gather(message)[1] for _ in range(repeats))
    barrier()
    after, carried = place.port.count(), sent_between(streams, place.streams.count())
    every_sent = [int(part) for part in gather_arrays(torch.tensor([sent]))]
    counted = interface_bytes(
        place, None if before is None else before.sent_bytes, None if after is None else after.sent_bytes
    )
    return {
        "topology": topology.name,
        "m": place.size,
        "longest_bytes": longest,
        "one_frame": longest <= plan.frame_bytes,
        "payload_bytes": sum(every_sent) / repeats,
        "predicted_payload_bytes": topology.total_payload_bytes(bits),
        "interface_bytes": None if counted is None else counted / repeats,
        **_of_streams(carried, repeats),
        "repeats": repeats,
        "frame_bytes": plan.frame_bytes,
        "method": place.port.method,
        "scheduling": place.scheduling,
        "own_network": not place.port.shared,
    }


def _of_streams(own: StreamCount | None, repeats: int) -> Record:
    """Return what the connections of all ranks carried for one exchange, on average; None where one rank
    cannot tell.
    """
    numbers = (-1, -1, -1) if own is None else (own.sent_bytes, own.resent_bytes, own.resent_segments)
    table = torch.stack(gather_arrays(torch.tensor(numbers)))
    counted = bool((table >= 0).all())
    sent, again, segments = (int(total) / repeats if counted else None for total in table.sum(dim=0))
    return {"stream_bytes": sent, "resent_bytes": again or 0, "resent_segments": segments or 0}


# -- rows ------------------------------------------------------------------------------------------------
def wire_rows(records: Sequence[Record]) -> Iterable[Comparison]:
    """Return rows for payload against its exact prediction, and against the bytes of streams and interfaces."""
    for record in records:
        if record.get("kind", "operator") == "operator":
            operator, topology, m = (record.get(name, "unknown") for name in ("operator", "topology", "m"))
            where: dict[str, Any] = {"operator": str(operator), "workload": f"{topology}, m = {m}"}
            yield from rows_of(partial(_rows, record, where), "payload bytes of an exchange", **where)


def _rows(record: Record, where: dict[str, Any]) -> Iterable[Comparison]:
    payload, predicted = int(record["payload_bytes"]), int(record["predicted_payload_bytes"])
    about = {**where, "quantity": "payload bytes of an exchange", "theorem": "lengths of the messages alone"}
    yield exact_row(payload, predicted, payload == predicted, unit="byte", **about)
    sent, messages = record.get("stream_bytes"), _messages(record)
    about = {**where, "quantity": "payload within the bytes of TCP streams", "repeats": record.get("repeats", 1)}
    yield in_streams(payload, sent, messages, **about)
    quantity = "payload within the bytes of the interfaces"
    yield on_interface(payload, _on_interface(record), record["method"], quantity=quantity, **where)


def _messages(record: Record) -> float:
    """Return the messages of one exchange, plus its share of the two barriers around all of them."""
    (topology,) = (topology for topology in TOPOLOGIES if topology.name == record["topology"])
    m, repeats = record["m"], record.get("repeats", 1)
    return topology.messages(m) + 2 * barrier_messages(m) / repeats


def _on_interface(record: Record) -> Interval | None:
    if not record["own_network"] or record["interface_bytes"] is None:
        return None
    resent = StreamCount(0, record.get("resent_bytes", 0), record.get("resent_segments", 0))
    frame_bytes = record.get("frame_bytes", FRAME_BYTES)
    return payload_on_interface(record["interface_bytes"], _messages(record), frame_bytes, resent)


def fitted_line(records: Sequence[Record]) -> tuple[float, float] | None:
    """Return (a, b) of interface = a + b payload in bytes, by least squares of relative errors.

    None without counters.
    """
    if any(record["interface_bytes"] is None or not record["own_network"] for record in records):
        return None
    x, y = ([float(record[name]) for record in records] for name in ("payload_bytes", "interface_bytes"))
    fit = delay_by_fenced_regression(x, y)  # the same line, with bytes in the place of seconds
    return fit.latency_s.value, fit.seconds_per_byte.value


# -- study -----------------------------------------------------------------------------------------------
MEASURED = (  # operators of the record; a new one is sent after the next measurement
    *("arithmetic_sparse_dithering", "block_integer", "cast", "composition", "drive", "e8", "eden", "hard_threshold"),
    *("identity", "induced", "kashin", "klevel", "low_rank", "natural", "natural_dithering", "one_bit_sgd", "qsgd"),
    *("quic_fl", "rabitq", "randomised_sparse_dithering", "randomk", "rotated_klevel", "scaled_randomk"),
    *("scaled_sign", "signsgd", "sparse_dithering", "spherical_compression", "tcdq", "terngrad", "topk"),
    *("turboquant", "unbiased_spherical_compression", "vqsgd"),
)


def measured_operators() -> tuple[Operator, ...]:
    """Return the first example of each operator of the record."""
    return tuple(all_operators()[name].examples()[0] for name in MEASURED)


@dataclass(frozen=True)
class WireStudy(Study):
    """Each operator's message for ``d`` coordinates and bare messages of ``lengths_bytes``, by every topology.

    Parameters
    ----------
    sizes : tuple of int, optional
        Numbers of ranks, on a network of the stated shape and with SCHED_RR if the machine allows them.
    """

    sizes: tuple[int, ...] = (2, 4, 8)
    shape: Shape = SHAPE
    operators: tuple[Operator, ...] = field(default_factory=measured_operators)
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
