"""One self-contained HTML page: verdicts, figures, every comparison.  Opens offline."""

from __future__ import annotations

import html
import io
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from .presets.preset import Preset
from .records import Comparison, Environment, Probe, Training, Verdict

# Okabe and Ito 2008: eight colours that colour-blind readers can tell apart
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
LINES = ("-", "--", ":", "-.")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")

COLUMNS: tuple[tuple[str, Callable[[Comparison], str]], ...] = (
    ("operator", lambda c: c.operator),
    ("on", lambda c: c.workload),
    ("tau", lambda c: "" if c.tau is None else str(c.tau)),
    ("quantity", lambda c: c.quantity),
    ("measured", lambda c: f"{c.measured:.6g}"),
    ("interval", lambda c: f"[{c.interval[0]:.6g}, {c.interval[1]:.6g}]"),
    ("bound", lambda c: "" if c.bound is None else f"{c.bound:.6g}"),
    ("looseness", lambda c: "" if c.looseness is None or c.side == "tight" else f"{c.looseness:.3g}"),
    ("verdict", lambda c: str(c.verdict)),
    ("reason", lambda c: c.reason),
)

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem;color:#1b1b1b;background:#fff}
table{border-collapse:collapse;font-size:.8rem}td,th{border-bottom:1px solid #8884;padding:.2rem .5rem;text-align:left}
.wide{overflow-x:auto}figure{background:#fff;margin:1rem 0;padding:.5rem;border-radius:.5rem}
figure svg{max-width:100%;height:auto}figcaption{color:#333;font-size:.9rem}
.HOLDS{color:#00694a}.VIOLATED{color:#b3261e;font-weight:700}.INCONCLUSIVE{color:#8a5a00}.OUT_OF_SCOPE{color:#666}
.stop{border-left:.3rem solid #b3261e;padding:.5rem 1rem}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#16181c}.HOLDS{color:#5fd3ad}.VIOLATED{color:#ff8a80}
.INCONCLUSIVE{color:#f0b64d}.OUT_OF_SCOPE{color:#a0a0a0}}
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title><style>{style}</style></head><body>
<h1>{title}</h1><p>{description}</p>{stop}{counts}{figures}<h2>Comparisons</h2>
<p>Intervals are two-sided Student-t at the run's false-alarm budget of {budget:g}, split over all sampled
comparisons; a point where the comparison is exact. Looseness is bound / measured for upper bounds and
measured / bound for lower ones. Rows on seconds never decide the exit code.</p>
<div class="wide">{table}</div><h2>Circumstances</h2><pre>{environment}</pre></body></html>
"""


def render(
    preset: Preset,
    environment: Environment,
    records: Sequence[Probe | Training],
    comparisons: Sequence[Comparison],
    message: str,
) -> str:
    """The page as text.  message : why the run ended early, or which claim fell; empty if all is well."""
    return PAGE.format(
        title=f"ratedist validation: {html.escape(preset.name)}",
        style=STYLE,
        description=html.escape(preset.description),
        stop=f'<p class="stop">{html.escape(message)}</p>' if message else "",
        counts=_counts(comparisons),
        figures="".join(_figures(records)),
        budget=preset.false_alarm,
        table=_table(comparisons),
        environment=html.escape(repr(environment)),
    )


def _counts(comparisons: Sequence[Comparison]) -> str:
    counted = Counter(str(c.verdict) for c in comparisons)
    cells = "".join(f'<td class="{v}">{counted[v]} {v}</td>' for v in map(str, Verdict))
    return f"<table><tr>{cells}</tr></table>"


def _table(comparisons: Sequence[Comparison]) -> str:
    head = "".join(f"<th>{name}</th>" for name, _ in COLUMNS)
    rows = (
        f'<tr class="{c.verdict}">' + "".join(f"<td>{html.escape(show(c))}</td>" for _, show in COLUMNS) + "</tr>"
        for c in comparisons
    )
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _figures(records: Sequence[Probe | Training]) -> list[str]:
    found = []
    probes = [r for r in records if isinstance(r, Probe) and r.compression.source == "gaussian"]
    runs = [r for r in records if isinstance(r, Training)]
    if runs:
        found.append(
            _figure(
                _losses(runs),
                "Measured: loss of the averaged model after every round (first seed) against wall-clock, local steps "
                "padded to equal length, and against all codec bits sent. Colour is the operator, line style is tau.",
            )
        )
    if probes:
        found.append(
            _figure(
                _rate_distortion(probes),
                "Measured: mean codec bits per coordinate against mean squared error per coordinate on isotropic "
                "Gaussian input of unit variance. Theory: no contractive operator lies below the solid line and no "
                "unbiased one below the dashed line.",
            )
        )
    return found


def _figure(figure: Any, caption: str) -> str:
    import matplotlib.pyplot as plt

    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    plt.close(figure)
    svg = text.getvalue()
    return f"<figure>{svg[svg.index('<svg') :]}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _canvas(rows: int, columns: int, *, height: float) -> Any:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ratedist"
    return plt.subplots(rows, columns, figsize=(11, height * rows), squeeze=False, layout="constrained")


def _losses(runs: Sequence[Training]) -> Any:
    workloads = list(dict.fromkeys(r.workload for r in runs))
    colours = dict(zip(dict.fromkeys(r.operator for r in runs), cycle(PALETTE), strict=False))
    lines = dict(zip(sorted({r.tau for r in runs}), cycle(LINES), strict=False))
    figure, axes = _canvas(len(workloads), 2, height=3.4)
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
    for ax in axes.flat:
        ax.grid(alpha=0.3)
    _legend(figure, colours, lines)
    return figure


def _legend(figure: Any, colours: dict[str, str], lines: dict[int, str]) -> None:
    """Colours and line styles apart, so that the legend stays short."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    handles += [Line2D([], [], color="#444444", linestyle=line, label=f"tau = {tau}") for tau, line in lines.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def _rate_distortion(probes: Sequence[Probe]) -> Any:
    from bounds.limits import gaussian_bits, gaussian_unbiased_bits

    lossy = [p for p in probes if p.compression.error_per_coordinate.mean > 0]
    figure, axes = _canvas(1, 1, height=5)
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
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8)
    return figure
