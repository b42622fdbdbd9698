"""Bytes and frames counted by the operating system on the interface that a rank talks through."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

COUNTERS = Path("/proc/self/net/dev")  # of the namespace that the reading process is in


@dataclass(frozen=True)
class Count:
    """What an interface has sent and received since it was made, in bytes of whole frames and in frames.

    A frame counts with its 14-byte Ethernet header, without checksum, preamble and gap.

    Parameters
    ----------
    sent_bytes : int, bytes
        >= 0.
    sent_frames : int
        >= 0.
    received_bytes : int, bytes
        >= 0.
    received_frames : int
        >= 0.
    """

    sent_bytes: int
    sent_frames: int
    received_bytes: int
    received_frames: int

    def __sub__(self, before: Count) -> Count:
        """Return what came in between."""
        return Count(
            self.sent_bytes - before.sent_bytes,
            self.sent_frames - before.sent_frames,
            self.received_bytes - before.received_bytes,
            self.received_frames - before.received_frames,
        )


def interface_count(interface: str = "lo") -> Count | None:
    """Return the counters of an interface in this process's namespace, or None where the system does not tell.

    Parameters
    ----------
    interface : str, optional
        Name of the network interface.
    """
    try:
        return parse_counters(COUNTERS.read_text(), interface)
    except OSError:
        return None


def parse_counters(text: str, interface: str) -> Count | None:
    """Return the counters of one interface in the format of /proc/net/dev, or None if it has no such line.

    Parameters
    ----------
    text : str
        The lines to read.
    interface : str
        Name of the network interface.
    """
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            column = [int(number) for number in numbers.split()]
            return Count(column[8], column[9], column[0], column[1])
    return None
