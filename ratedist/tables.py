"""Records as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isinf
from typing import Any

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from .records import SIDES, Quantities, number_text, unit_text

DAY_S = 86400.0
DILOCO = ("a step", "H", "in flight", "Gbit/s")
MOST_NAMED = 8  # tensors of a file


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _facts(rows: dict[str, str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows.items():
        if text:
            table.add_row(name, escape(text))
    return table


def _source(result: Any) -> dict[str, str]:
    s = result.statement
    return {
        "theorem": ", ".join(part for part in (s.theorem, s.status, s.reference) if part),
        "about": s.about,
        "needs": "; ".join(s.needs),
        "assuming": "; ".join(s.assumptions),
        "what to do": s.advice,
    }


def quantity(result: Any) -> Any:
    """Return one number with its evidence, or a table of several."""
    s = result.statement
    if isinstance(result, Quantities):
        names = [name for name, value in s.at.items() if name != "cluster" and not isinstance(value, str)]
        table = _table(*names, f"value [{s.unit}]", "from", "to", right=(*names, f"value [{s.unit}]", "from", "to"))
        for element in result:
            numbers = (float(element), element.lo, element.hi)
            table.add_row(*(element.statement.at[name] for name in names), *(repr(value) for value in numbers))
        return Group(escape(s.quantity), table, _facts(_source(result)))
    shown = f"{SIDES[s.side]} {number_text(float(result))} {unit_text(s.unit, float(result))}".strip()
    rows = {"value": shown, "certified" if result.certified else "interval": f"[{result.lo!r}, {result.hi!r}]"}
    return Group(escape(s.quantity), _facts(rows | _source(result)))


def tau(result: Any) -> Any:
    """Return tau* with the values around it."""
    taken = "" if result.certified else " if the constants are those taken"
    within = "within the learning rate's cap, " if result.rho is None else ""
    rows = {
        "tau*": f"{'' if result.certified else 'about '}{result.tau} (real {result.tau_real:.6g})",
        "interval": "" if result.certified else _uncertain_tau(result),
        "safe": _or_none(result.safe, f"{within}worst case covered{taken}"),
        "sharp": _or_none(result.sharp, "stragglers counted", "any: here local steps cost nothing")
        if result.rho is not None
        else _or_none(result.sharp, "stragglers counted"),
        "smooth": "" if result.smooth is None else _or_none(result.smooth, "third-order law, smooth losses only"),
        "cap": _or_none(result.cap, "largest that the learning rate allows") if result.rho is None else "",
    }
    return _facts(rows | _source(result))


def _uncertain_tau(result: Any) -> str:
    return f"{number_text(result.lo)} to {number_text(result.hi)} over assumed or estimated constants"


def _or_none(value: int | None, remark: str, without: str = "none: eta L > 1") -> str:
    return f"{without} ({remark})" if value is None else f"{value} ({remark})"


def ranking(plan: Any) -> Any:
    """Return the plan with its reasons."""
    round_s = ("compute", "encode", "send", "decode")
    right = (plan.by, "relative", "tau", "rounds", *round_s)
    table = _table("operator", *right, right=right)
    for choice in plan.ranking:
        parts = (choice.compute_s, choice.encode_s, choice.communicate_s, choice.decode_s)
        cost = choice.seconds if plan.by == "seconds" else choice.error
        totals = (f"{cost:.6g}", f"{choice.relative_cost:.3g}", str(choice.tau), number_text(choice.rounds))
        shown = (f"{part:.3g}" if part < inf else "" for part in parts)
        without = "says nothing" if choice.vacuous else "not covered"
        table.add_row(escape(choice.name), *(totals if choice.feasible else (without, "", "", "")), *shown)
    reasons = {choice.name: choice.reason for choice in plan.ranking}
    note = "compute, encode, send, decode: mean seconds of one round, one after the other"
    return Group(table, note, "", _facts({"assuming": "; ".join(plan.assumptions)}), "", _facts(reasons))


def pilot_plan(plan: Any) -> Any:
    """Return every operator's best choice by a pilot, and what to run in sentences."""
    right = ("time", "from", "to", "tau", "s a step", "progress")
    columns = ("operator", *right[:4], "in flight", *right[4:], "limited by")
    table = _table(*columns, right=right)
    for choice in plan.shown:
        if not choice.feasible:
            table.add_row(escape(choice.name), "unknown", *[""] * (len(columns) - 2))
            continue
        numbers = (choice.ratio, *choice.ratio_ends)
        step = (choice.seconds_per_step.value, choice.progress_per_step.value)
        table.add_row(
            escape(choice.way),
            *(f"{each:.4g}" for each in numbers),
            str(choice.tau),
            _in_flight(choice),
            *(f"{each:.4g}" for each in step),
            choice.limits,
        )
    facts = {"plan": plan.explain(), "assuming": "; ".join(plan.assumptions)}
    facts |= {
        f"{change.part}, twice as good": f"saves {change.saved_share:.1%} of the time" for change in plan.limits.changes
    }
    facts |= {f"not known, {place}": sentence for place, sentence in enumerate(plan.prediction.unknown, 1)}
    facts |= {choice.name: choice.reason for choice in plan.shown if not choice.feasible}
    return Group(table, "", _facts(facts))


