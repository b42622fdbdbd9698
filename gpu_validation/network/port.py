"""Network interface of a rank, its namespace, and its counters in the operating system."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .namespaces import Space, enter

COUNTERS = Path("/proc/self/net/dev")  # counters of the reading process's namespace


@dataclass(frozen=True)
class Count:
    """Bytes and frames that an interface has sent and received since it was created.

    A frame counts with its 14-byte Ethernet header, without checksum, preamble and gap.

    Parameters
    ----------
    sent_bytes : int, bytes
        Bytes sent, >= 0.
    sent_frames : int
        Frames sent, >= 0.
    received_bytes : int, bytes
        Bytes received, >= 0.
    received_frames : int
        Frames received, >= 0.
    """

    sent_bytes: int
    sent_frames: int
    received_bytes: int
    received_frames: int

    def __sub__(self, before: Count) -> Count:
        """Return the difference of two counts."""
        return Count(
            self.sent_bytes - before.sent_bytes,
            self.sent_frames - before.sent_frames,
            self.received_bytes - before.received_bytes,
            self.received_frames - before.received_frames,
        )


def interface_count(interface: str = "lo") -> Count | None:
    """Return the counters of an interface in this process's namespace, or None if the system has none.

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
    """Return the counters of one interface in the format of /proc/net/dev, or None without such a line.

    Parameters
    ----------
    text : str
        Content of /proc/net/dev.
    interface : str
        Name of the network interface.
    """
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            column = [int(number) for number in numbers.split()]
            return Count(column[8], column[9], column[0], column[1])
    return None


@dataclass(frozen=True)
class Port:
    """Network interface of one rank.

    Parameters
    ----------
    interface : str
        Name, for GLOO_SOCKET_IFNAME.
    method : str
        Description of the network and of its counters.
    shared : bool
        Whether one counter sees the traffic of all ranks (loopback).
    space : Space or None, optional
        Namespace to enter; None to stay.
    """

    interface: str
    method: str
    shared: bool
    space: Space | None = None

    def enter(self) -> None:
        """Move this process into the port's namespace; it must have a single thread.

        Raises
        ------
        OSError
            If the kernel refuses.
        """
        if self.space is not None:
            enter(self.space)

    def count(self) -> Count | None:
        """Return the counters of the interface; call it after ``enter``."""
        return interface_count(self.interface)


LOOPBACK = Port("lo", "loopback counter, no shaping (headers, acknowledgements and other programs included)", True)
