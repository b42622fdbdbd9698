"""Construction of the exchange of movements."""

from __future__ import annotations

from dataclasses import replace

from operators.exchange.choice import lengths

from ..distributed.transport import Transport
from .config import Settings
from .delta_codec import Gathered
from .movements import Movements
from .nodes import InNodes
from .payload import Payload
from .summed_movements import InSums
from .two_shots import InTwoShots


def movements(exchange: str, settings: Settings, transport: Transport, payload: Payload, d: int) -> Movements:
    """Return the exchange "gather", "two_shot" or "sum" of d coordinates, between nodes where ranks form nodes.

    Raises
    ------
    ValueError
        For fewer coordinates than ranks per node.
    """
    if settings.ranks_per_node > 1:
        return _in_nodes(exchange, settings, transport, d)
    kinds: dict[str, type[Gathered | InTwoShots | InSums]]
    kinds = {"gather": Gathered, "two_shot": InTwoShots, "sum": InSums}
    return kinds[exchange](settings, transport, payload, d)


def _in_nodes(exchange: str, settings: Settings, transport: Transport, d: int) -> InNodes:
    """Return the exchange between nodes for every shard hosted here, each with its own random streams."""
    ranks = settings.ranks_per_node
    if d < ranks:
        raise ValueError(
            f"ranks_per_node must be at most the number of averaged parameters, {d}; got {ranks}: "
            "reduce it, for each rank of a node exchanges a shard"
        )
    links, sizes = transport.in_nodes(ranks), lengths(d, ranks)
    places = {
        place: movements(
            exchange,
            replace(settings, ranks_per_node=1, key=settings.shared_key.fold_in(place)),
            between,
            Payload(0, between.size),
            sizes[place],
        )
        for place, between in links.between.items()
    }
    return InNodes(places, links, transport, d)