def _in_flight(choice: Any) -> str:
    """Return what travels while the workers compute, and for how many steps."""
    if choice.buckets > 1:
        return f"{choice.buckets} buckets"
    if not choice.in_flight:
        return "no"
    steps = f"{choice.in_flight} step{'s' * (choice.in_flight > 1)}"
    return f"{choice.parts} parts, {steps}" if choice.parts > 1 else steps


def certified_tau(result: Any) -> Any:
    """Return the certified numbers of local steps."""
    names = tuple(result.rows[0])
    table = _table(*names, right=names)
    for row in result.rows:
        table.add_row(*(_of_period(name, value) for name, value in row.items()))
    open_taus = ", ".join(map(str, result.taus))
    proved = (
        "proved minimax optimal among the periods and rates tried" if result.is_minimax else "least certified bound"
    )
    facts = {"tau": f"{result.tau} at eta = {result.eta:g} ({proved})", "values": result.about}
    facts["a better proof"] = f"could choose among {open_taus}"
    facts |= {f"{row['value']} at tau = {row['tau']}": row["why"] for row in result.missing}
    return Group(table, "", _facts(facts))


def _of_period(name: str, value: float | None) -> str:
    if value is None:
        return "none"
    return number_text(value) if name in ("tau", "rounds") else f"{value:.6g}"


def outer(result: Any) -> Any:
    """Return what an outer step does on quadratics; never that it is good for a network."""
    names = ("outer step", "rate", "momentum", "merge", "a round", "noise")
    table = _table(*names, right=names[1:3])
    for row in (result.best, *result.rows):
        noise = "" if row["noise"] is None else f"{row['noise']:.4g}"
        noise += "" if row["loss"] is None else f", loss {row['loss']:.4g}"
        fate = f"error x {row['factor']:.5f}" if row["fate"] == "contracts" else row["fate"]
        table.add_row(escape(row["name"]), f"{row['lr']:.4g}", f"{row['momentum']:.4g}", row["merge"], fate, noise)
    limits = ", ".join(f"{row['lr']:.4g} at {row['momentum']:.4g}" for row in result.limits)
    facts = {
        "stable below": f"{limits} (Nesterov momentum; merge rule {result.merge}, {result.delay} steps in flight)",
        "a round": f"takes {result.h_min:.4g} (flattest direction) to {result.h_max:.4g} (steepest) of an error",
        "noise": "largest over the directions, in units of what plain blocking averages leave in the same direction",
        "libraries": "as remembered, not looked up: compare with the version that you run",
        "valid for": result.about,
        "looked at": "33 curvatures from mu to L; a limit between them can be slightly lower for late averages",
        "not known": "Adam or momentum inside, data that differ, several merges in flight at once",
    }
    return Group(table, "", _facts(facts))


