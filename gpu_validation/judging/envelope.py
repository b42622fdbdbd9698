"""Interval of payloads for the bytes on the wire, from the formats alone, without fitted numbers.

gloo sends one message as three pieces of a TCP stream: the sender's notice, the receiver's notice, and the message.
Each piece begins with a preamble of six 8-byte words (gloo/transport/tcp/pair.h, struct Op).  TCP splits the stream
into segments of at most ``frame_bytes``, each with at most one acknowledgement (RFC 5681, 4.2).  Segments and
acknowledgements have headers of Ethernet, IPv4 (RFC 791), TCP (RFC 9293) and its time stamps (RFC 7323).  Connections
are opened before bytes are counted.  For a payload P in n messages ::

    P <= bytes of the streams <= P + 144 n,
    P (1 + 66/frame) <= bytes of the interface <= (P + 144 n) (1 + 132/frame) + 396 n + retransmitted bytes.

396 n stands for the last, partly filled segment of each of the 3 n pieces.  Solved for P, a count gives an interval of
payloads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..network.streams import StreamCount
from .comparisons import unknown_row
from .intervals import Interval
from .verdict import MARGIN, Comparison, Verdict, tight_verdict

PREAMBLE_BYTES = 6 * 8
PIECES = 3  # notice to send, notice to receive, message
ETHERNET_BYTES, IP_BYTES, TCP_BYTES, TIME_STAMP_BYTES = 14, 20, 20, 12
HEADERS_BYTES = ETHERNET_BYTES + IP_BYTES + TCP_BYTES + TIME_STAMP_BYTES
NOTHING = StreamCount()
SELECTIVE_BYTES = 40  # largest options of an acknowledgement after a loss (RFC 2018)


def payload_in_streams(sent_bytes: float, messages: float) -> Interval:
    """Return the interval of payloads for which TCP streams may carry this many bytes.

    ``sent_bytes`` counts each byte of all streams once; ``messages`` are those of all ranks.
    """
    return sent_bytes - PIECES * PREAMBLE_BYTES * messages, sent_bytes


def payload_on_interface(
    counted_bytes: float, messages: float, frame_bytes: int, resent: StreamCount = NOTHING
) -> Interval:
    """Return the interval of payloads for which the interfaces may count this many bytes of whole frames.

    ``frame_bytes`` is the payload of one frame, 1448 at an MTU of 1500.  ``resent`` is what TCP has retransmitted.
    """
    headers = HEADERS_BYTES / frame_bytes
    again = resent.resent_bytes + (2 * HEADERS_BYTES + SELECTIVE_BYTES) * resent.resent_segments
    partly_filled = 2 * HEADERS_BYTES * PIECES * messages
    least = (counted_bytes - again - partly_filled) / (1 + 2 * headers) - PIECES * PREAMBLE_BYTES * messages
    return least, counted_bytes / (1 + headers)


def in_streams(
    payload_bytes: float, sent_bytes: float | None, messages: float, *, repeats: int = 1, **about: Any
) -> Comparison:
    """Compare a payload with the bytes that TCP streams carried; ``sent_bytes`` is None if they were not counted.

    The streams carry the payload and whole preambles, exactly.  All three numbers are means over ``repeats`` exchanges.
    """
    reason = "the system does not count the bytes of this transport's connections"
    interval = None if sent_bytes is None else payload_in_streams(sent_bytes, messages)
    row = _row(payload_bytes, interval, reason, theorem="format of gloo", **about)
    if sent_bytes is None or _is_whole(preambles := (sent_bytes - payload_bytes) * repeats / PREAMBLE_BYTES, messages):
        return row
    words = f"the streams must carry the payload and whole preambles of {PREAMBLE_BYTES} bytes; got {preambles:.6g}"
    return replace(row, verdict=Verdict.VIOLATED, reason=words)


def _is_whole(preambles: float, messages: float) -> bool:
    return preambles >= 0 and abs(preambles - round(preambles)) < 1e-6 * max(1.0, messages)


def on_interface(payload_bytes: float, interval: Interval | None, method: str, **about: Any) -> Comparison:
    """Compare a payload with the frames of the ranks' own interfaces.

    ``interval`` is that of ``payload_on_interface``, None without counters.  ``method`` describes the counter.
    """
    reason = f"the ranks have no counters of their own: {method}"
    return _row(payload_bytes, interval, reason, theorem=f"formats of gloo, TCP, IP and Ethernet; {method}", **about)


def _row(payload: float, interval: Interval | None, unknown: str, **about: Any) -> Comparison:
    if interval is None:
        return unknown_row(unknown, bound=payload, unit="byte", decides=False, **about)
    verdict = tight_verdict(interval, payload, MARGIN * payload)
    reason = ""
    if verdict is Verdict.INCONCLUSIVE:
        reason = "the transport's own bytes may exceed the margin at such a short payload"
    about |= {"verdict": verdict, "reason": reason, "side": "tight", "unit": "byte"}
    return Comparison(measured=interval[1], interval=interval, bound=payload, **about)
