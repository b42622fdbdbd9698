"""Figures of the ``joint`` study: losses against time and bits, and the bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle
from typing import Any, TypeVar

import numpy as np

from ...records.storage import Record
from ...reporting.plotting import LINES, PALETTE, canvas, plain_ticks
from .analysis import bound_row
from .problems import METHODS, WORKLOADS, Combination, Real, Virtual

U = TypeVar("U", bound=Combination)


def draw_losses(records: Sequence[tuple[Virtual, Record]], key: str, label: str) -> Any:
    """Return F - inf F of the first seed, one panel a problem and method.

    Parameters
    ----------
    records : sequence of tuple
        Units and what was measured.
    key : str
        "seconds" or "bits".
    label : str
        Of the x axis.
    """
    figure, axes = canvas(len(WORKLOADS), len(METHODS), height=3.0)
    for row, name in zip(axes, WORKLOADS, strict=True):
        of_workload = _of_workload(records, name)
        styles = dict(
            zip(dict.fromkeys(u.schedule for u, _ in of_workload), zip(PALETTE, LINES, strict=False), strict=False)
        )
        for ax, method in zip(row, METHODS, strict=True):
            for unit, record in (path for path in of_workload if path[0].method == method):
                run, (colour, line) = record["runs"][0], styles[unit.schedule]
                words = unit.schedule if unit.tau is None else unit.title
                ax.plot(run[key][1:], _gaps(name, run)[1:], line, color=colour, label=words)
            ax.set(title=f"{name}, {method}", xlabel=label, yscale="log", xscale="log" if key == "bits" else "linear")
            plain_ticks(ax.yaxis)
            ax.grid(alpha=0.3)
        row[0].set(ylabel="F - inf F")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", fontsize=8, ncols=len(labels))
    return figure


def _of_workload(records: Sequence[tuple[U, Record]], name: str) -> list[tuple[U, Record]]:
    return [(unit, record) for unit, record in records if unit.problem == name]


def _gaps(name: str, run: Record) -> np.ndarray:
    infimum = run["losses"][0] - WORKLOADS[name].constants().gap
    return np.maximum(np.array(run["losses"]) - infimum, 1e-12)


def draw_bounds(records: Sequence[tuple[Virtual, Record]], m: int) -> Any:
    """Return means of ``|grad F|^2`` and what bounds them, m workers."""
    figure, axes = canvas(1, len(WORKLOADS), height=3.6)
    for ax, name in zip(axes[0], WORKLOADS, strict=True):
        labels = []
        for i, (unit, record) in enumerate(_of_workload(records, name)):
            row = bound_row(unit, record, m, 0.05)  # only its bound is drawn
            field = "local_gradient2" if "local_gradient2" in record["runs"][0] else "gradient2"
            values = np.array([run[field] for run in record["runs"]])
            bars = [[values.mean() - values.min()], [values.max() - values.mean()]]
            ax.errorbar([i], [values.mean()], yerr=bars, fmt="o", color=PALETTE[1], markersize=4, capsize=2)
            if row.bound is not None and math.isfinite(row.bound):
                ax.bar([i], [row.bound], color=PALETTE[0], alpha=0.35)
            labels.append(f"{unit.method}, {unit.title}")
        ax.set(title=name, yscale="log", ylabel="mean of |grad F|^2")
        plain_ticks(ax.yaxis)
        ax.set_xticks(range(len(labels)), labels, rotation=60, ha="right", fontsize=7)
        ax.grid(alpha=0.3, axis="y")
    return figure


def draw_real(records: Sequence[tuple[Real, Record]]) -> Any:
    """Return F - inf F of real processes."""
    figure, axes = canvas(1, len(WORKLOADS), height=3.2)
    for ax, name in zip(axes[0], WORKLOADS, strict=True):
        of_workload = _of_workload(records, name)
        for (unit, record), colour, line in zip(of_workload, cycle(PALETTE), cycle(LINES), strict=False):
            words = f"{unit.method}, {unit.title}"
            ax.plot(record["seconds"][1:], _gaps(name, record)[1:], line, color=colour, label=words)
        ax.set(title=name, xlabel="seconds", ylabel="F - inf F", yscale="log")
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3)
        if of_workload:
            ax.legend(fontsize=8)
    return figure
