"""Comparison of the bytes of an exchange with their prediction, and with the bytes of streams and interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from bounds.estimate import delay_by_fenced_regression

from ..distributed.message_counts import barrier_messages
from ..distributed.topologies import TOPOLOGIES
from ..network.streams import StreamCount
from ..records.storage import Record
from .envelope import in_streams, on_interface, payload_on_interface
from .intervals import Interval
from .judge import rows_of
from .verdict import Comparison, exact_verdict

FRAME_BYTES = 1448  # stream bytes of one frame at an MTU of 1500


def wire_rows(records: Sequence[Record]) -> Iterable[Comparison]:
    """Return rows for payload against its exact prediction, and against the bytes of streams and interfaces."""
    for record in records:
        if record.get("kind", "operator") == "operator":
            operator, topology, m = (record.get(name, "unknown") for name in ("operator", "topology", "m"))
            where: dict[str, Any] = {"operator": str(operator), "workload": f"{topology}, m = {m}"}
            yield from rows_of(partial(_rows, record, where), "payload bytes of an exchange", **where)


def _rows(record: Record, where: dict[str, Any]) -> Iterable[Comparison]:
    payload, predicted = int(record["payload_bytes"]), int(record["predicted_payload_bytes"])
    yield Comparison(
        quantity="payload bytes of an exchange",
        measured=payload,
        interval=(payload, payload),
        bound=predicted,
        side="tight",
        verdict=exact_verdict(payload == predicted),
        theorem="lengths of the messages alone",
        unit="byte",
        **where,
    )
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
