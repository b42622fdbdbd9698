"""Construction of the exchange of movements."""

from __future__ import annotations

from operators import Key
from operators.exchange.choice import lengths

from ..distributed.transport import Transport
from .config import Settings
from .delta_codec import Gathered
from .movements import Movements
from .nodes import InNodes
from .parts import Gather, Sum, TwoShot
from .payload import Payload
from .summed_movements import InSums
from .two_shots import InTwoShots


def movements(settings: Settings, transport: Transport, payload: Payload, d: int) -> Movements:
    """Return the exchange of d coordinates that settings say, between nodes where ranks form nodes.

    Raises
    ------
    ValueError
        For fewer coordinates than ranks per node.
    """
    chosen, ranks, key = settings.chosen_exchange(d=d, m=transport.size), settings.ranks_per_node, settings.shared_key
    if ranks == 1:
        return movements_of(chosen, key, transport, payload, d)
    if d < ranks:
        raise ValueError(
            f"ranks_per_node must be at most the number of averaged parameters, {d}; got {ranks}: "
            "reduce it, for each rank of a node exchanges a shard"
        )
    links, sizes = transport.in_nodes(ranks), lengths(d, ranks)
    places = {  # every shard has its own random streams
        place: movements_of(chosen, key.fold_in(place), between, Payload(0, between.size), sizes[place])
        for place, between in links.between.items()
    }
    return InNodes(places, links, transport, d)


def movements_of(
    exchange: Gather | TwoShot | Sum, key: Key, transport: Transport, payload: Payload, d: int
) -> Movements:
    """Return the exchange of d coordinates between all ranks of a transport; ``key`` is the one of all ranks."""
    if isinstance(exchange, Gather):
        return Gathered(exchange, key, transport, payload, d)
    if isinstance(exchange, TwoShot):
        return InTwoShots(exchange, key, transport, payload, d)
    return InSums(exchange, key, transport, payload, d)
