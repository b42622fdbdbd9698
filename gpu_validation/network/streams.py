"""Bytes that this process has put into its TCP streams, as the kernel counts them: no privileges, no other programs."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")
TCP_INFO_BYTES = 216  # of linux/tcp.h, up to tcpi_bytes_retrans (Linux 4.19)
STATE, ESTABLISHED = 0, 1
RESENT_SEGMENTS, SENT_BYTES, RESENT_BYTES = 100, 200, 208  # where they stand in it


@dataclass(frozen=True)
class StreamCount:
    """What TCP has sent so far, without its headers.

    Parameters
    ----------
    sent_bytes : int, bytes, optional
        Of the streams, each counted once.
    resent_bytes : int, bytes, optional
        Bytes that were sent again, for they were lost or late; >= 0.
    resent_segments : int, optional
        Segments that were sent again; >= 0.
    """

    sent_bytes: int = 0
    resent_bytes: int = 0
    resent_segments: int = 0

    def __add__(self, other: StreamCount) -> StreamCount:
        """Return both together."""
        return StreamCount(
            self.sent_bytes + other.sent_bytes,
            self.resent_bytes + other.resent_bytes,
            self.resent_segments + other.resent_segments,
        )

    def __sub__(self, before: StreamCount) -> StreamCount:
        """Return what came in between."""
        return StreamCount(
            self.sent_bytes - before.sent_bytes,
            self.resent_bytes - before.resent_bytes,
            self.resent_segments - before.resent_segments,
        )


@dataclass(frozen=True)
class Streams:
    """The TCP connections of this process.

    Parameters
    ----------
    inherited : frozenset of int, optional
        The numbers (inodes) of those that it shares with its parent and that are not looked at.
    """

    inherited: frozenset[int] = frozenset()

    @classmethod
    def from_now(cls) -> Streams:
        """Return those that are opened from now on."""
        return cls(frozenset(inode for _, inode in _sockets()))

    def count(self) -> StreamCount | None:
        """Sum over the established connections; None where the system does not tell."""
        if not DESCRIPTORS.exists() or not hasattr(socket, "TCP_INFO"):
            return None
        total = StreamCount()
        for descriptor, inode in _sockets():
            if inode in self.inherited:
                continue
            info = _tcp_info(descriptor)
            if info is None:
                return None
            if info and info[STATE] == ESTABLISHED:
                (segments,) = struct.unpack_from("=I", info, RESENT_SEGMENTS)
                sent, again = (struct.unpack_from("=Q", info, place)[0] for place in (SENT_BYTES, RESENT_BYTES))
                total += StreamCount(sent - again, again, segments)
        return total


def _sockets() -> Iterator[tuple[int, int]]:
    """Return (descriptor, inode) of every open socket; none where there is no /proc."""
    descriptors = [int(name) for name in os.listdir(DESCRIPTORS)] if DESCRIPTORS.exists() else []
    for descriptor in descriptors:
        try:
            status = os.fstat(descriptor)
        except OSError:  # closed meanwhile, as that of the listing is
            continue
        if stat.S_ISSOCK(status.st_mode):
            yield descriptor, status.st_ino


def _tcp_info(descriptor: int) -> bytes | None:
    """Return the kernel's structure of a TCP socket; empty for another kind of socket, None where it is too short."""
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.type != socket.SOCK_STREAM:
            return b""
        try:
            info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        except OSError:
            return None
    return info if len(info) == TCP_INFO_BYTES else None