def pilot(result: Any) -> Any:
    """Return what a pilot has measured, with intervals where there are any."""
    table = _table("operator", "bits", "nmse", "residual", "encode", "decode", right=("bits", "nmse", "residual"))
    for trial in result.operators:
        bits, nmse = (sum(each) / len(each) for each in (trial.bits, trial.nmse))
        residual = f"{max(trial.residuals):.3g}" if trial.residuals else ""
        codec = (trial.codec.encode_s_per_coordinate, trial.codec.decode_s_per_coordinate)
        table.add_row(
            escape(trial.operator), f"{bits:.4g}", f"{nmse:.4g}", residual, *(f"{each * 1e9:.3g} ns" for each in codec)
        )
    noise = result.noise()
    left = ", ".join(
        f"{share.value:.3f} after {tau}" for tau, share in zip(result.taus, result.survives(), strict=True)
    )
    facts = {
        "model": f"{result.d} trained parameters, {result.device}, {result.threads} threads, {result.ranks} ranks",
        "a step": _estimated(result.step(), " s"),
        "noise scale": _estimated(noise.scale, " batches") + " (variance of a batch's gradient over the squared mean)",
        "gradient left": f"{left} local steps (same batch, one worker's path)",
        "curvature": f"at least {result.curvature():.4g} along the path",
        "memory": f"{result.memory_bytes / 2**20:.0f} MiB",
    }
    facts |= {f"link, {timings.level}": _link_text(timings) for timings in result.links}
    facts["residual"] = "largest that error feedback carries, over the gradient's norm; empty where it is not tried"
    return Group(table, "", _facts(facts))


def prediction(result: Any) -> Any:
    """Return what a pilot foretells, against synchronous uncompressed training."""
    table = _table("", "value", "from", "to", right=("value", "from", "to"))
    names = {"seconds_per_step": "seconds a step", "progress_per_step": "progress a step", "time_ratio": "time"}
    for name, words in names.items():
        estimate = getattr(result, name)
        numbers = ("unknown",) if estimate is None else (estimate.value, *map(float, _ends(estimate)))
        table.add_row(words, *(each if isinstance(each, str) else f"{each:.4g}" for each in numbers))
    way = f"{result.operator or 'binary32'}, {result.exchange}, tau = {result.tau}, in flight: {_in_flight(result)}"
    worst = "" if result.certified_time_ratio is None else f"time x {result.certified_time_ratio:.4g}, "
    facts = {
        "training": way,
        "progress, time": "over those of synchronous uncompressed training on the same cluster, to the same fall of "
        "the loss; time below 1 is faster",
        "limited by": result.limits,
        "worst case": worst + result.certified,
    }
    facts |= {f"not known, {place}": sentence for place, sentence in enumerate(result.unknown, 1)}
    return Group(table, "", _facts(facts))


def _ends(estimate: Any) -> tuple[Any, Any]:
    return estimate.interval.lo, estimate.interval.hi


def _estimated(estimate: Any, unit: str) -> str:
    ends = f"{estimate.interval.lo:.4g} to {estimate.interval.hi:.4g}"
    return f"{estimate.value:.4g}{unit} (interval at {estimate.level:g}: {ends})"


def _link_text(timings: Any) -> str:
    try:
        return f"{timings.link().in_words()}, {timings.ranks} ranks"
    except ValueError as error:
        return str(error)


