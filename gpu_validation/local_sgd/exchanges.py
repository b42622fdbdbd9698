"""What carries out each exchange of movements."""

from __future__ import annotations

from ..distributed.transport import Transport
from .config import Settings
from .delta_codec import Gathered
from .movements import Movements
from .payload import Payload
from .summed_movements import InSums
from .two_shots import InTwoShots


def movements(exchange: str, settings: Settings, transport: Transport, payload: Payload, d: int) -> Movements:
    """Return what carries out an exchange.

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
    """
    kinds: dict[str, type[Gathered | InTwoShots | InSums]]
    kinds = {"gather": Gathered, "two_shot": InTwoShots, "sum": InSums}
    return kinds[exchange](settings, transport, payload, d)
