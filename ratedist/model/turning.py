"""Where a recommendation turns: the bandwidth at which another choice leads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .cluster import Cluster

REACH = 1000.0  # factor of the bandwidth up to which is looked
WIDTH = 0.005  # relative, of the bandwidth found
MOST_RIVALS = 2


def crossing(leads: Callable[[float], bool], reach: float) -> float | None:
    """Return the factor at which a choice stops leading between 1 and a reach; None if it still leads there.

    Parameters
    ----------
    leads : callable
        Whether the choice leads at a factor; it does at 1.
    reach : float
        The last factor, above or below 1.
    """
    if leads(reach):
        return None
    inside, outside = 1.0, reach
    while abs(math.log(outside / inside)) > WIDTH:
        middle = math.sqrt(inside * outside)
        inside, outside = (middle, outside) if leads(middle) else (inside, middle)
    return outside


def bandwidth_text(factor: float, cluster: Cluster) -> str:
    """Return a bandwidth in words.

    Parameters
    ----------
    factor : float
        Of the bandwidth of the cluster's links, of those between nodes where there are nodes.
    cluster : Cluster
        Workers and links.
    """
    where = "between nodes" if cluster.nodes else "a link"
    return f"{factor * cluster.links[1].bandwidth_bit_per_s / 1e9:.3g} Gbit/s {where}"


def turns(
    best: Any, rivals: dict[str, Any], cost: Callable[[Any, float], float], cluster: Cluster
) -> tuple[dict[str, Any], ...]:
    """Return which rivals lead on faster or slower links, each with the bandwidth from which they do.

    Parameters
    ----------
    best
        The recommended choice.
    rivals : dict of str to choice
        Others by their names.
    cost : callable
        Of a choice, with the bandwidth times a factor.
    cluster : Cluster
        Workers and links.
    """
    turned = []
    for name, rival in list(rivals.items())[:MOST_RIVALS]:
        for reach, side in ((REACH, "above"), (1 / REACH, "below")):
            factor = crossing(lambda scale, rival=rival: cost(best, scale) <= cost(rival, scale), reach)  # type: ignore[misc]
            if factor is not None:
                words = f"{name} leads {side} {bandwidth_text(factor, cluster)}"
                bit_per_s = factor * cluster.links[1].bandwidth_bit_per_s
                turned.append({"rival": name, "side": side, "bit_per_s": bit_per_s, "words": words})
    return tuple(sorted(turned, key=lambda turn: abs(math.log(turn["bit_per_s"]))))
