"""Addresses, veth pairs, a bridge and rate limits in the namespaces, by ``ip``, ``bridge`` and ``tc``.

Addresses and neighbours are static and IPv6 is off, so that all frames are caused by the ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .namespaces import Space, run_inside
from .shape import Shape

INTERFACE = "eth0"
ETHERNET_BYTES = 14
QUEUE_BYTES = 16 * 2**20  # queue of a rate limit; larger than TCP's data in flight, so that it never overflows
QUEUE_FRAMES = 10_000  # between the kernel and the switch
BURST_S = 1e-3  # largest burst of a link after a pause, in seconds at its rate
SETTINGS = {  # only frames of the ranks; the same speed after a pause and in every run
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    "net/ipv4/tcp_slow_start_after_idle": "0",
    "net/ipv4/tcp_no_metrics_save": "1",
}


def address(rank: int) -> str:
    """Return the IPv4 address of a rank, which exists only inside the namespaces."""
    return f"10.83.{(rank + 1) >> 8}.{(rank + 1) & 255}"


def hardware_address(rank: int) -> str:
    """Return the Ethernet address of a rank; its last two bytes are the rank."""
    return f"02:72:64:00:{rank >> 8:02x}:{rank & 255:02x}"


def make_bridge(hub: Space, ranks: Sequence[Space], shape: Shape) -> None:
    """Connect the ranks' namespaces by veth pairs and a bridge in the hub; limit the rate towards each rank."""
    _settings(hub)
    lines = ["link add name bridge type bridge stp_state 0 mcast_snooping 0", "link set dev bridge addrgenmode none up"]
    for rank, space in enumerate(ranks):
        peer = f"peer name {INTERFACE} mtu {shape.mtu} netns /proc/self/fd/{space.net}"
        lines.append(f"link add name port{rank} mtu {shape.mtu} type veth {peer}")
        lines.append(f"link set dev port{rank} addrgenmode none master bridge up")
    _batch("ip", hub, lines, others=ranks)
    entries = [f"fdb replace {hardware_address(rank)} dev port{rank} master static" for rank in range(len(ranks))]
    _batch("bridge", hub, entries)  # otherwise the bridge floods frames to unknown addresses
    if shape.rate_bit_per_s is not None:
        _batch("tc", hub, [_limit(f"port{rank}", shape) for rank in range(len(ranks))])


def set_up_rank(space: Space, rank: int, size: int, shape: Shape) -> None:
    """Bring up the existing interface of a rank; limit its sending rate."""
    _settings(space)
    lines = [
        "link set dev lo up",
        f"link set dev {INTERFACE} address {hardware_address(rank)} mtu {shape.mtu} addrgenmode none",
        f"link set dev {INTERFACE} gso_max_segs 1 txqueuelen {QUEUE_FRAMES} up",  # 1: count every frame
        f"address add {address(rank)}/16 dev {INTERFACE}",
    ]
    for other in (r for r in range(size) if r != rank):
        lines.append(f"neigh add {address(other)} lladdr {hardware_address(other)} dev {INTERFACE} nud permanent")
    _batch("ip", space, lines)
    if shape.rate_bit_per_s is not None:
        _batch("tc", space, [_limit(INTERFACE, shape)])


def _settings(space: Space) -> None:
    """Write the kernel settings that exist (a kernel without IPv6 has fewer)."""
    files = {Path("/proc/sys") / name: value for name, value in SETTINGS.items()}
    script = " && ".join(f"{{ [ ! -e {file} ] || echo {value} > {file}; }}" for file, value in files.items())
    run_inside(space, ["sh", "-c", script], what="kernel settings")


def _limit(device: str, shape: Shape) -> str:
    assert shape.rate_bit_per_s is not None  # checked by the callers
    burst = max(2 * (shape.mtu + ETHERNET_BYTES), round(shape.rate_bit_per_s / 8 * BURST_S))
    return f"qdisc add dev {device} root tbf rate {shape.rate_bit_per_s:.0f}bit burst {burst} limit {QUEUE_BYTES}"


def _batch(program: str, space: Space, lines: Sequence[str], others: Sequence[Space] = ()) -> None:
    run_inside(space, [program, "-batch", "-"], text="\n".join(lines) + "\n", others=others)
