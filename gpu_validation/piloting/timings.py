"""Times between the ranks of a group: averagings, coding by all ranks at once, and all-reduces by their bytes.

Averagings encode, send by the transport of PeriodicAveraging and decode.  They follow one another after pauses as long
as a training step.  The measured times therefore include that ranks leave one averaging, and reach the next, at
different times.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
import torch.distributed as dist

from bounds.claims import Unbiased
from operators import Key, Operator, specification
from operators.exchange import TwoShot
from operators.exchange.choice import lengths
from ratedist.cluster.codec import measure_codec
from ratedist.pilots.timings import ALL, BETWEEN, INSIDE, Codec, ExchangeTimings, LinkTimings

from ..processes.collectives import ProcessTransport
from ..processes.tensors import wait_for
from ..processes.vectors import SETTLED

ROUNDS = 12
WARM_UP = 2
LONGEST_PAUSE_S = 0.1


def timed_exchanges(
    operators: Sequence[Operator], vector: torch.Tensor, group: dist.ProcessGroup | None, *, pause_s: float, key: Key
) -> tuple[ExchangeTimings, ...]:
    """Return the times of uncompressed means and of every operator's exchanges; every rank must call it.

    Operators are gathered and, if unbiased, also averaged in two shots.  ``vector`` is float32 of shape (d,).
    ``pause_s`` seconds lie between two averagings, the same on all ranks.
    """
    transport, d = ProcessTransport(group=group), vector.numel()
    members = range(transport.size)
    pause_s = min(pause_s, LONGEST_PAUSE_S)

    def dense(step: int) -> None:
        transport.means([vector.clone()], members)

    timings = [ExchangeTimings("", "sum", _cycles(dense, pause_s, group, warm_up=SETTLED))]
    for operator in operators:
        name = specification(operator)
        timings.append(
            ExchangeTimings(name, "gather", _cycles(_gathered(operator, vector, transport, key), pause_s, group))
        )
        if isinstance(operator.claim(d), Unbiased) and d >= transport.size:
            shots = _in_two_shots(operator, vector, transport, key)
            timings.append(ExchangeTimings(name, "two_shot", _cycles(shots, pause_s, group)))
    return tuple(timings)


def _gathered(operator: Operator, vector: torch.Tensor, transport: ProcessTransport, key: Key) -> Callable[[int], None]:
    d = vector.numel()
    exact = _declared(operator, [d] * transport.size)

    def averaged(step: int) -> None:
        keys = key.of_ranks(range(transport.size), step=step)
        message = operator.encode(vector, key=keys[transport.rank])
        messages = transport.gather([message], position=step, exact=exact)
        total = torch.zeros(d, dtype=torch.float64, device=vector.device)
        for rank, each in messages.items():
            total += operator.decode(each, d=d, key=keys[rank])

    return averaged


def _in_two_shots(
    operator: Operator, vector: torch.Tensor, transport: ProcessTransport, key: Key
) -> Callable[[int], None]:
    rank, m, d = transport.rank, transport.size, vector.numel()
    ends = TwoShot(operator, operator, key.shared(), rank=rank, m=m, d=d, reads_own=True)
    exact = _declared(operator, lengths(d, m))

    def averaged(step: int) -> None:
        sent = ends.encode(vector, step)
        (arrived,), _ = transport.scatter([sent], position=step, exact=exact)
        owned = ends.merge(arrived, range(m), step)
        owners = transport.gather([owned], position=step, exact=exact)
        ends.mean([owners[owner] for owner in range(m)], step)
        ends.own(sent, step)

    return averaged


def _declared(operator: Operator, sizes: Sequence[int]) -> list[int] | None:
    """Return the lengths of messages if all are declared exactly; one collective then sends them."""
    declared = [operator.bits(d).exact if d else 0 for d in sizes]
    exact = [bits for bits in declared if bits is not None]
    return exact if len(exact) == len(declared) else None


def _cycles(
    averaged: Callable[[int], None], pause_s: float, group: dist.ProcessGroup | None, warm_up: int = WARM_UP
) -> tuple[float, ...]:
    """Return the time of each averaging between two pauses, by this rank's clock."""
    seconds = []
    dist.barrier(group)
    begun = time.perf_counter()
    for step in range(warm_up + ROUNDS):
        time.sleep(max(0.0, begun + pause_s - time.perf_counter()))
        averaged(step)
        ended = time.perf_counter()
        seconds.append(ended - begun - pause_s)
        begun = ended
    return tuple(seconds[warm_up:])


WINDOW_S = 0.02
WINDOWS = 5
LEAST_S = 1e-9


def codec_of_ranks(
    operator: Operator, gradient: torch.Tensor, *, device: str, group: dist.ProcessGroup | None
) -> Codec:
    """Return the encoding and decoding time of a gradient; every rank must call it.

    ``gradient`` is float32 of shape (d,), of which 2^20 coordinates are used.

    Notes
    -----
    A single rank is measured by ``measure_codec``, in processor time.  Ranks on one machine compete for its processors,
    which processor time does not show.  Therefore all ranks code at once, and the slowest rank counts, as in an
    averaging.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size(group) == 1:
        return measure_codec(operator, d=gradient.numel(), device=device)
    seconds_of = partial(_slowest_s, device=gradient.device, group=group)
    codec = measure_codec(operator, device=device, x=gradient, seconds_of=seconds_of)
    return replace(codec, source=f"{codec.source}, {dist.get_world_size(group)} ranks at once")


def _slowest_s(call: Callable[[], object], device: torch.device, group: dist.ProcessGroup | None) -> float:
    """Return the time of a call on all ranks until the last one has finished; the median of some windows."""
    call()
    once_s = _until_all_s(call, 1, device, group)
    runs = max(1, math.ceil(WINDOW_S / once_s))
    windows_s = torch.tensor([_until_all_s(call, runs, device, group) for _ in range(WINDOWS)])
    return float(windows_s.median()) / runs


def _until_all_s(call: Callable[[], object], runs: int, device: torch.device, group: dist.ProcessGroup | None) -> float:
    """Return the slowest rank's time since the common start."""
    wait_for(device)
    dist.barrier(group)
    begun = time.perf_counter()
    for _ in range(runs):
        call()
    wait_for(device)
    dist.barrier(group)  # ranks may share a processor: wait until the work of all of them is done
    elapsed_s = torch.tensor([time.perf_counter() - begun], device=device, dtype=torch.float64)
    dist.all_reduce(elapsed_s, dist.ReduceOp.MAX, group)
    return max(float(elapsed_s), LEAST_S)


LEAST_BYTES = 1 << 12
FACTOR = 4
SUMS = 5
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
        for i in range(SUMS + 1):  # the first warms up
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
    wait_for(vector.device)
    begun = time.perf_counter()
    dist.all_reduce(vector, group=team)
    wait_for(vector.device)
    return time.perf_counter() - begun
