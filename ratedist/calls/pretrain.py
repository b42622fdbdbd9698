"""How long a language model trains on a cluster, and which link would be fast enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from bounds import symbols
from bounds.frame import frame
from bounds.symbols import Domain

from .. import numbers
from ..cluster.cluster import Cluster, checked_cluster
from ..cluster.links import Exchange
from ..numbers import number, read, refusal
from ..plans.pretraining import (
    FLOP_PER_PARAMETER_AND_TOKEN,
    PUBLISHED,
    Messages,
    Round,
    hidden_settings,
    recalled,
    rounds,
)
from ..records import LABEL, Answer, Answered, Table, plain
from .call import Call, Command, Route
from .shared import CLUSTER_EXAMPLE

if TYPE_CHECKING:
    from pandas import DataFrame

PLAIN = ("steps", "step_s", "flop", "bits_per_value", "gradient_bits_per_value", "about")
UTILISATIONS = (0.5, 0.8, 0.95, 1.0)
MOST_SHARES = 16
VALUE_BITS = 16.0
TAU = 32
DAY_S = 86400.0
NOTES: dict[str, str] = {
    "x": "share of the time in which a worker computes; x = ...: Gbit/s of a link at which it is so; none is enough "
    "where latency or stragglers alone take more",
    "H, in flight": "least local steps, and steps while a fragment travels, at which the exchange adds at most 1 % to "
    "a step, and a step takes at most 1 % more than in the rhythm asked for",
    "suggested": "of the fastest within 1 % the one with fewest steps in flight",
    "Gbit/s": "of a link that is enough for that",
    "refused": "overwrite with all steps in flight drops every step",
    "merge rules": "outer rates below which quadratics with curvatures up to 1/eta are stable",
}
SHARE = Domain(0, 1, open_above=False)
COUNT = Domain(1, open_below=False, integer=True)
MODEL = (
    "what a step is worth when models are averaged rarely, late or compressed (all rows make the same steps), and "
    "memory and pipelines inside a worker"
)


@dataclass(frozen=True)
class Pretraining(Answered):
    """What a language model's training takes, by how its workers average.

    Parameters
    ----------
    steps : int
        Of the whole training.
    step_s : float, seconds
        Mean computing time of one step.
    flop : float
        Operations of the whole training, 6 per parameter and token.
    rows : tuple of dict
        For each "name": local steps "tau", seconds a step ("step_s"), "seconds" of the training, "utilisation" (share
        of the time that a worker computes), and "bit_per_s", the bandwidth of a link that each of ``utilisations``
        needs (inf: none is enough).
    utilisations : tuple of float
        Shares of the time for which bandwidths are stated.
    cluster : Cluster
        With the computed ``step_s``.
    diloco : tuple of dict
        For each number of fragments ("parts") the least local steps "tau" and steps "in_flight" at which the cluster
        hides the exchange and a step is as fast as in the rhythm asked for, with its seconds "step_s", the "bit_per_s"
        of a link that this needs, "lr_below" (by merge rule, the outer rate below which quadratics are stable at the
        published momentum; None where every step is dropped) and whether it is "suggested".
    recalled : tuple of dict
        What published scaling laws say, each with its "status" (always "recalled": other people's fits, unchecked),
        "source" and "bibtex": "tokens" for a model of this size, and the "loss" after the tokens asked about.
    bits_per_value : float, bits
        Of a movement of the model, per parameter.
    gradient_bits_per_value : float, bits
        Of a gradient, per parameter.
    about : str
        What the model leaves out.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    """

    steps: int
    step_s: float
    flop: float
    rows: tuple[dict[str, Any], ...]
    utilisations: tuple[float, ...]
    cluster: Cluster
    diloco: tuple[dict[str, Any], ...]
    recalled: tuple[dict[str, Any], ...]
    bits_per_value: float
    gradient_bits_per_value: float
    about: str = MODEL
    assumed: tuple[str, ...] = ()

    def answer(self) -> Answer:
        """Return which way to average trains fastest, and the bandwidth that each needs."""
        best, first = min(self.rows, key=lambda row: float(row["seconds"])), self.rows[0]
        suggested = next((row for row in self.diloco if row["suggested"]), None)
        facts = {
            first["name"][:LABEL]: f"{first['seconds'] / DAY_S:.4g} days, "
            f"{first['seconds'] / best['seconds']:.3g} x as long",
            "DiLoCo": ""
            if suggested is None
            else (
                f"{suggested['parts']} fragments, H = {suggested['tau']}, {suggested['in_flight']} steps in flight: "
                f"{suggested['step_s']:.4g} s a step, needs {suggested['bit_per_s'] / 1e9:.3g} Gbit/s"
            ),
            "outer step": f"rate {self.outer['lr']:g}, Nesterov {self.outer['momentum']:g} "
            f"({self.outer['source']}, recalled, not checked)",
            "computing": f"{self.steps} steps of {self.step_s:.4g} s, {self.flop:.3g} operations (6 N D)",
            "no loss": "is predicted: every row makes the same steps",
        }
        return Answer(
            f"Average {best['name']}: {best['seconds'] / DAY_S:.4g} days.",
            facts,
            (self._ways(), *([self._diloco()] if self.diloco else []), self._recalled()),
            left_out="what a step is worth when models are averaged rarely, late or compressed",
            assumed=self.assumed,
            evidence=NOTES | {"leaves out": self.about, "cluster": self.cluster.in_words()},
        )

    def _ways(self) -> Table:
        rows = []
        for row in self.rows:
            links = ("none" if math.isinf(bit_per_s) else f"{bit_per_s / 1e9:.3g}" for bit_per_s in row["bit_per_s"])
            rows.append(
                (
                    row["name"],
                    f"{row['step_s']:.4g}",
                    f"{row['seconds'] / DAY_S:.4g}",
                    f"{row['utilisation']:.3g}",
                    *links,
                )
            )
        columns = ("averages", "step [s]", "days", "x", *(f"x={share:g}" for share in self.utilisations))
        return Table(columns, tuple(rows), note="x: share of computing; x=...: Gbit/s a link that reaches it")

    def _diloco(self) -> Table:
        merges = tuple(self.diloco[0]["lr_below"])
        rows = []
        for row in self.diloco:
            limits = (
                "refused" if lr is None else "any" if math.isinf(lr) else f"{lr:.3g}" for lr in row["lr_below"].values()
            )
            numbers = (f"{row['step_s']:.4g}", str(row["tau"]), str(row["in_flight"]), f"{row['bit_per_s'] / 1e9:.3g}")
            rows.append((f"{row['parts']}{' *' * row['suggested']}", *numbers, *limits))
        columns = ("parts", "step [s]", "H", "in flight", "Gbit/s", *merges)
        return Table(
            columns,
            tuple(rows),
            note="DiLoCo (* suggested); by merge rule: outer rates below which it is stable",
        )

    def _recalled(self) -> Table:
        rows = tuple(
            (row["source"], row["where"], f"{row['tokens']:.3g}", "" if row["loss"] is None else f"{row['loss']:.3f}")
            for row in self.recalled
        )
        note = "RECALLED: fits to other people's runs, not checked here; nothing above uses them"
        return Table(("source", "where", "tokens for N", "loss [nats]"), rows, left=frozenset({"where"}), note=note)

    @property
    def outer(self) -> dict[str, Any]:
        """The published outer step with "lr", "momentum", "nesterov", its "status" (recalled) and "source"."""
        step = {"lr": PUBLISHED.lr, "momentum": PUBLISHED.momentum, "nesterov": True}
        return step | {"status": PUBLISHED.status.value, "source": PUBLISHED.reference.key}

    def to_frame(self) -> DataFrame:
        """Return one row a way to average; a column "bit_per_s at x" for each x of ``utilisations``, in bit/s."""
        needed = [f"bit_per_s at {share:g}" for share in self.utilisations]
        return frame(
            [
                {name: each for name, each in row.items() if name != "bit_per_s"}
                | dict(zip(needed, row["bit_per_s"], strict=True))
                for row in self.rows
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values; a bandwidth that nothing reaches is None."""
        rows = [
            row | {"bit_per_s": [None if math.isinf(needed) else needed for needed in row["bit_per_s"]]}
            for row in self.rows
        ]
        fields = {name: getattr(self, name) for name in PLAIN}
        settings = [
            row | {"lr_below": {name: plain(lr) for name, lr in row["lr_below"].items()}} for row in self.diloco
        ]
        fields["assumed"] = list(self.assumed)
        fields |= {"utilisations": list(self.utilisations), "rows": rows, "cluster": self.cluster.in_words()}
        return fields | {"diloco": settings, "outer": self.outer, "recalled": list(self.recalled)}


def pretrain(
    cluster: Cluster,
    *,
    parameters: numbers.Number,
    tokens: numbers.Number,
    batch_tokens: numbers.Number,
    flop_per_s: numbers.Number,
    tau: numbers.Number = TAU,
    in_flight: numbers.Number | None = None,
    parts: numbers.Number = 1,
    bits_per_value: numbers.Number = VALUE_BITS,
    gradient_bits_per_value: numbers.Number = VALUE_BITS,
    exchange: Exchange = "sum",
    utilisations: numbers.Numbers = UTILISATIONS,
) -> Pretraining:
    """Return seconds and utilisation of a language model's training, and the bandwidth that it asks for.

    Parameters
    ----------
    cluster : Cluster
        Its workers are the replicas of the model; its ``step_s`` is computed here, its law of the steps is kept.
    parameters : array_like
        Parameters N of the model, such as 8B.
    tokens : array_like
        Tokens of the whole training, such as 160B.
    batch_tokens : array_like
        Tokens of one step of all workers together, such as 4M.
    flop_per_s : array_like, 1/s
        Operations per second of one worker, such as 4e14.  Its accelerators together, times the share of their peak
        that the model reaches.
    tau : array_like, optional
        Local steps between two averages of the same parameter, a multiple of parts (H of DiLoCo).
    in_flight : array_like or None, optional
        Steps made while a message travels, at most tau/parts; all of them unless given.
    parts : array_like, optional
        Fragments of the model, sent one after the other (Streaming DiLoCo).
    bits_per_value : array_like, bits, optional
        Bits of a movement of the model, per parameter: 16 for bfloat16, 4 for a compressed one, and so on.
    gradient_bits_per_value : array_like, bits, optional
        Bits of a gradient, per parameter: summed at every step, and in sums inside nodes.
    exchange : {"sum", "gather", "two_shot", "node_gather", "node_two_shot"}, optional
        How movements travel.  "sum": on their way (dense ones).
    utilisations : array_like, optional
        Shares of the time that workers shall compute, for which bandwidths are stated.

    Raises
    ------
    ValueError
        For arguments outside the ranges, and a cluster whose law has a mean of its own.

    Notes
    -----
    A step takes 6 N (batch_tokens/workers)/flop_per_s on average: two operations per parameter and token forward, four
    backward; attention over long contexts adds to that.  No loss is predicted: those of ``recalled`` are fits to other
    people's runs, which nothing else here uses.

    Examples
    --------
    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=1024, compute="constant", latency_s=0, bandwidth_bit_per_s=10e9)
    >>> rate = 6 * 8e9 * 4096 / 0.5  # half a second for the 4096 tokens of a worker
    >>> asked = {"parameters": 8e9, "tokens": 160e9, "batch_tokens": 1024 * 4096, "flop_per_s": rate}
    >>> found = rd.pretrain(cluster, **asked, tau=37)
    >>> round(found.rows[-1]["bit_per_s"][-1] / 8e9, 2)  # GB/s at which averages in flight cost nothing
    1.73
    >>> found.outer["lr"], found.outer["momentum"], found.outer["status"]
    (0.7, 0.9, 'recalled')
    """
    cluster = checked_cluster(cluster)
    if not isinstance(cluster.compute, str):
        raise ValueError(
            f"pretrain computes the mean of a step; got compute = {cluster.compute!r}, which has one of its own: give "
            'compute="constant", "exponential" or "half_exponential"'
        )
    size, steps_of_round, fragments = _whole("parameters", parameters), _whole("tau", tau), _whole("parts", parts)
    all_tokens, batch = _positive("tokens", tokens), _positive("batch_tokens", batch_tokens)
    if batch > all_tokens:
        raise refusal("batch_tokens", "batch_tokens <= tokens", f"{batch:g}, tokens = {all_tokens:g}")
    share_of_worker = batch / cluster.workers
    step_s = FLOP_PER_PARAMETER_AND_TOKEN * size * share_of_worker / _positive("flop_per_s", flop_per_s)
    flight = steps_of_round // fragments if in_flight is None else _whole("in_flight", in_flight)
    shares = _shares(utilisations)
    cluster = cluster.with_parts(step_s=step_s)
    steps = math.ceil(all_tokens / batch)
    bits = _positive("bits_per_value", bits_per_value) * size
    dense_bits = _positive("gradient_bits_per_value", gradient_bits_per_value) * size
    ways = rounds(
        bits=bits,
        dense_bits=dense_bits,
        exchange=exchange,
        tau=steps_of_round,
        in_flight=flight,
        parts=fragments,
    )
    flop = float(FLOP_PER_PARAMETER_AND_TOKEN) * size * all_tokens
    rows = tuple(_row(way, cluster, steps, shares) for way in ways)
    return Pretraining(
        steps=steps,
        step_s=step_s,
        flop=flop,
        rows=rows,
        utilisations=shares,
        cluster=cluster,
        diloco=hidden_settings(Messages(bits, dense_bits, exchange), cluster, steps_of_round),
        recalled=recalled(size, all_tokens),
        bits_per_value=bits / size,
        gradient_bits_per_value=dense_bits / size,
        assumed=(
            *cluster.assumed(),
            *((f"tau = {TAU}",) if tau == TAU else ()),
            *(("1 fragment",) if parts == 1 else ()),
            *((f"{VALUE_BITS:g} bits a value",) if bits_per_value == VALUE_BITS else ()),
            *((f"{VALUE_BITS:g} bits a gradient's",) if gradient_bits_per_value == VALUE_BITS else ()),
        ),
    )


def _row(way: Round, cluster: Cluster, steps: int, shares: tuple[float, ...]) -> dict[str, Any]:
    each_s = way.seconds_per_step(cluster)
    return {
        "name": way.name,
        "tau": way.tau,
        "step_s": each_s,
        "seconds": steps * each_s,
        "utilisation": way.utilisation(cluster),
        "bit_per_s": [way.bandwidth_for(share, cluster) for share in shares],
    }


def _shares(given: Any) -> tuple[float, ...]:
    asked = read("utilisations", given, SHARE)
    shares = (float(Fraction(asked)),) if isinstance(asked, str) else tuple(asked.ravel().tolist())
    if len(shares) > MOST_SHARES:
        raise ValueError(f"utilisations must be at most {MOST_SHARES} numbers; got {len(shares)}: leave some out")
    return shares


def _positive(name: str, given: Any) -> float:
    return float(Fraction(number(name, given, symbols.POSITIVE)))


def _whole(name: str, given: Any) -> int:
    stated = Fraction(number(name, given, COUNT))
    if stated.denominator != 1:
        raise refusal(name, f"{name} whole", given)
    return int(stated)


CALL = Call(
    name="pretrain",
    summary="how long a language model trains, and which link is fast enough for it",
    place=6,
    function=pretrain,
    command=Command(
        examples=(
            "--workers 16 --compute constant --bandwidth-bit-per-s 1e10 --parameters 8B --tokens 160B "
            "--batch-tokens 4M --flop-per-s 3.2e15 --tau 32 --parts 4",
        )
    ),
    route=Route(
        about="A model, its tokens, and how its workers average.",
        example={
            "cluster": CLUSTER_EXAMPLE,
            "parameters": 8e9,
            "tokens": 160e9,
            "batch_tokens": 4e6,
            "flop_per_s": 3.2e15,
        },
        stated=False,
    ),
)
