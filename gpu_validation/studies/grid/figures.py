"""What is drawn of a grid: losses against time and bits, and bits against distortion."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from ...reporting.plotting import LINES, MARKS, PALETTE, canvas
from ..study import Figure
from .records import Probe, Training


def figures(records: Sequence[Probe | Training]) -> list[Figure]:
    """Return what the records allow: losses of training runs, and bits against distortion of the probes."""
    drawn = []
    probes = [r for r in records if isinstance(r, Probe) and r.compression.source == "gaussian"]
    runs = [r for r in records if isinstance(r, Training)]
    if runs:
        caption = (
            "Measured: loss of the averaged model after every round (first seed) against wall-clock, local steps "
            "padded to equal length, and against all codec bits sent. Colour is the operator, line style is tau."
        )
        drawn.append(Figure(partial(_losses, runs), caption))
    if probes:
        caption = (
            "Measured: mean codec bits per coordinate against mean squared error per coordinate on isotropic "
            "Gaussian input of unit variance. Theory: no contractive operator lies below the solid line and no "
            "unbiased one below the dashed line."
        )
        drawn.append(Figure(partial(_rate_distortion, probes), caption))
    return drawn


def _losses(runs: Sequence[Training]) -> Any:
    workloads = list(dict.fromkeys(r.workload for r in runs))
    colours = dict(zip(dict.fromkeys(r.operator for r in runs), cycle(PALETTE), strict=False))
    lines = dict(zip(sorted({r.tau for r in runs}), cycle(LINES), strict=False))
    figure, axes = canvas(len(workloads), 2, height=3.4)
    for (time, bits), workload in zip(axes, workloads, strict=True):
        losses: list[float] = []
        for run in (r for r in runs if r.workload == workload):
            style: dict[str, Any] = {"color": colours[run.operator], "linestyle": lines[run.tau], "linewidth": 1.2}
            time.plot(run.curve.seconds, run.curve.loss, **style)
            bits.plot(run.curve.codec_bits, run.curve.loss, **style)
            losses += run.curve.loss
        scale = "log" if max(losses) > 5 * min(losses) > 0 else "linear"
        time.set(xlabel="seconds", ylabel=f"{workload}: loss", yscale=scale)
        bits.set(xlabel="codec bits, all workers", xscale="log", yscale=scale)
    _legend(figure, colours, lines)
    return figure


def _legend(figure: Any, colours: dict[str, str], lines: dict[int, str]) -> None:
    """Colours and line styles apart, so that the legend stays short."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    handles += [Line2D([], [], color="#444444", linestyle=line, label=f"tau = {tau}") for tau, line in lines.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)


def _rate_distortion(probes: Sequence[Probe]) -> Any:
    from bounds.limits import gaussian_bits, gaussian_unbiased_bits

    lossy = [p for p in probes if p.compression.error_per_coordinate.mean > 0]
    figure, axes = canvas(1, 1, height=5)
    ax = axes[0, 0]
    distortion = np.geomspace(1e-4, 0.999, 200)
    ax.plot(distortion, gaussian_bits(d=1, alpha=distortion), "-", color="#444444", label="limit, contractive")
    wide = np.geomspace(1e-4, 30, 200)
    ax.plot(wide, gaussian_unbiased_bits(d=1, omega=wide), "--", color="#444444", label="limit, unbiased")
    for i, p in enumerate(lossy):
        c = p.compression
        ax.plot(
            c.error_per_coordinate.mean,
            c.bits.mean / c.d,
            MARKS[i % len(MARKS)],
            color=PALETTE[i % len(PALETTE)],
            label=f"{p.operator} ({c.declared.kind})",
        )
    ax.set(
        xscale="log",
        yscale="log",
        ylim=(0.02, 40),
        xlabel="squared error per coordinate",
        ylabel="codec bits per coordinate",
    )
    ax.legend()
    return figure
