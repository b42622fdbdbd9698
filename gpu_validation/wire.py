"""What a message costs on the wire: payload bytes as predicted, and the frames that the interface counts for them.

The interface sends more than the payload: headers of frames, acknowledgements, and what the transport says to itself.
On a network of our own this is nearly a line, interface = a + b payload, for every topology: one for messages that fit
into one frame (b is about 1), one for longer ones, since headers come by the frame.  Both are fitted to messages of
chosen lengths, and the operators' messages are held against them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bounds.estimate import delay_by_fenced_regression
from operators import Key, Message, Operator, specification
from operators.random import normal

from .cell import interface_bytes
from .exchange import fence, gather_arrays
from .launch import Place
from .records import Comparison, Verdict
from .topologies import TOPOLOGIES, Topology

SOURCE, MESSAGE = 2, 1  # folds of the key
LONG_MESSAGE_BYTES = 400_000
LONG_TOLERANCE = 0.10  # of the payload, for long messages
LINE_TOLERANCE = 0.03  # of the fitted line, for all
SHORT_FACTOR = 5  # one acknowledgement more or less is much beside a short message: average over more exchanges

Record = dict[str, Any]


@dataclass(frozen=True)
class WirePlan:
    """What is sent: the messages of operators for d coordinates, and bare messages of chosen lengths.

    frame_bytes : of payload in one frame, 1448 at an MTU of 1500.  repeats : how often each is exchanged, SHORT_FACTOR
    times as often within one frame; the counters are read around all of them.  topologies : by which it is sent.
    Raises ValueError unless three different lengths are within a frame and three above it: a line needs as many.
    """

    operators: tuple[Operator, ...]
    d: int
    lengths_bytes: tuple[int, ...]
    repeats: int
    frame_bytes: int = 1448
    topologies: tuple[Topology, ...] = TOPOLOGIES

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
            key = Key(0, rank=place.rank)
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
    before = place.port.count()
    sent = sum(topology.all_gather(message)[1] for _ in range(repeats))
    fence()
    after = place.port.count()
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
        "method": place.port.method,
        "scheduling": place.scheduling,
        "own_network": not place.port.shared,
    }


def wire_rows(records: Sequence[Record]) -> Iterable[Comparison]:
    """Payload against its prediction (exact), the interface above it, and the interface against the fitted line."""
    lines = {key: fitted_line(group) for key, group in _grouped(records, "line").items()}
    for record in records:
        if record["kind"] != "operator":
            continue
        common = {
            "operator": record["operator"],
            "workload": f"{record['topology']}, m = {record['m']}",
            "unit": "byte",
        }
        payload, counted = record["payload_bytes"], record["interface_bytes"]
        yield Comparison(
            quantity="payload bytes of an exchange",
            measured=payload,
            interval=(payload, payload),
            bound=record["predicted_payload_bytes"],
            side="tight",
            verdict=Verdict.HOLDS if payload == record["predicted_payload_bytes"] else Verdict.VIOLATED,
            theorem="lengths of the messages alone",
            **common,
        )
        if not record["own_network"] or counted is None:
            yield _uncounted(record, common)
            continue
        yield Comparison(
            quantity="interface bytes above the payload",
            measured=counted,
            interval=(counted, counted),
            bound=payload,
            side="lower",
            verdict=Verdict.HOLDS if counted >= payload else Verdict.VIOLATED,
            theorem=record["method"],
            **common,
        )
        yield _against_the_line(record, lines.get(_line_of(record)), common)


def fitted_line(records: Sequence[Record]) -> tuple[float, float] | None:
    """(a, b) of interface = a + b payload in bytes, by least squares of the relative errors; None without counters."""
    if any(record["interface_bytes"] is None or not record["own_network"] for record in records):
        return None
    x, y = ([float(record[name]) for record in records] for name in ("payload_bytes", "interface_bytes"))
    fit = delay_by_fenced_regression(x, y)  # the same line, with bytes in the place of seconds
    return fit.latency_s.value, fit.seconds_per_byte.value


def _line_of(record: Record) -> tuple[str, int, bool]:
    return record["topology"], record["m"], record["one_frame"]


def _grouped(records: Sequence[Record], kind: str) -> dict[tuple[str, int, bool], list[Record]]:
    groups: dict[tuple[str, int, bool], list[Record]] = {}
    for record in records:
        if record["kind"] == kind:
            groups.setdefault(_line_of(record), []).append(record)
    return groups


def _uncounted(record: Record, common: dict[str, Any]) -> Comparison:
    counted = record["interface_bytes"]
    return Comparison(
        quantity="interface bytes of an exchange",
        measured=float("nan") if counted is None else counted,
        interval=(float("-inf"), float("inf")),
        bound=record["payload_bytes"],
        side="lower",
        verdict=Verdict.OUT_OF_SCOPE,
        reason=f"no counter of the ranks' own: {record['method']}",
        decides=False,
        **common,
    )


def _against_the_line(record: Record, line: tuple[float, float] | None, common: dict[str, Any]) -> Comparison:
    payload, counted = record["payload_bytes"], record["interface_bytes"]
    bound = None if line is None else line[0] + line[1] * payload
    away = float("inf") if bound is None else abs(counted / bound - 1)
    is_long = record["longest_bytes"] >= LONG_MESSAGE_BYTES
    holds = away <= LINE_TOLERANCE or (is_long and counted / payload - 1 <= LONG_TOLERANCE)
    reason = "" if holds else f"{away:.1%} from the line a + b payload; acknowledgements vary on a busy machine"
    return Comparison(
        quantity="interface bytes against a + b payload",
        measured=counted,
        interval=(counted, counted),
        bound=bound,
        side="tight",
        verdict=Verdict.HOLDS if holds else Verdict.INCONCLUSIVE,
        reason=reason,
        theorem=record["method"],
        decides=False,
        **common,
    )
