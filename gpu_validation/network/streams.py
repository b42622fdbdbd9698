"""Bytes of this process's TCP streams, counted by the kernel without privileges."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DESCRIPTORS = Path("/proc/self/fd")
TCP_INFO_BYTES = 216  # size in linux/tcp.h, up to tcpi_bytes_retrans (Linux 4.19)
STATE, ESTABLISHED = 0, 1
RESENT_SEGMENTS, SENT_BYTES, RESENT_BYTES = 100, 200, 208  # offsets


@dataclass(frozen=True)
class StreamCount:
    """Bytes that TCP has sent so far, without headers.

    Parameters
    ----------
    sent_bytes : int, bytes, optional
        Bytes of the streams, each counted once.
    resent_bytes : int, bytes, optional
        Retransmitted bytes, >= 0.
    resent_segments : int, optional
        Retransmitted segments, >= 0.
    """

    sent_bytes: int = 0
    resent_bytes: int = 0
    resent_segments: int = 0

    def __add__(self, other: StreamCount) -> StreamCount:
        """Return the sum of two counts."""
        return StreamCount(
            self.sent_bytes + other.sent_bytes,
            self.resent_bytes + other.resent_bytes,
            self.resent_segments + other.resent_segments,
        )

    def __sub__(self, before: StreamCount) -> StreamCount:
        """Return the difference of two counts."""
        return StreamCount(
            self.sent_bytes - before.sent_bytes,
            self.resent_bytes - before.resent_bytes,
            self.resent_segments - before.resent_segments,
        )


@dataclass(frozen=True)
class Streams:
    """TCP connections of this process.

    Parameters
    ----------
    inherited : frozenset of int, optional
        Inodes of the connections that it shares with its parent and that are ignored.
    """

    inherited: frozenset[int] = frozenset()

    @classmethod
    def from_now(cls) -> Streams:
        """Return the connections that will be opened from now on."""
        return cls(frozenset(inode for _, inode in _sockets()))

    def count(self) -> StreamCount | None:
        """Sum over the established connections; None if the system does not count them."""
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
    """Yield (descriptor, inode) of every open socket; none without /proc."""
    descriptors = [int(name) for name in os.listdir(DESCRIPTORS)] if DESCRIPTORS.exists() else []
    for descriptor in descriptors:
        try:
            status = os.fstat(descriptor)
        except OSError:  # closed in the meantime, such as the descriptor of the listing
            continue
        if stat.S_ISSOCK(status.st_mode):
            yield descriptor, status.st_ino


def _tcp_info(descriptor: int) -> bytes | None:
    """Return the kernel's structure of a TCP socket; empty for other sockets, None if it is too short."""
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.type != socket.SOCK_STREAM:
            return b""
        try:
            info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
        except OSError:
            return None
    return info if len(info) == TCP_INFO_BYTES else None
