"""Error and wire against the number of workers, seconds on the network, and losses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, product
from typing import Any

import numpy as np

from ...records.storage import Record
from ...reporting.plotting import LINES, PALETTE, canvas, plain_ticks
from ..study import Figure
from ..unit import of_kind
from .problems import CODECS, DENSE, EXACT, Train, exchanges

DASHES = {"gather": "--", "two_shot": "-"}


def figures(records: Sequence[Record], *, d: int) -> list[Figure]:
    """Return one figure of four panels.

    Parameters
    ----------
    records : sequence of Record
        The records at hand.
    d : int
        Number of coordinates.
    """
    exchanged = exchanges(records)
    caption = (
        f"Measured, independent Gaussian vectors of d = {d:,} coordinates; dashed: gathered, solid: in two shots. "
        "Error of the mean over its energy, and bits that a rank sends a coordinate, in real processes up to m = 8, "
        "then in simulated workers, whose feedback starts without memory and whose bits are without headers; median "
        "seconds of an averaging on the shaped network, where m ranks share this machine's cores; final loss of the "
        "digits over that of exact gradients, by seed."
    )
    return [Figure(lambda: _draw(exchanged, of_kind(records, Train), d), caption)]


def wire_bits(record: Record, m: int, d: int) -> float:
    """Return the bits that a rank sends a coordinate, headers included where they were sent.

    Parameters
    ----------
    record : Record
        Of one method.
    m : int
        Number of workers.
    d : int
        Number of coordinates.
    """
    if "sent_bits" in record:
        return float(record["sent_bits"])
    return float(8 * record["payload_bytes"] / (record["exchanges"] * m * d))


def _draw(exchanged: Sequence[tuple[int, Record]], trained: Sequence[tuple[Train, Record]], d: int) -> Any:
    figure, axes = canvas(1, 4, height=3.6)
    error, wire, seconds, losses = axes[0]
    colours = dict(zip((*CODECS, DENSE), cycle(PALETTE), strict=False))
    for codec, (exchange, line) in product(colours, DASHES.items()):
        colour = colours[codec]
        chosen = sorted(
            [(m, r) for m, r in exchanged if (r["codec"], r["exchange"]) == (codec, exchange)], key=lambda pair: pair[0]
        )
        label = codec if (exchange == "two_shot") != (codec == DENSE) else None
        style: dict[str, Any] = {"color": colour, "linestyle": line, "marker": "o", "markersize": 3}
        if codec != DENSE:
            error.plot([m for m, _ in chosen], [np.mean(r["nmse"]) for _, r in chosen], label=label, **style)
        wire.plot([m for m, _ in chosen], [wire_bits(r, m, d) for m, r in chosen], **style)
        timed = [(m, r) for m, r in chosen if "seconds" in r]
        seconds.plot([m for m, _ in timed], [np.median(r["seconds"]) for _, r in timed], label=label, **style)
    for ax, words in ((error, "error over energy"), (wire, "bits sent a coordinate"), (seconds, "seconds")):
        ax.set(xlabel="workers", ylabel=words, xscale="log", yscale="log")
        crowd = sorted({m for m, r in exchanged if ax is not seconds or "seconds" in r})
        ax.set_xticks(crowd, [str(m) for m in crowd], minor=False)
        ax.set_xticks([], minor=True)
        ax.grid(alpha=0.3)
    plain_ticks(wire.yaxis)
    seconds.legend(fontsize=6)
    _draw_losses(losses, trained)
    return figure


def _draw_losses(ax: Any, trained: Sequence[tuple[Train, Record]]) -> None:
    exact = {unit.seed: record["loss"] for unit, record in trained if unit.method == EXACT}
    methods = list(dict.fromkeys(unit.method for unit, _ in trained if unit.method != EXACT))
    for i, method in enumerate(methods):
        ratios = [r["loss"] / exact[u.seed] for u, r in trained if u.method == method and u.seed in exact]
        ax.plot([i] * len(ratios), ratios, "o", color=PALETTE[i % len(PALETTE)], markersize=4)
    ax.axhline(1.0, linestyle=LINES[1], color="grey", linewidth=1)
    ax.set_xticks(range(len(methods)), methods, rotation=60, fontsize=7)
    ax.set(ylabel="final loss over the exact one")
    ax.grid(alpha=0.3)
