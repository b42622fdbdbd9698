"""The error and the wire of a mean against the number of workers, by schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
from common import curve, lines, panels, points, recorded

from bounds.limits import mean_exchange_rate, mean_received_rate, two_shot_rate
from bounds.theorems import gather_error, ring_error, tree_error, two_shot_exact_error
from gpu_validation.judging.comparisons import exact_row
from gpu_validation.judging.plotting import PALETTE
from gpu_validation.judging.verdict import Comparison
from gpu_validation.studies.study import Figure

RECORD = "sums_of_vectors.jsonl"
NAMES = {"gather": "gather", "two_shot": "two shots", "sum": "shared scale, words of 8 bits"}
NEAR = 0.02  # of the law, for 4 x 65 536 Gaussian coordinates
FILLED = 0.03  # of the wire: the code of one vector is a little longer or shorter than that of another
OMEGA = 0.1


def rows(exchange: str, **given: Any) -> list[dict[str, Any]]:
    """The records of one exchange with these settings, ascending in m."""
    asked = {"exchange": exchange, **given}
    return sorted(
        (row for row in lines(RECORD) if "m" in row and all(row.get(k) == v for k, v in asked.items())),
        key=lambda row: row["m"],
    )


def law(exchange: str, m: int, omega: float) -> float:
    """The relative error for independent vectors of equal length, the same code at every stage and hop."""
    stages = {"mean_square": float(m), "square_of_mean": 1.0, "m": m, "omega1": omega, "omega2": omega}
    if exchange == "gather":
        return float(gather_error(omega=omega, mean_square=float(m), m=m))
    if exchange == "two_shot":
        return float(two_shot_exact_error(**stages))
    if exchange == "ring":
        return float(ring_error(**stages))
    return float(tree_error(**stages, tree_depth=(m - 1).bit_length()))


def draw_errors() -> Any:
    """One panel for each wire: theory by lines, measured points by marks."""
    wires = sorted({row["wire"] for row in rows("gather") if "wire" in row})
    figure, axes = panels(len(wires), columns=2, height=4)
    for ax, wire in zip(axes, wires, strict=True):
        for i, exchange in enumerate(("gather", "two_shot")):
            found = rows(exchange, wire=wire)
            m = [row["m"] for row in found]
            curve(ax, i, m, [law(exchange, row["m"], row["omega"]) for row in found], f"{NAMES[exchange]}, law")
            points(ax, i, m, [row["nmse"] for row in found], f"{NAMES[exchange]}, measured")
        shots = rows("two_shot", wire=wire)
        for i, exchange in enumerate(("ring", "tree"), start=2):
            theory = [law(exchange, row["m"], row["omega"]) for row in shots]
            curve(ax, i, [row["m"] for row in shots], theory, f"{exchange}, law")
        ax.axhline(1, color=PALETTE[7], linewidth=0.8)
        ax.set(xscale="log", yscale="log", xlabel="workers m", ylabel="NMSE of the mean", title=_title(wire))
        _ticks(ax, [row["m"] for row in shots])
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def draw_wire() -> Any:
    """Bits sent against m at one code."""
    figure, (left, right) = panels(2, columns=2, height=4)
    wires = {exchange: rows(exchange, omega=OMEGA) for exchange in ("gather", "two_shot")} | {"sum": rows("sum")}
    m = np.array([row["m"] for row in wires["gather"]])
    bits = wires["gather"][0]["sent_bits"]  # of one message, at m = 2
    ring = 2 * (1 - 1 / m)
    theory = {"gather": (m - 1) * bits, "two_shot": ring * bits, "sum": ring * (8 + 32 / 256)}
    curve(left, 3, m, 64 * (1 - 1 / m), "float32, ring", color=PALETTE[6])
    for i, (exchange, found) in enumerate(wires.items()):
        curve(left, i, m, theory[exchange], f"{NAMES[exchange]}, prediction")
        sent, nmse = ([row[name] for row in found] for name in ("sent_bits", "nmse"))
        points(left, i, m, sent, f"{NAMES[exchange]}, measured")
        points(right, i, m, nmse, f"{NAMES[exchange]}, measured")
        curve(right, i, m, [row["law"] for row in found])
    left.set(xscale="log", yscale="log", xlabel="workers m", ylabel="bits sent per coordinate and rank")
    right.set(xscale="log", yscale="log", xlabel="workers m", ylabel="NMSE of the mean")
    for ax in (left, right):
        _ticks(ax, m)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def draw_limits() -> Any:
    """Bits received in two shots against m, and three rates at the measured errors: two lower limits, ideal blocks."""
    wires = sorted({row["wire"] for row in rows("two_shot") if "wire" in row})
    figure, axes = panels(len(wires), columns=2, height=4)
    rates = {"cut-set limit": mean_received_rate, "limit of any exchange": mean_exchange_rate}
    rates |= {"two shots, ideal blocks": two_shot_rate}
    for ax, wire in zip(axes, wires, strict=True):
        found = [row for row in rows("two_shot", wire=wire) if limited(row)]
        m, nmse, sent = (np.array([float(row[name]) for row in found]) for name in ("m", "nmse", "sent_bits"))
        for i, (name, rate) in enumerate(rates.items()):
            curve(ax, i, m, rate(m=m, nmse=nmse), f"{name}, theory")
        points(ax, 3, m, sent, "two shots, measured")
        ax.set(xscale="log", xlabel="workers m", ylabel="bits received per coordinate", title=_title(wire))
        ax.set_ylim(0, 1.1 * wire)
        _ticks(ax, m.astype(int))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def limited(row: dict[str, Any]) -> bool:
    """Whether the limit of any exchange says something at a record's error."""
    return bool(mean_exchange_rate.holds_at(m=row["m"], nmse=row["nmse"]))


