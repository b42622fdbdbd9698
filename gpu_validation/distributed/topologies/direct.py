"""Direct exchange: headers by all-gather, bodies by one all-to-all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from operators import Message

from ..collectives import ProcessTransport
from ..message_counts import averaging_messages
from .topology import Topology, framed_bytes


@dataclass(frozen=True)
class Direct(Topology):
    """Topology of ``ProcessTransport``: every rank sends header and body to every other rank."""

    name = "direct"

    def all_gather(self, message: Message) -> tuple[list[Message], int]:
        """Exchange by one all-gather and one all-to-all."""
        transport = ProcessTransport()
        messages = transport.all_gather(message)
        return messages, transport.payload_bytes

    def payload_bytes(self, bits: Sequence[int], rank: int) -> int:
        """Return (m - 1) times the rank's framed message."""
        return (len(bits) - 1) * framed_bytes(bits[rank])

    def messages(self, size: int) -> int:
        """Return the number of messages with gloo: headers in two halves around a ring, bodies to every rank."""
        return averaging_messages(size)
