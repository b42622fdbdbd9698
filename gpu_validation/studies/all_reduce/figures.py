"""Error and wire against the number of workers, seconds on the network, and losses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from ...records.storage import Record
from ...reporting.plotting import LINES, PALETTE, canvas, plain_ticks
from ..study import Figure
from ..unit import of_kind
from .problems import CODECS, DENSE, EXACT, Train, exchanges

DASHES = {"gather": "--", "two_shot": "-"}


def figures(records: Sequence[Record], *, d: int) -> list[Figure]:
    """Return exchanges, gathered and in two shots, and what they leave of the loss.

    Parameters
    ----------
    records : sequence of Record
        The records at hand.
    d : int
        Number of coordinates.
    """
    exchanged = exchanges(records)
    exchanges_words = (
        f"Measured, independent Gaussian vectors of d = {d:,} coordinates; above gathered, below in two shots, the "
        "exact sum in both. Error of the mean over its energy, and bits that a rank sends, in real processes "
        "up to m = 8, then in simulated workers, whose feedback has no memory yet and whose bits are without headers; "
        "median seconds of an averaging on the shaped network, where m ranks share this machine's cores."
    )
    losses_words = "Measured: final loss of the digits over that of exact gradients, one mark a seed."
    drawn = [Figure(lambda: _draw(exchanged, d), exchanges_words)] if exchanged else []
    trained = of_kind(records, Train)
    return [*drawn, Figure(lambda: _draw_losses(trained), losses_words)] if trained else drawn


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


def _draw(exchanged: Sequence[tuple[int, Record]], d: int) -> Any:
    figure, axes = canvas(2, 3, height=3.2)
    colours = dict(zip((*CODECS, DENSE), cycle(PALETTE), strict=False))
    dense = {exchange for _, r in exchanged if r["codec"] == DENSE for exchange in (r["exchange"],)}
    for row, (exchange, words) in zip(axes, (("gather", "gathered"), ("two_shot", "two shots")), strict=True):
        error, wire, seconds = row
        for codec, colour in colours.items():
            ways = dense if codec == DENSE else {exchange}
            chosen = [(m, r) for m, r in exchanged if r["codec"] == codec and r["exchange"] in ways]
            chosen.sort(key=lambda pair: pair[0])
            style: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 3, "label": codec}
            if codec != DENSE:
                error.plot([m for m, _ in chosen], [np.mean(r["nmse"]) for _, r in chosen], **style)
            wire.plot([m for m, _ in chosen], [wire_bits(r, m, d) for m, r in chosen], **style)
            timed = [(m, r) for m, r in chosen if "seconds" in r]
            seconds.plot([m for m, _ in timed], [np.median(r["seconds"]) for _, r in timed], **style)
        for ax, label in ((error, "error over energy"), (wire, "bits sent a coordinate"), (seconds, "seconds")):
            ax.set(title=words, xlabel="workers", ylabel=label, xscale="log", yscale="log")
            crowd = sorted({m for m, r in exchanged if ax is not seconds or "seconds" in r})
            ax.set_xticks(crowd, [str(m) for m in crowd], minor=False)
            ax.set_xticks([], minor=True)
            ax.grid(alpha=0.3)
        plain_ticks(wire.yaxis)
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=len(colours), fontsize=8)
    return figure


def _draw_losses(trained: Sequence[tuple[Train, Record]]) -> Any:
    figure, axes = canvas(1, 1, height=3.6)
    ax = axes[0, 0]
    exact = {unit.seed: record["loss"] for unit, record in trained if unit.method == EXACT}
    methods = list(dict.fromkeys(unit.method for unit, _ in trained if unit.method != EXACT))
    for i, method in enumerate(methods):
        ratios = [r["loss"] / exact[u.seed] for u, r in trained if u.method == method and u.seed in exact]
        ax.plot([i] * len(ratios), ratios, "o", color=PALETTE[i % len(PALETTE)], markersize=4)
    ax.axhline(1.0, linestyle=LINES[1], color="grey", linewidth=1)
    ax.set_xticks(range(len(methods)), methods, rotation=30, fontsize=8, ha="right")
    ax.set(ylabel="final loss over the exact one")
    ax.grid(alpha=0.3)
    return figure