def _title(wire: float) -> str:
    return f"{wire:g} bits sent per coordinate and rank"


def _ticks(ax: Any, m: Any) -> None:
    ax.set_xticks(list(m), [f"{workers}" for workers in m])
    ax.minorticks_off()


def figures() -> list[Figure]:
    """Errors at equal wire, and the wire of one code."""
    head = next(row for row in lines(RECORD) if "commit" in row)
    what = f"{head['draws']} times {head['d']} independent Gaussian coordinates a worker, simulated workers"
    errors = (
        f"Error against m at equal wire. Marks are measured: {what}, TCDQ at the rate that fills the wire. Lines are "
        "theory at those rates: the laws of gathering and of two shots, and those of a ring and a tree that compress "
        "at every hop with the code of two shots. Above 1 it is better to send nothing. "
    )
    wire = (
        f"Wire against m at one code. Marks are measured: {what}, TCDQ({OMEGA:g}) or words of 8 bits with a scale for "
        "every 256 coordinates. Lines are theory: left what the schedule sends for messages of the length at m = 2, "
        "right the laws for the same vectors; the words have to hold a sum of m, so that their error grows with m. "
    )
    limits = (
        f"Bits received in two shots against m. Marks are measured: {what}. Lines are theory at the measured errors: "
        "no exchange lies below the limit of any exchange, which exceeds the cut-set limit; ideal blocks are two "
        "shots with the best long codes. "
    )
    wide = max(row["wire"] for row in rows("gather") if "wire" in row)
    gathered, shots = (rows(exchange, wire=wide)[-1] for exchange in ("gather", "two_shot"))
    times = gathered["nmse"] / shots["nmse"]
    finding = f"At m = {shots['m']} and {wide:g} bits two shots err {times:,.0f} times less than gathering"
    most = [rows(exchange, omega=OMEGA)[-1] for exchange in ("gather", "two_shot")]
    fewer = most[0]["sent_bits"] / most[1]["sent_bits"]
    sending = f"At m = {most[0]['m']} gathering sends {fewer:.0f} times as many bits as two shots with the same code"
    judged = [row for row in rows("two_shot") if "wire" in row and limited(row)]
    over = max(row["sent_bits"] / mean_exchange_rate(m=row["m"], nmse=row["nmse"]) for row in judged)
    near = f"Two shots receive at most {over:.1f} times the bits that any exchange needs at their error"
    return [
        recorded(draw_errors, errors, RECORD, finding),
        recorded(draw_wire, wire, RECORD, sending),
        recorded(draw_limits, limits, RECORD, near),
    ]


def check() -> list[Comparison]:
    """Measured errors are the laws', measured bits what the schedule sends, and none below the limit."""
    comparisons = []
    for row in lines(RECORD):
        if "m" not in row:
            continue
        about = {"operator": NAMES[row["exchange"]], "workload": f"Gaussian, m = {row['m']}"}
        near = abs(row["nmse"] - row["law"]) <= NEAR * row["law"]
        comparisons.append(exact_row(row["nmse"], row["law"], near, quantity="nmse", **about))
        if "wire" in row:
            fits = abs(row["sent_bits"] - row["wire"]) <= FILLED * row["wire"]
            comparisons.append(exact_row(row["sent_bits"], row["wire"], fits, quantity="bits sent", **about))
        if row["exchange"] == "two_shot" and limited(row):
            limit = mean_exchange_rate(m=row["m"], nmse=row["nmse"])
            comparisons.append(exact_row(row["sent_bits"], limit, row["sent_bits"] >= limit, quantity="limit", **about))
        if row["exchange"] == "sum":
            bits = 2 * (1 - 1 / row["m"]) * (row["word_bits"] + 32 / 256)
            exact = abs(row["sent_bits"] - bits) < 1e-9
            comparisons.append(exact_row(row["sent_bits"], bits, exact, quantity="bits sent", **about))
    return comparisons