def pretraining(result: Any) -> Any:
    """Return what a training takes by how its workers average, and the bandwidths that it asks for."""
    needed = [f"x = {share:.4g}" for share in result.utilisations]
    names = ("averages", "a step", "training", "x", *needed)
    table = _table(*names, right=names[1:])
    for row in result.rows:
        links = ("none" if isinf(bit_per_s) else f"{bit_per_s / 1e9:.3g}" for bit_per_s in row["bit_per_s"])
        shares = f"{row['step_s']:.4g} s", f"{row['seconds'] / DAY_S:.4g} days", f"{row['utilisation']:.3g}"
        table.add_row(row["name"], *shares, *links)
    facts = {
        "training": f"{result.steps} steps of {result.step_s:.4g} s, {result.flop:.3g} operations (6 N D)",
        "cluster": result.cluster.in_words(),
        "messages": f"{result.bits_per_value:g} bits a value of a movement, {result.gradient_bits_per_value:g} bits a "
        "value of a gradient",
        "x": "share of the time in which a worker computes; x = ...: Gbit/s of a link at which it is so (none is "
        "enough where latency or stragglers alone take more)",
        "leaves out": result.about,
    }
    return Group(table, "", _diloco(result), "", _recalled(result), "", _facts(facts))


def _diloco(result: Any) -> Any:
    if not result.diloco:
        return "DiLoCo: no exchange to hide"
    merges = tuple(result.diloco[0]["lr_below"])
    table = _table("DiLoCo: fragments", *DILOCO, *merges, right=(*DILOCO, *merges))
    for row in result.diloco:
        limits = ("refused" if lr is None else "any" if isinf(lr) else f"{lr:.3g}" for lr in row["lr_below"].values())
        mark = " (suggested)" if row["suggested"] else ""
        table.add_row(
            f"{row['parts']}{mark}",
            f"{row['step_s']:.4g} s",
            *(str(row["tau"]), str(row["in_flight"]), f"{row['bit_per_s'] / 1e9:.3g}"),
            *limits,
        )
    outer = result.outer
    notes = {
        "H, in flight": "least local steps, and steps while a fragment travels, at which the exchange adds at most 1 % "
        "to a step, and a step takes at most 1 % more than in the rhythm asked for; suggested: of the fastest within "
        "1 % the one with fewest steps in flight; Gbit/s: of a link that is enough for that",
        "outer step": f"{outer['status'].upper()}, not checked here: Nesterov, rate {outer['lr']:g}, momentum "
        f"{outer['momentum']:g} ({outer['source']})",
        "refused": "overwrite with all steps in flight drops every step",
        "by merge rule": f"outer rates below which quadratics with curvatures up to 1/eta are stable at momentum "
        f"{outer['momentum']:g}; ratedist outer says more",
    }
    return Group(table, _facts(notes))


def _recalled(result: Any) -> Any:
    table = _table("RECALLED", "tokens for this model", "loss after the tokens asked", right=("tokens for this model",))
    for row in result.recalled:
        loss = "" if row["loss"] is None else f"{row['loss']:.3f} nats"
        table.add_row(f"{row['source']}: {row['where']}", f"{row['tokens']:.3g}", loss)
    return Group(table, "fits to other people's runs and data, recalled and not checked here; nothing above uses them")


def allreduce(result: Any) -> Any:
    """Return what one averaging costs."""
    d = result.d
    rows = {
        "exchange": f"{result.exchange}, {result.operator}" + (f", {result.returned} back" if result.returned else ""),
        "sent": f"{result.sent_bits / d:.4g} bits a coordinate; binary32 in a ring {result.dense_bits / d:.4g}",
        "seconds": f"{result.seconds:.4g} (links {result.communicate_s:.4g}, coding "
        f"{result.encode_s + result.decode_s:.4g})",
    }
    if result.nmse is not None:
        rows["error"] = f"{result.remark}: " * result.is_vacuous + (
            f"at most {result.nmse:.4g} of |mean|^2 for independent vectors, {result.aligned_nmse:.4g} for equal ones "
            f"({result.theorem})"
        )
    if result.limit_bits is not None:
        rows["limit"] = f"{result.limit_bits:.4g} bits a coordinate received; {result.gap_bits:.4g} above it"
        if result.ideal_bits is not None:
            rows["limit"] += f", ideal blocks on this way {result.ideal_bits - result.limit_bits:.4g} above it"
    return _facts(rows)


