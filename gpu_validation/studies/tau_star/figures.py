"""Figures of the ``tau-star`` study: the value against tau, and the regrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bounds.theorems import pasgd_convex

from ...records.storage import Record
from ...reporting.plotting import LINES, MARKS, PALETTE, canvas, plain_ticks
from ...workloads import HeterogeneousQuadratics, MultiplicativeQuadratic
from .analysis import PLANNED, regrets, values_at
from .problems import PROBLEMS, Problem, Real, exact_value

GRID_SHOWN = (1, 4, 16, 64)


def draw_values(swept: dict[str, list[Record]], real: Sequence[tuple[Real, Record]]) -> Any:
    """Return a panel for every problem: the value at every tau, theory, and what is advised."""
    rows = -(-len(swept) // 3)
    figure, axes = canvas(rows, 3, height=3.4)
    for ax in axes.flat[len(swept) :]:
        ax.set_axis_off()
    for ax, (name, records) in zip(axes.flat, swept.items(), strict=False):
        taus = records[0]["taus"]
        values = np.array([values_at(records, tau, "gradient2") for tau in taus])
        middle = values.mean(axis=1)
        spread = [middle - values.min(axis=1), values.max(axis=1) - middle]
        ax.errorbar(taus, middle, yerr=spread, fmt="o", color="black", markersize=4, capsize=2)
        _draw_theory(ax, PROBLEMS[name], taus)
        of_problem = [r for unit, r in real if unit.problem == name]
        ax.plot(
            [r["tau"] for r in of_problem], [r["gradient2"] for r in of_problem], "x", color=PALETTE[1], markersize=8
        )
        for tau, names in _by_tau(records[0]["advised"]).items():
            ax.axvline(tau, color=PALETTE[0], linewidth=0.8, alpha=0.6)
            place = ax.get_xaxis_transform()
            ax.text(tau, 0.98, ", ".join(names), rotation=90, va="top", ha="right", fontsize=6, transform=place)
        ax.set(title=f"{name}, m = {PROBLEMS[name].m}", xscale="log", yscale="log", xlabel="tau")
        ax.set_xticks(GRID_SHOWN, [str(tau) for tau in GRID_SHOWN])
        ax.set_xticks([], minor=True)
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3)
    for ax in axes[:, 0]:
        ax.set(ylabel="mean of |grad F|^2")
    return figure


def _draw_theory(ax: Any, problem: Problem, taus: Sequence[int]) -> None:
    w, c = problem.workload, problem.workload.constants()
    if not isinstance(w, HeterogeneousQuadratics | MultiplicativeQuadratic):
        arguments = {"gap": c.gap, "eta": w.eta, "L": c.L, "sigma2": c.sigma2, "m": problem.m}
        bounds = [float(pasgd_convex(**arguments, tau=tau, K=problem.steps(tau))) for tau in taus]
        ax.plot(taus, bounds, LINES[1], color=PALETTE[2], linewidth=1)
    exact = [exact_value(problem, tau) for tau in taus]
    if None not in exact:
        ax.plot(taus, exact, LINES[0], color=PALETTE[2], linewidth=1)


def _by_tau(advised: dict[str, int]) -> dict[int, list[str]]:
    labels: dict[int, list[str]] = {}
    for choice, tau in advised.items():
        labels.setdefault(tau, []).append(choice)
    return labels


def draw_regrets(swept: dict[str, list[Record]]) -> Any:
    """Return every choice's value over the best one, problem by problem."""
    figure, axes = canvas(1, 2, height=3.8)
    choices = list(dict.fromkeys(choice for records in swept.values() for choice in records[0]["advised"]))
    words = {"gradient2": "mean of |grad F|^2", "gap": "F - inf F at the end"}
    for ax, (field, title) in zip(axes[0], words.items(), strict=True):
        for i, choice in enumerate((*choices, PLANNED)):
            for j, records in enumerate(swept.values()):
                ratios = regrets(records, choice, field)
                if ratios is not None:
                    x = j + 0.12 * (i - len(choices) / 2)
                    middle = float(ratios.mean())
                    bars = [[middle - ratios.min()], [ratios.max() - middle]]
                    ax.errorbar([x], [middle], yerr=bars, fmt=MARKS[i], color=PALETTE[i], markersize=5, capsize=2)
            ax.plot([], [], MARKS[i], color=PALETTE[i], label=choice)
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set(title=title, yscale="log", ylabel="over the best tau measured")
        ax.set_xticks(range(len(swept)), list(swept), rotation=20, ha="right")
        plain_ticks(ax.yaxis)
        ax.grid(alpha=0.3, axis="y")
    axes[0, 1].legend(fontsize=7)
    return figure
