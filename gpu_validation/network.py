"""Bytes counted by the operating system on the interface that the ranks talk through."""

from __future__ import annotations

from pathlib import Path

COUNTERS = Path("/proc/self/net/dev")
METHOD = "loopback counter of /proc/self/net/dev (headers, acknowledgements and other programs included)"


def transmitted_bytes(interface: str = "lo") -> int | None:
    """Bytes sent on an interface since boot, or None where the system does not tell."""
    try:
        lines = COUNTERS.read_text().splitlines()
    except OSError:
        return None
    for line in lines[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            return int(numbers.split()[8])
    return None
