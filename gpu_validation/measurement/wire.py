"""What a message costs on the wire: payload bytes as predicted, and the frames that the interface counts for them.

The interface sends more than the payload: headers of frames, acknowledgements, and what the transport says to itself.
How much more it may be follows from the formats beforehand (``envelope``), on both sides and for every topology; by
that the operators' messages are judged.  The line interface = a + b payload, fitted to bare messages of chosen lengths
within a frame and above, is drawn for the eye and judges nothing: a transport that sent every body four times over
would only get a steeper one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from operators import Key, Message, Operator, specification
from operators.random import normal

from ..distributed.collectives import barrier, gather_arrays
from ..distributed.interface_counters import interface_bytes, sent_between
from ..distributed.launch import RankContext
from ..distributed.topologies import TOPOLOGIES, Topology
from ..network.streams import StreamCount
from ..records.storage import Record
from ..verdicts.wire import FRAME_BYTES
from .streams import MESSAGES, VECTORS

SHORT_FACTOR = 5  # one acknowledgement more or less is much beside a short message: average over more exchanges


@dataclass(frozen=True)
class WirePlan:
    """What is sent: the messages of operators for d coordinates, and bare messages of chosen lengths.

    Parameters
    ----------
    repeats : int
        How often each is exchanged, SHORT_FACTOR times as often within one frame; the counters are read around all of
        them.
    frame_bytes : int, bytes, optional
        Of payload in one frame, 1448 at an MTU of 1500.
    topologies : tuple of Topology, optional
        By which it is sent.
    seed : int, optional
        Of the operators' vectors and messages.

    Raises
    ------
    ValueError
        Unless three different lengths are within a frame and three above it: a line needs as many.
    """

    operators: tuple[Operator, ...]
    d: int
    lengths_bytes: tuple[int, ...]
    repeats: int
    frame_bytes: int = FRAME_BYTES
    topologies: tuple[Topology, ...] = TOPOLOGIES
    seed: int = 0

    def __post_init__(self) -> None:
        short = sum(length <= self.frame_bytes for length in set(self.lengths_bytes))
        if min(short, len(set(self.lengths_bytes)) - short) < 3:
            raise ValueError(
                f"lengths_bytes needs three different lengths up to {self.frame_bytes} and three above; "
                f"got {self.lengths_bytes}"
            )


def measure_wire(place: RankContext, plan: WirePlan) -> list[Record]:
    """Exchange everything by every one of the topologies; all ranks return the same records."""
    records = []
    for topology in plan.topologies:
        for length in plan.lengths_bytes:
            message = Message(torch.zeros(length, dtype=torch.uint8), 8 * length)
            records.append({"kind": "line", **_exchanged(place, topology, message, plan)})
        for operator in plan.operators:
            key = Key(plan.seed, rank=place.rank)
            message = operator.encode(torch.from_numpy(normal(key.fold_in(VECTORS), plan.d)), key=key.fold_in(MESSAGES))
            measured = _exchanged(place, topology, message, plan)
            records.append({"kind": "operator", "operator": specification(operator), **measured})
    return records


def _exchanged(place: RankContext, topology: Topology, message: Message, plan: WirePlan) -> Record:
    """Return bytes of all ranks together for one exchange, on average over the repeats."""
    topology.all_gather(message)  # connects whom it has to
    bits = [int(part) for part in gather_arrays(torch.tensor([message.bits]))]
    longest = (max(bits) + 7) // 8
    repeats = plan.repeats * (SHORT_FACTOR if longest <= plan.frame_bytes else 1)
    barrier()
    before, streams = place.port.count(), place.streams.count()
    sent = sum(topology.all_gather(message)[1] for _ in range(repeats))
    barrier()
    after, carried = place.port.count(), sent_between(streams, place.streams.count())
    every_sent = [int(part) for part in gather_arrays(torch.tensor([sent]))]
    counted = interface_bytes(
        place, None if before is None else before.sent_bytes, None if after is None else after.sent_bytes
    )
    return {
        "topology": topology.name,
        "m": place.size,
        "longest_bytes": longest,
        "one_frame": longest <= plan.frame_bytes,
        "payload_bytes": sum(every_sent) / repeats,
        "predicted_payload_bytes": topology.total_payload_bytes(bits),
        "interface_bytes": None if counted is None else counted / repeats,
        **_of_streams(carried, repeats),
        "repeats": repeats,
        "frame_bytes": plan.frame_bytes,
        "method": place.port.method,
        "scheduling": place.scheduling,
        "own_network": not place.port.shared,
    }


def _of_streams(own: StreamCount | None, repeats: int) -> Record:
    """Return what the connections of all ranks carried for one exchange, on average; None where one rank
    cannot tell.
    """
    numbers = (-1, -1, -1) if own is None else (own.sent_bytes, own.resent_bytes, own.resent_segments)
    table = torch.stack(gather_arrays(torch.tensor(numbers)))
    counted = bool((table >= 0).all())
    sent, again, segments = (int(total) / repeats if counted else None for total in table.sum(dim=0))
    return {"stream_bytes": sent, "resent_bytes": again or 0, "resent_segments": segments or 0}
