"""Exchange of whole vectors in a process group: means, neighbours' vectors, and rows of numbers.

Shards are exchanged between all pairs of ranks in one of several ways.  Each is timed at first, then the fastest is
used.  The fastest way depends on the link.  In shared memory a message costs processor time, and sending all at once
needs the fewest.  On links with their own rate, sending all at once lets several ranks send to the same one while
others wait.  In step every rank receives from one and sends to one at a time; pieces keep the links busy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, zip_longest

import torch
import torch.distributed as dist

from operators.ddp.collectives import settle_when_destroyed
from operators.ddp.failures import Spare, marks_failure

from .reduction import fold, precision

AT_ONCE = 0  # other numbers: pieces of a shard, sent in step
PIECE_BYTES = (128 << 10, 1 << 20)  # smallest useful pieces, on links with their own rate and in memory
MOST_PIECES = 8
TRIALS = 3  # per way; the fastest one counts
SETTLED = TRIALS * (1 + len(PIECE_BYTES))  # averagings of one length after which the way is fixed


def ways_for(shard_bytes: int) -> tuple[int, ...]:
    """Return the candidates for shards of this length in bytes."""
    cut = {max(1, min(MOST_PIECES, shard_bytes // piece_bytes)) for piece_bytes in PIECE_BYTES}
    return (AT_ONCE, *sorted(cut))


class Trial:
    """Trial of ways in turn; then all ranks use the one with the smallest sum of seconds over ranks.

    Attributes
    ----------
    best_s : list of float, seconds
        Shortest time of this rank by each way.
    """

    def __init__(self, ways: Sequence[int]) -> None:
        self._ways = tuple(ways)
        self._tried, self._chosen = 0, 0 if len(ways) == 1 else None
        self.best_s = [math.inf] * len(ways)

    @property
    def way(self) -> int:
        """The way that all ranks use now."""
        return self._ways[self._turn if self._chosen is None else self._chosen]

    @property
    def _turn(self) -> int:
        return self._tried % len(self._ways)

    @property
    def settled(self) -> bool:
        """Whether the way is fixed."""
        return self._chosen is not None

    def record(self, seconds: float) -> bool:
        """Record the time of the current way on this rank; return whether the ranks must compare now."""
        self.best_s[self._turn] = min(seconds, self.best_s[self._turn])
        self._tried += 1
        return self._tried == TRIALS * len(self._ways)

    def settle(self, best_s: Sequence[Sequence[float]]) -> None:
        """Fix the way from the times of all ranks, which are the same on all ranks."""
        sums = [sum(taken) for taken in zip(*best_s, strict=True)]
        self._chosen = sums.index(min(sums))


WHOLE_BYTES = 1 << 20  # up to this size a mean exchanges whole vectors, once instead of twice

_all_gather_flat = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)  # renamed in torch 2.13


class Vectors:
    """Point-to-point exchanges of one rank of a group, with counted bytes.

    Parameters
    ----------
    group : ProcessGroup or None
        Process group; None is the group of all ranks.
    device : device
        Device that the back end needs.
    """

    def __init__(self, group: dist.ProcessGroup | None, device: torch.device) -> None:
        settle_when_destroyed(group)
        self._own_group: list[dist.ProcessGroup | None] = [group]  # emptied when the interpreter ends
        self.device = device
        self.spare: Spare | None = None
        self.payload_bytes = self.received_bytes = self.predicted_bytes = 0
        self._rooms: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}
        self._take_places()

    def _take_places(self) -> None:
        """Read rank and size of the group, and clear the speed trials."""
        self.rank, self.size = dist.get_rank(self.group), dist.get_world_size(self.group)
        self.ranks: Sequence[int] = (self.rank,)
        self._trials: dict[int, Trial] = {}  # by the bytes of a shard

    @property
    def group(self) -> dist.ProcessGroup | None:
        """The process group of the averagings; None for the group of all ranks."""
        return self._own_group[0] if self._own_group else None

    def means(self, owns: Sequence[torch.Tensor], members: Sequence[int]) -> list[torch.Tensor]:
        """Return the mean of the members' vectors, summed in rank order in float64: bitwise equal on every rank.

        Parameters
        ----------
        owns : sequence of tensor
            Vector of this rank only, shape (n,), of equal length and dtype on all ranks.  It is sent in its own dtype.
            Its memory may be overwritten by the mean, which is float32 (float64 for float64) on the same device.
        members : sequence of int
            Ranks whose models count.
        """
        (vector,) = owns
        sent = vector.to(self.device)
        whole = self.size == 2 or self.size * sent.nbytes <= WHOLE_BYTES  # of two ranks, as few bytes as shards
        if len(members) == self.size and whole:
            return [self._mean_of_whole(sent).to(vector.device)]
        return [self._mean_of_shards(sent, members).to(vector.device)]

    def _mean_of_whole(self, own: torch.Tensor) -> torch.Tensor:
        others = [r for r in range(self.size) if r != self.rank]
        parts = self._room({r: own.numel() for r in others}, own)
        self._swap(dict.fromkeys(others, own), parts)
        self.predicted_bytes += self.size * (self.size - 1) * own.nbytes
        vectors = [own if r == self.rank else parts[r] for r in range(self.size)]
        return fold(vectors, out=own if own.dtype == precision(own.dtype) else None)

    def _mean_of_shards(self, own: torch.Tensor, members: Sequence[int]) -> torch.Tensor:
        """Sum one shard of all members' vectors on every rank, then exchange the shards of the mean."""
        n = own.numel()
        longest = -(-n // self.size)
        ends = [min(n, r * longest) for r in range(self.size + 1)]
        shards = [slice(*pair) for pair in pairwise(ends)]
        others = [r for r in range(self.size) if r != self.rank]
        shard = shards[self.rank]
        parts = self._room({r: shard.stop - shard.start for r in members if r != self.rank}, own)
        trial = self._trial(longest * own.element_size())
        self._swap({r: own[shards[r]] for r in others} if self.rank in members else {}, parts, trial.way)

        mean = own if own.dtype == precision(own.dtype) else own.new_empty(n, dtype=torch.float32)
        fold([own[shard] if r == self.rank else parts[r] for r in members], out=mean[shard])
        began = time.perf_counter()  # all ranks are about equally far
        self._swap(dict.fromkeys(others, mean[shard]), {r: mean[shards[r]] for r in others}, trial.way)
        if not trial.settled and trial.record(time.perf_counter() - began):
            trial.settle(self._gather_row(trial.best_s, torch.float64))
        to_fold = sum(n - (shards[r].stop - shards[r].start) for r in members) * own.element_size()
        self.predicted_bytes += to_fold + (self.size - 1) * mean.nbytes
        return mean

    def receive(
        self, owns: Sequence[torch.Tensor], sources: Callable[[int], Sequence[int]]
    ) -> list[dict[int, torch.Tensor]]:
        """Return the vectors of this rank's sources by rank; ``sources`` is the same function on all ranks.

        Parameters
        ----------
        owns : sequence of tensor
            Vector of this rank only.
        sources : callable
            Map from a rank to the ranks from which it receives.
        """
        (vector,) = owns
        sent = vector.to(self.device)
        parts = {r: torch.empty_like(sent) for r in sources(self.rank)}
        self._swap({r: sent for r in range(self.size) if self.rank in sources(r)}, parts)
        self.predicted_bytes += sum(len(sources(r)) for r in range(self.size)) * sent.nbytes
        return [{r: part.to(vector.device) for r, part in parts.items()}]

    def _room(self, lengths: Mapping[int, int], like: torch.Tensor) -> dict[int, torch.Tensor]:
        """Return vectors to receive into, in memory that is reused: allocation costs more than the copy."""
        kind, total = (like.dtype, like.device), sum(lengths.values())
        if kind not in self._rooms or self._rooms[kind].numel() < total:
            self._rooms[kind] = like.new_empty(total)
        room = self._rooms[kind][:total]
        parts = room.split(list(lengths.values())) if len(lengths) > 1 else [room] * len(lengths)
        return dict(zip(lengths, parts, strict=True))

    def _trial(self, shard_bytes: int) -> Trial:
        """Return the trial of ways to exchange shards of this length."""
        if shard_bytes not in self._trials:
            self._trials[shard_bytes] = Trial(ways_for(shard_bytes) if self.device.type == "cpu" else (AT_ONCE,))
        return self._trials[shard_bytes]

    def _swap(
        self, sends: Mapping[int, torch.Tensor], receives: Mapping[int, torch.Tensor], way: int = AT_ONCE
    ) -> None:
        """Send to some ranks, receive from others, and count the bytes."""
        if way == AT_ONCE:
            self._move(sends, receives)
        else:
            self._move_in_step(sends, receives, way)
        self.payload_bytes += sum(vector.nbytes for vector in sends.values())
        self.received_bytes += sum(vector.nbytes for vector in receives.values())

    @marks_failure
    def _move(self, sends: Mapping[int, torch.Tensor], receives: Mapping[int, torch.Tensor]) -> None:
        """Send to some ranks and receive from others, all at once; empty vectors are skipped.

        With gloo it is ten times faster than all_gather of 10^7 numbers, and needs no copy.
        """
        sources = sorted(receives, key=lambda rank: (self.rank - rank) % self.size)
        receivers = sorted(sends, key=lambda rank: (rank - self.rank) % self.size)  # else all send to rank 0 first
        calls: list[tuple[Callable[..., dist.Work | None], torch.Tensor, int]] = [
            *((dist.irecv, receives[rank], self._global(rank)) for rank in sources if receives[rank].numel()),
            *((dist.isend, sends[rank], self._global(rank)) for rank in receivers if sends[rank].numel()),
        ]
        if self.device.type == "cpu":  # without a batch, which doubles the time of a short message
            _await([call(vector, rank, group=self.group) for call, vector, rank in calls])
        elif calls:
            _await(dist.batch_isend_irecv([dist.P2POp(*operation, group=self.group) for operation in calls]))

    @marks_failure
    def _move_in_step(
        self, sends: Mapping[int, torch.Tensor], receives: Mapping[int, torch.Tensor], pieces: int
    ) -> None:
        """Do the same in pieces of every vector; each rank sends to one rank and receives from one at a time.

        Every step ends before the next begins and pairs the same two ranks on both sides, so that no rank waits
        forever.
        """
        for offset in range(1, self.size):
            source, receiver = (self.rank - offset) % self.size, (self.rank + offset) % self.size
            arriving, leaving = _cut(receives.get(source), pieces), _cut(sends.get(receiver), pieces)
            for into, piece in zip_longest(arriving, leaving):
                requests: list[dist.Work | None] = []
                if into is not None:
                    requests.append(dist.irecv(into, self._global(source), group=self.group))
                if piece is not None:
                    requests.append(dist.isend(piece, self._global(receiver), group=self.group))
                _await(requests)

    def _gather_row(self, row: Sequence[float], dtype: torch.dtype) -> list[list]:
        local_row = torch.tensor(list(row), dtype=dtype, device=self.device)
        everyone = local_row.repeat(self.size, 1)
        if self.device.type == "cpu":  # half the time of gloo's all_gather with four ranks
            others = [r for r in range(self.size) if r != self.rank]
            self._move(dict.fromkeys(others, local_row), {r: everyone[r] for r in others})
        else:
            _all_gather_flat(everyone.view(-1), local_row, group=self.group)
        return everyone.tolist()

    def _global(self, rank: int) -> int:
        return rank if self.group is None else dist.get_global_rank(self.group, rank)


def _cut(vector: torch.Tensor | None, pieces: int) -> Sequence[torch.Tensor]:
    """Return a vector's pieces, none for an empty vector; the same at both ends."""
    return () if vector is None or not vector.numel() else vector.chunk(pieces)


def _await(requests: Sequence[dist.Work | None]) -> None:
    for request in requests:
        if request is not None:
            request.wait()


def averaging_messages(m: int, vector_bytes: int = 0) -> int:
    """Return the largest number of messages of one averaging of m ranks: lengths in two halves, then bodies.

    Means of whole vectors need one or two messages per pair of ranks, or more if their shards are sent in pieces.
    ``vector_bytes`` is the length of a whole vector.
    """
    pieces = max(ways_for(-(-vector_bytes // m)))
    return max(3, 2 * pieces + 1) * m * (m - 1)  # + 1: once per length the ranks also compare seconds


def barrier_messages(m: int) -> int:
    """Return the number of messages of one barrier of m ranks: one per rank and doubling of distance."""
    return m * math.ceil(math.log2(m))
