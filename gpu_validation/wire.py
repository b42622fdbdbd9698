"""What a message costs on the wire: payload bytes as predicted, and the frames that the interface counts for them.

The interface sends more than the payload: headers of frames, acknowledgements, and what the transport says to itself.
How much more it may be follows from the formats beforehand (``envelope``), on both sides and for every topology; by
that the operators' messages are judged.  The line interface = a + b payload, fitted to bare messages of chosen lengths
within a frame and above, is drawn for the eye and judges nothing: a transport that sent every body four times over
would only get a steeper one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bounds.estimate import delay_by_fenced_regression
from operators import Key, Message, Operator, specification
from operators.random import normal

from .cell import interface_bytes, sent_between
from .envelope import fence_messages, in_streams, on_interface, payload_on_interface
from .exchange import fence, gather_arrays
from .launch import Place
from .network.streams import StreamCount
from .records import Comparison
from .topologies import TOPOLOGIES, Topology
from .verdicts.intervals import Interval
from .verdicts.verdict import exact_verdict

SOURCE, MESSAGE = 2, 1  # folds of the key
FRAME_BYTES = 1448  # of the stream, in one frame at an MTU of 1500
SHORT_FACTOR = 5  # one acknowledgement more or less is much beside a short message: average over more exchanges

Record = dict[str, Any]


@dataclass(frozen=True)
class WirePlan:
    """What is sent: the messages of operators for d coordinates, and bare messages of chosen lengths.

    frame_bytes : of payload in one frame, 1448 at an MTU of 1500.  repeats : how often each is exchanged, SHORT_FACTOR
    times as often within one frame; the counters are read around all of them.  topologies : by which it is sent.
    seed : of the operators' vectors and messages.
    Raises ValueError unless three different lengths are within a frame and three above it: a line needs as many.
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


def measure_wire(place: Place, plan: WirePlan) -> list[Record]:
    """Exchange everything by every one of the topologies; all ranks return the same records."""
    records = []
    for topology in plan.topologies:
        for length in plan.lengths_bytes:
            message = Message(torch.zeros(length, dtype=torch.uint8), 8 * length)
            records.append({"kind": "line", **_exchanged(place, topology, message, plan)})
        for operator in plan.operators:
            key = Key(plan.seed, rank=place.rank)
            message = operator.encode(torch.from_numpy(normal(key.fold(SOURCE), plan.d)), key=key.fold(MESSAGE))
            measured = _exchanged(place, topology, message, plan)
            records.append({"kind": "operator", "operator": specification(operator), **measured})
    return records


def _exchanged(place: Place, topology: Topology, message: Message, plan: WirePlan) -> Record:
    """Bytes of all ranks together for one exchange, on average over the repeats."""
    topology.all_gather(message)  # connects whom it has to
    bits = [int(part) for part in gather_arrays(torch.tensor([message.bits]))]
    longest = (max(bits) + 7) // 8
    repeats = plan.repeats * (SHORT_FACTOR if longest <= plan.frame_bytes else 1)
    fence()
    before, streams = place.port.count(), place.streams.count()
    sent = sum(topology.all_gather(message)[1] for _ in range(repeats))
    fence()
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
    """What the connections of all ranks carried for one exchange, on average; None where one rank cannot tell."""
    numbers = (-1, -1, -1) if own is None else (own.sent_bytes, own.resent_bytes, own.resent_segments)
    table = torch.stack(gather_arrays(torch.tensor(numbers)))
    known = bool((table >= 0).all())
    sent, again, segments = (int(total) / repeats if known else None for total in table.sum(dim=0))
    return {"stream_bytes": sent, "resent_bytes": again or 0, "resent_segments": segments or 0}


def wire_rows(records: Sequence[Record]) -> Iterable[Comparison]:
    """Payload against its prediction (exact), and against what streams and interfaces may carry for it."""
    for record in records:
        if record["kind"] != "operator":
            continue
        payload = record["payload_bytes"]
        common = {"operator": record["operator"], "workload": f"{record['topology']}, m = {record['m']}"}
        yield Comparison(
            quantity="payload bytes of an exchange",
            measured=payload,
            interval=(payload, payload),
            bound=record["predicted_payload_bytes"],
            side="tight",
            verdict=exact_verdict(payload == record["predicted_payload_bytes"]),
            theorem="lengths of the messages alone",
            unit="byte",
            **common,
        )
        sent, messages = record.get("stream_bytes"), _messages(record)
        yield in_streams(payload, sent, messages, quantity="payload within the bytes of TCP streams", **common)
        quantity = "payload within the bytes of the interfaces"
        yield on_interface(payload, _on_interface(record), record["method"], quantity=quantity, **common)


def _messages(record: Record) -> float:
    """Of one exchange, and its share of the two barriers around all of them."""
    (topology,) = (topology for topology in TOPOLOGIES if topology.name == record["topology"])
    m, repeats = record["m"], record.get("repeats", 1)
    return topology.messages(m) + 2 * fence_messages(m) / repeats


def _on_interface(record: Record) -> Interval | None:
    if not record["own_network"] or record["interface_bytes"] is None:
        return None
    resent = StreamCount(0, record.get("resent_bytes", 0), record.get("resent_segments", 0))
    frame_bytes = record.get("frame_bytes", FRAME_BYTES)
    return payload_on_interface(record["interface_bytes"], _messages(record), frame_bytes, resent)


def fitted_line(records: Sequence[Record]) -> tuple[float, float] | None:
    """(a, b) of interface = a + b payload in bytes, by least squares of the relative errors; None without counters."""
    if any(record["interface_bytes"] is None or not record["own_network"] for record in records):
        return None
    x, y = ([float(record[name]) for record in records] for name in ("payload_bytes", "interface_bytes"))
    fit = delay_by_fenced_regression(x, y)  # the same line, with bytes in the place of seconds
    return fit.latency_s.value, fit.seconds_per_byte.value