def catalogue(found: Any) -> Any:
    """Return the compressors at one dimension."""
    right = ("bits", "limit")
    outside = ("from",) if any(entry.origin != "ratedist" for entry in found.entries) else ()
    table = _table("operator", "claim", *right, "randomness", *outside, right=right)
    for entry in found.entries:
        bits, limit = ("" if v is None else f"{v / found.d:.4g}" for v in (entry.bits, entry.limit))
        origin = (escape(entry.origin),) if outside else ()
        table.add_row(escape(entry.operator), escape(entry.claim), bits, limit, entry.randomness, *origin)
    return Group(
        table, f"bits and limit: a coordinate at d = {number_text(found.d)}; limit: of the class at its constant"
    )


def report(found: Any) -> Any:
    """Return the laws that failed or have something to say, and the counts."""
    return Text(str(found))


def theorems(rows: list[dict[str, Any]]) -> Any:
    """Return names, symbols and statements."""
    table = _table("theorem", "symbols", "status", "says")
    for row in rows:
        table.add_row(row["theorem"], " ".join(row["symbols"]), row["status"], escape(row["says"]))
    return table


def _of_file(tensors: Sequence[str], left_out: Sequence[str]) -> list[str]:
    """Return lines that name the tensors of a file, none without a file."""
    lines = (("read", tensors), ("left out", left_out))
    return [f"{what}: {escape(_listed(names))}" for what, names in lines if names]


def _listed(names: Sequence[str]) -> str:
    first = ", ".join(" ".join(name.split()) for name in names[:MOST_NAMED])
    return first if len(names) <= MOST_NAMED else f"{first} and {len(names) - MOST_NAMED} more"


def measured(found: Sequence[Any], d: int, tensors: Sequence[str] = (), left_out: Sequence[str] = ()) -> Any:
    """Return bits, error and gap, the smallest gap first."""
    right = ("bits", "nmse", "limit", "gap")
    table = _table("operator", *right, "claim", "limit of", right=right)
    for row in sorted(found, key=lambda m: float("inf") if m.gap is None else m.gap):
        limit, gap = ("" if v is None else f"{v:.4f}" for v in (row.limit, row.gap))
        texts = escape(row.claim), escape(row.limit_of)
        table.add_row(escape(row.operator), f"{row.bits:.4f}", f"{row.nmse:.4g}", limit, gap, *texts)
    note = f"a coordinate, d = {number_text(d)}; limit: of the class and error in the last column; gap: bits - limit"
    return Group(table, note, *_of_file(tensors, left_out))


def comparison(result: Any) -> Any:
    """Return compressors at equal bits, in the order in which they were named."""
    right = ("asked", "bits", "nmse", "gap", "source gap", "seconds")
    has_source = any(row.source_gap is not None for row in result.rows)
    shown = tuple(name for name in right if name != "source gap" or has_source)
    table = _table("operator", *shown, right=right)
    for row in result.rows:
        cells = row.row()
        texts = {
            "asked": "" if row.asked is None else f"{row.asked:g}",
            "bits": _or_empty(cells["bits"], ".4f"),
            "nmse": _or_empty(cells["nmse"], ".4g"),
            "gap": _or_empty(cells["gap"], ".3f"),
            "source gap": _or_empty(cells["source_gap"], ".3f"),
            "seconds": _or_empty(cells["seconds"], ".2e"),
        }
        table.add_row(escape(str(cells["operator"])), *(texts[name] for name in shown))
    note = (
        f"a coordinate, d = {number_text(result.d)}; gap: bits above the limit of the operator's class at its error"
        + (
            "; source gap: above this vector's own limit, its coordinates taken as independent draws"
            if has_source
            else ""
        )
        + "; seconds: encode and decode here"
    )
    remarks = [f"not measured: {escape(row.remark)}" for row in result.rows if row.remark]
    return Group(table, note, *remarks, *_of_file(result.tensors, result.left_out))


def _or_empty(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
