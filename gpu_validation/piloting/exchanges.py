"""Time of whole averagings by the ranks of a group: encode, send by the transport of PeriodicAveraging, decode.

Averagings follow one another after pauses as long as a training step.  The measured times therefore include that ranks
leave one averaging, and reach the next, at different times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from bounds.claims import Unbiased
from operators import Key, Operator, specification
from operators.exchange import TwoShot
from operators.exchange.choice import lengths
from ratedist.pilots.timings import ExchangeTimings

from ..processes.collectives import ProcessTransport
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
