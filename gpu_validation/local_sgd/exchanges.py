"""What carries out each exchange of movements."""

from __future__ import annotations

from dataclasses import replace

from operators.exchange.shards import lengths

from ..distributed.transport import Transport
from .config import Settings
from .delta_codec import Gathered
from .movements import Movements
from .nodes import InNodes
from .payload import Payload
from .summed_movements import InSums
from .two_shots import InTwoShots


def movements(exchange: str, settings: Settings, transport: Transport, payload: Payload, d: int) -> Movements:
    """Return what carries out an exchange, between nodes where ranks form nodes.

    Parameters
    ----------
    exchange : str
        "gather", "two_shot" or "sum".
    settings : Settings
        Operators and key.
    transport : Transport
        How messages travel.
    payload : Payload
        What travels with them.
    d : int
        Number of coordinates.

    Raises
    ------
    ValueError
        For fewer coordinates than ranks of a node.
    """
    if settings.ranks_per_node > 1:
        return _in_nodes(exchange, settings, transport, d)
    kinds: dict[str, type[Gathered | InTwoShots | InSums]]
    kinds = {"gather": Gathered, "two_shot": InTwoShots, "sum": InSums}
    return kinds[exchange](settings, transport, payload, d)


def _in_nodes(exchange: str, settings: Settings, transport: Transport, d: int) -> InNodes:
    """Return the same exchange between nodes of every place hosted here, each with random streams of its own."""
    ranks = settings.ranks_per_node
    if d < ranks:
        raise ValueError(
            f"ranks_per_node must be at most the number of parameters that travel together, {d}; got {ranks}: each "
            "rank of a node exchanges a shard of them"
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
