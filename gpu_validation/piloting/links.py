"""Time of all-reduces over a process group as a function of their bytes, also inside and between nodes."""

from __future__ import annotations

import time

import torch
import torch.distributed as dist

from ratedist.pilots.timings import ALL, BETWEEN, INSIDE, LinkTimings

LEAST_BYTES = 1 << 12
FACTOR = 4
ROUNDS = 5
FLOAT_BYTES = 4
GLOO_THREADS = 2  # default of a gloo process group


def timed_links(
    group: dist.ProcessGroup | None, device: torch.device, *, ranks_per_node: int, most_bytes: int
) -> tuple[LinkTimings, ...]:
    """Return the times of all-reduces over all ranks, and on both levels of nodes; every rank must call it.

    Vectors have 4 KiB to ``most_bytes`` bytes.  ``ranks_per_node`` consecutive ranks share a node; 1 means no levels.

    Raises
    ------
    ValueError
        Unless ranks_per_node divides the number of ranks.
    """
    ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
    size, place = len(ranks), ranks.index(dist.get_rank())
    if ranks_per_node < 1 or size % ranks_per_node:
        raise ValueError(
            f"ranks_per_node must divide the number of ranks; got {ranks_per_node}, {size} ranks: leave it out, or "
            "start as many ranks on every node"
        )
    levels = {ALL: [ranks]}
    if 1 < ranks_per_node < size:
        levels[INSIDE] = [ranks[i : i + ranks_per_node] for i in range(0, size, ranks_per_node)]
        levels[BETWEEN] = [ranks[0::ranks_per_node]]  # one rank of each node; the others send nothing
    timings = []
    for level, teams in levels.items():
        groups = [(team, dist.new_group(team)) for team in teams]  # by all ranks, in the same order
        own_team = next((team for team in groups if ranks[place] in team[0]), None)
        payload_bytes, seconds = _timed(own_team, device, most_bytes, group)
        timings.append(LinkTimings(level, len(teams[0]), tuple(payload_bytes), tuple(seconds)))
        if own_team is not None:
            dist.destroy_process_group(own_team[1])
    return tuple(timings)


def sums_at_once(group: dist.ProcessGroup | None, device: torch.device) -> int:
    """Return the number of all-reduces that a process group runs concurrently."""
    return GLOO_THREADS if f"{device.type}:gloo" in dist.get_backend_config(group) else 1


def _timed(
    own_team: tuple[list[int], dist.ProcessGroup] | None,
    device: torch.device,
    most_bytes: int,
    group: dist.ProcessGroup | None,
) -> tuple[list[int], list[float]]:
    """Return the lengths in bytes, and the slowest rank's seconds for each."""
    payload_bytes: list[int] = []
    mean_s: list[float] = []
    length = LEAST_BYTES
    while length <= max(most_bytes, LEAST_BYTES * FACTOR):
        vector = torch.zeros(length // FLOAT_BYTES, device=device)
        for i in range(ROUNDS + 1):  # the first warms up
            elapsed_s = torch.zeros(1, device=device, dtype=torch.float64)
            dist.barrier(group)
            if own_team is not None:
                elapsed_s += _seconds_of_sum(vector, own_team[1])
            dist.all_reduce(elapsed_s, dist.ReduceOp.MAX, group)
            if i:
                payload_bytes.append(length)
                mean_s.append(float(elapsed_s))
        length *= FACTOR
    return payload_bytes, mean_s


def _seconds_of_sum(vector: torch.Tensor, team: dist.ProcessGroup) -> float:
    """Return the time of one all-reduce since the barrier before it."""
    _wait(vector.device)
    begun = time.perf_counter()
    dist.all_reduce(vector, group=team)
    _wait(vector.device)
    return time.perf_counter() - begun


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
