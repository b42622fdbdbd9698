"""The answer of a plan: all choices with their costs, best first, and where the best one changes."""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from bounds.estimate import Estimate
from bounds.frame import frame

from ..cluster.cluster import Cluster
from ..records import Answer, Answered, Table, number_text, plain
from .problem import LEFT_OUT
from .run import Limits

if TYPE_CHECKING:
    from pandas import DataFrame

    from bounds import plan as planner


# -- where the best choice changes ---------------------------------------------------------------------

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
    where = "between nodes" if cluster.nodes else "per link"
    return f"{factor * cluster.links[1].bandwidth_bit_per_s / 1e9:.3g} Gbit/s {where}"


def turns(
    best: Any, rivals: dict[str, Any], cost: Callable[[Any, float], float], cluster: Cluster
) -> tuple[dict[str, Any], ...]:
    """Return which rivals lead on faster or slower links, the nearest bandwidth first.

    A rival that already costs less is skipped: the ranking puts it behind for another reason.

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
    for name, rival in rivals.items():
        if cost(rival, 1.0) < cost(best, 1.0):
            continue
        for reach, side in ((REACH, "above"), (1 / REACH, "below")):
            factor = crossing(lambda scale, rival=rival: cost(best, scale) <= cost(rival, scale), reach)  # type: ignore[misc]
            if factor is not None:
                words = f"{operator_text(name)} is faster {side} {bandwidth_text(factor, cluster)}"
                bit_per_s = factor * cluster.links[1].bandwidth_bit_per_s
                turned.append({"rival": name, "side": side, "bit_per_s": bit_per_s, "words": words})
    yours = cluster.links[1].bandwidth_bit_per_s
    return tuple(sorted(turned, key=lambda turn: abs(math.log(turn["bit_per_s"] / yours))))


# -- a table of choices --------------------------------------------------------------------------------


class Rankable(Protocol):
    """One row of such a table."""

    @property
    def operator(self) -> str:
        """The compressor's specification."""

    @property
    def feasible(self) -> bool:
        """Whether it has a place in the order."""

    @property
    def relative_cost(self) -> float:
        """Over the best choice's."""

    @property
    def name(self) -> str:
        """What it is, in words."""

    @property
    def reason(self) -> str:
        """Why it stands where it does, or has no place, in words."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""

    def row(self) -> Mapping[str, Any]:
        """Return one column a name, for a table of numbers."""


ChoiceT = TypeVar("ChoiceT", bound=Rankable)


def way_text(operator: str, exchange: str, returned: str) -> str:
    """Return operator and exchange in words, in two shots with the operators of both stages.

    Parameters
    ----------
    operator : str
        The specification of what workers send.
    exchange : str
        How messages travel.
    returned : str
        The owners' operator in two shots.
    """
    where = " between nodes" if exchange.startswith("node_") else ""
    if not exchange.endswith("two_shot"):
        return f"{operator_text(operator)} gathered{where}" if where else operator_text(operator)
    back = f", means by {returned}" if returned != operator else ""
    return f"{operator} in two shots{where}{back}"


def operator_text(operator: str) -> str:
    """Return a specification as answers show it.

    Parameters
    ----------
    operator : str
        The specification, or "binary32" for messages that are not compressed.
    """
    return "uncompressed" if operator in ("identity", "binary32") else operator


EXCHANGES = {
    "sum": ("sum", "added on the way"),
    "gather": ("gather", "every message to every worker"),
    "two_shot": ("two shots", "shards to their owners, means back"),
    "node_gather": ("gather by node", "exact sums in a node, one message per node to all"),
    "node_two_shot": ("shots by node", "exact sums in a node, then two shots between nodes"),
}


def exchange_text(exchange: str) -> str:
    """Return how messages travel, in the words of a table.

    Parameters
    ----------
    exchange : str
        One of ``EXCHANGES``; empty where nothing is sent.
    """
    return EXCHANGES[exchange][0] if exchange else ""


def exchange_note(exchanges: Iterable[str]) -> str:
    """Return what the words for some exchanges mean.

    Parameters
    ----------
    exchanges : iterable of str
        Those in a table.
    """
    used = set(exchanges)
    return "; ".join(f"{word}: {meaning}" for name, (word, meaning) in EXCHANGES.items() if name in used)


@dataclass(frozen=True, repr=False)
class Ranked(Answered, ABC, Generic[ChoiceT]):
    """Choices, best first; what has no place in the order comes last.

    Parameters
    ----------
    ranking : tuple
        The choices in that order.
    assumptions : tuple of str
        Under which the numbers hold, in words.
    assumed : tuple of str, optional
        What the caller did not state, with the values that were taken.
    """

    ranking: tuple[ChoiceT, ...]
    assumptions: tuple[str, ...]
    assumed: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def best(self) -> ChoiceT:
        """The winner.

        Raises
        ------
        ValueError
            If no operator is feasible.
        """
        if not self.ranking[0].feasible:
            raise ValueError(f"no operator is feasible; {self.explain()}")
        return self.ranking[0]

    @cached_property
    def turns(self) -> tuple[dict[str, Any], ...]:
        """Bandwidths ("bit_per_s") at which another choice ("rival") leads, "above" or "below" it; "words" say so.

        Of the two best rivals.
        """
        return self._turned(MOST_RIVALS) or ()

    def turn_text(self) -> str:
        """Return the nearest bandwidth at which another compressor leads, or that none does; empty without another."""
        turned = self.turns or self._turned(len(self.ranking))
        if turned is None:
            return ""
        none = f"the same choice at 1/{REACH:g} and at {REACH:g} times your bandwidth"
        return next((turn["words"] for turn in turned), none)

    def _turned(self, most: int) -> tuple[dict[str, Any], ...] | None:
        """Return ``turns`` of so many rivals; None where there is none."""
        return None

    @property
    def shown(self) -> tuple[ChoiceT, ...]:
        """The first choice of every operator."""
        first: dict[str, ChoiceT] = {}
        for choice in self.ranking:
            first.setdefault(choice.operator, choice)
        return tuple(first.values())

    @property
    @abstractmethod
    def verdict(self) -> str:
        """The sentence that the answer begins with, which says what to use."""

    @abstractmethod
    def explain(self) -> str:
        """Return what to use, and why."""

    @abstractmethod
    def cost_text(self, choice: ChoiceT) -> str:
        """Return what the choice is ranked by, with its unit.

        Parameters
        ----------
        choice
            One of ``ranking``.
        """

    @abstractmethod
    def costs(self) -> tuple[str, dict[str, tuple[float, float, float]]]:
        """Return what the choices shown are ranked by, in words, and by their names value and ends of it."""

    def to_frame(self) -> DataFrame:
        """Return one row a choice, best first, with the units of its fields, but for what limits it."""
        return frame([choice.row() for choice in self.ranking])

    def to_dict(self) -> dict[str, Any]:
        """Return the ranking as plain values."""
        ranking = [choice.to_dict() for choice in self.ranking]
        conditions: dict[str, Any] = {
            "verdict": self.verdict,
            "assumptions": list(self.assumptions),
            "assumed": list(self.assumed),
        }
        return {"ranking": ranking} | conditions | {"explanation": self.explain()}

    def __repr__(self) -> str:
        width = max(len(c.name) for c in self.shown)
        rows = (
            f"  {c.name:{width}}  " + (f"{self.cost_text(c)}  {c.relative_cost:.3g}x" if c.feasible else c.reason)
            for c in self.shown
        )
        return f"{type(self).__name__}(\n" + "\n".join(rows) + "\n)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(c.name)}</td><td>{html.escape(self.cost_text(c))}</td><td>{c.relative_cost:.3g}</td>"
            f"<td style='text-align:left'>{html.escape(c.reason)}</td></tr>"
            for c in self.shown
        )
        head = "<tr><th>operator</th><th>cost</th><th>relative</th><th style='text-align:left'>reasons</th></tr>"
        return f"<table>{head}{rows}</table><p>{html.escape('; '.join(self.assumptions))}</p>"

    def plot(self, *, ax: Any = None) -> Any:
        """Return bars of what each operator's first choice costs, best first; returns the matplotlib axes.

        Parameters
        ----------
        ax : optional
            Matplotlib axes to draw on; new ones unless given.
        """
        from ..drawing import plot_ranking

        unit, costs = self.costs()
        return plot_ranking(costs, unit=unit, title="; ".join(self.assumptions[:1]), ax=ax)


# -- the answer of a plan ------------------------------------------------------------------------------

DISTINCT = 1.005  # a smaller ratio would print as 1


def family_of(choice: Choice) -> str:
    """Return the name of a choice's compressor without its parameters.

    Parameters
    ----------
    choice : Choice
        One of a ranking.
    """
    return choice.operator.partition(":")[0]


@dataclass(frozen=True)
class Choice:
    """What one operator would cost, or why it cannot be judged.

    Parameters
    ----------
    operator : str
        Its specification.
    feasible : bool
        Whether a PROVED or VERIFIED theorem covers it.
    reasons : tuple of str
        In words.
    theorem : str, optional
        The theorem behind the numbers.
    status : str, optional
        How far that theorem can be trusted.
    seconds : float, optional
        Seconds of the whole run.
    rounds : int, optional
        Communication rounds of the whole run.
    tau : int, optional
        Local steps a round.
    eta : float or None, optional
        Learning rate; None where the method has its own.
    bits : float, bits, optional
        Bits that one worker sends in the whole run.
    message_bits : float, bits, optional
        Of one message, on average at most.
    error : float, optional
        Certified, at most.
    relative_cost : float, optional
        Seconds (or error, for a time budget) over the best choice's.
    compute_s : float, seconds, optional
        Mean seconds of computing in one round; the four parts follow one another.
    encode_s : float, seconds, optional
        Mean seconds of encoding in one round.
    communicate_s : float, seconds, optional
        Mean seconds of the links in one round.
    decode_s : float, seconds, optional
        Mean seconds of decoding in one round.
    start_s : float or None, seconds, optional
        Seconds of the uncompressed averaging that stands in the first round for the last three; None if there is none.
    cost_between : tuple of float or None, optional
        Seconds (or error, for a time budget) over what estimates of L, sigma2 and gap leave open, each end with the tau
        and eta that are best there; None where all are known.
    exchange : str, optional
        "sum", "gather" or "two_shot"; "node_gather" or "node_two_shot" for exact sums inside nodes and messages of
        nodes, to which bits and message_bits then belong.
    returned : str, optional
        The owners' operator, by its specification, in two shots.
    coded : float, optional
        Vectors of d coordinates that the busiest rank encodes and decodes in one averaging.
    break_even_coordinates_per_s : float or None, optional
        Of the winner: how many coordinates its codec has to code in a second to lead what needs no codec.
    lead_coordinates_per_s : float or None, optional
        The same, to take at most 0.45 of the seconds of what needs no codec; None where even free codecs do not.
    limits : Limits or None, optional
        What limits a round, and what a faster part of the cluster would save; None where nothing is covered.
    vacuous : bool, optional
        Whether the theorem covers the operator and its guarantee says nothing: the start is as good.
    """

    operator: str
    feasible: bool
    reasons: tuple[str, ...]
    theorem: str = ""
    status: str = ""
    seconds: float = math.inf
    rounds: int = 0
    tau: int = 0
    eta: float | None = None
    bits: float = math.inf
    message_bits: float = math.inf
    error: float = math.inf
    relative_cost: float = math.inf
    compute_s: float = math.inf
    encode_s: float = math.inf
    communicate_s: float = math.inf
    decode_s: float = math.inf
    start_s: float | None = None
    cost_between: tuple[float, float] | None = None
    exchange: str = ""
    returned: str = ""
    coded: float = 0.0
    break_even_coordinates_per_s: float | None = None
    lead_coordinates_per_s: float | None = None
    limits: Limits | None = None
    vacuous: bool = False

    @property
    def name(self) -> str:
        """Operator and exchange, in two shots with the operators of both stages."""
        return way_text(self.operator, self.exchange, self.returned)

    @property
    def reason(self) -> str:
        """All reasons as one text."""
        return "; ".join(self.reasons)

    def row(self) -> dict[str, Any]:
        """Return the fields by their names, but for what limits it."""
        return {name: each for name, each in vars(self).items() if name != "limits"}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        limits = None if self.limits is None else self.limits.to_dict()
        return {name: plain(value) for name, value in self.row().items()} | {"limits": limits}


@dataclass(frozen=True, repr=False)
class Ranking(Ranked[Choice]):
    """Every operator asked for, best first; what no theorem covers comes last.

    Parameters
    ----------
    ranking : tuple of Choice
        The choices in that order.
    assumptions : tuple of str
        Under which the numbers hold, in words.
    by : {"seconds", "error"}, optional
        "seconds" (to a target) or "error" (after a time budget).
    needs : tuple of str, optional
        The hypotheses of all theorems that were used, each once.
    cluster : Cluster or None, optional
        Workers and links.
    cost_of : callable or None, optional
        Seconds (or error) of a choice, with the bandwidth times a factor; with it ``turns`` is computed.
    goal : str, optional
        What the error is, and how small it is to be, in words.
    """

    by: Literal["seconds", "error"] = "seconds"
    needs: tuple[str, ...] = ()
    cluster: Cluster | None = field(default=None, compare=False)
    cost_of: Callable[[Choice, float], float] | None = field(default=None, compare=False)
    goal: str = ""

    def _turned(self, most: int) -> tuple[dict[str, Any], ...] | None:
        if self.cluster is None or self.cost_of is None or self.cluster.workers == 1 or not self.ranking[0].feasible:
            return None
        family = family_of(self.best)
        rivals: dict[str, Choice] = {}
        for choice in self.ranking[1:]:
            if choice.feasible and family_of(choice) != family:
                rivals.setdefault(family_of(choice), choice)
        named = {choice.operator: choice for choice in list(rivals.values())[:most]}
        try:
            return turns(self.best, named, self.cost_of, self.cluster) if named else None
        except ValueError:  # an operator of the caller's own cannot be made again from its name
            return None

    def answer(self) -> Answer:
        """Return what to use, by how much it leads, and where the choice turns."""
        first = self.ranking[0]
        evidence = {
            "theorems": [f"{c.theorem}, {c.status}" for c in self.ranking if c.theorem],
            "needs": self.needs,
            "assuming": self.assumptions,
            "other links": [turn["words"] for turn in self.turns],
            **{choice.name: choice.reasons for choice in self.ranking},
        }
        rest: dict[str, Any] = {"assumed": self.assumed, "left_out": LEFT_OUT, "evidence": evidence}
        lost = next((c for c in self.ranking if not c.feasible), None)
        why = "" if lost is None else f"{lost.operator}: {lost.reasons[0]}"
        if not first.feasible:
            return Answer(self.verdict, {"why": why}, (self._table(),), **rest)
        facts = {
            "time" if self.by == "seconds" else "error": f"{self._cost(first)} {self.goal}",
            "proved": self._proved(),
            "range": self._range(),
            "how sure": self._leads(),
            "other links": "; ".join(filter(None, (self.turn_text(), self._codec()))),
            "a round": "" if first.limits is None else first.limits.shares_in_words(),
            "no guarantee": why.partition(";")[0],
        }
        return Answer(self.verdict, facts, (self._table(),), **rest)

    @property
    def verdict(self) -> str:
        """The sentence that the answer begins with, which says what to use."""
        first = self.ranking[0]
        if not first.feasible:
            return "No compressor has a guarantee: no proved theorem covers it, or its bound says nothing."
        every = "every step" if first.tau == 1 else f"every {first.tau} steps"
        rate = "" if first.eta is None else f" at eta = {first.eta:.3g}"
        return f"Use {first.name}, averaging {every}{rate}."

    def _proved(self) -> str:
        first = self.ranking[0]
        if self.by == "error":
            return f"{first.status}: {first.theorem}, for a run of mean seconds per round"
        status = "" if first.status == "proved" else f", {first.status}"
        return f"at most {number_text(first.rounds)} rounds ({first.theorem}{status}); seconds are modelled means"

    def _cost(self, choice: Choice) -> str:
        return f"{_digits(choice.seconds)} s" if self.by == "seconds" else f"{choice.error:.4g}"

    def _leads(self) -> str:
        others = [c for c in self.ranking[1:] if c.feasible]
        plain = next((c for c in others if c.operator == "identity"), None)
        word, much = ("takes", "as long") if self.by == "seconds" else ("has", "the error")
        named = others[:1] + ([plain] if plain is not None and plain is not others[0] else [])
        worse = [c for c in named if c.relative_cost >= DISTINCT]
        lead = [f"{operator_text(c.operator)} {word} {c.relative_cost:.3g} times {much}" for c in worse[:1]]
        lead += [f"{operator_text(c.operator)} {c.relative_cost:.3g} times" for c in worse[1:]]
        alike = [f"{operator_text(c.operator)} is as good" for c in named if c.relative_cost < DISTINCT]
        return f"next best {', '.join((*alike, *lead))}" if named else ""

    def _codec(self) -> str:
        """Return how fast the winner's codec has to be to lead what needs none."""
        even = self.ranking[0].break_even_coordinates_per_s
        rival = next((c.operator for c in self.ranking[1:] if c.feasible and not c.coded), "")
        if even is None:
            return ""
        return f"{operator_text(rival)} is faster if codecs code below {4e-9 * even:.3g} GB/s"

    def _range(self) -> str:
        between = self.ranking[0].cost_between
        if between is None:
            return ""
        unit = " s" if self.by == "seconds" else ""
        return f"{between[0]:.4g} to {between[1]:.4g}{unit} over the estimates of L, sigma2 and gap"

    def _table(self) -> Table:
        rows = []
        for choice in self.ranking:
            coding = choice.encode_s + choice.decode_s
            parts = (
                f"{each:.3g}" if each < math.inf else "" for each in (choice.compute_s, choice.communicate_s, coding)
            )
            cost = _digits(choice.seconds) if self.by == "seconds" else f"{choice.error:.4g}"
            totals = (exchange_text(choice.exchange), cost, str(choice.tau), number_text(choice.rounds))
            without = "says nothing" if choice.vacuous else "not covered"
            back = choice.returned not in ("", choice.operator)
            name = f"{choice.operator}, means by {choice.returned}" if back else operator_text(choice.operator)
            rows.append((name, *(totals if choice.feasible else (without, "", "", "")), *parts))
        cost_name = "time [s]" if self.by == "seconds" else "error"
        columns = ("compressor", "exchange", cost_name, "tau", "rounds", "step+wait", "send", "code")
        meanings = exchange_note(choice.exchange for choice in self.ranking if choice.feasible)
        note = f"step+wait, send, code: mean seconds of one round, one after the other; {meanings}"
        return Table(columns, tuple(rows), left=frozenset({"exchange"}), note=note)

    @property
    def shown(self) -> tuple[Choice, ...]:
        """All choices, of which there are few."""
        return self.ranking

    def explain(self) -> str:
        """Return one line: what to use, and why."""
        first = self.ranking[0]
        if not first.feasible:
            return "No operator is covered: " + "; ".join(f"{c.operator}: {c.reason}" for c in self.ranking)
        after = next((c for c in self.ranking[1:] if c.feasible), None)
        lead = f", {self._lead(after.relative_cost)} {after.name}" if after else ""
        steps = f", averaging every {first.tau} steps at eta = {first.eta:.3g}" if first.eta is not None else ""
        limits = "" if first.limits is None else f"; {first.limits.in_words()}"
        return f"Use {first.name}{steps}: {self.cost_text(first)}{lead} ({first.reason}{limits})"

    def cost_text(self, choice: Choice) -> str:
        """Return what the choice is ranked by, with its unit.

        Parameters
        ----------
        choice : Choice
            One of ``ranking``.
        """
        return f"{choice.seconds:.6g} s" if self.by == "seconds" else f"error at most {choice.error:.4g}"

    def _lead(self, relative: float) -> str:
        better = "cheaper than" if self.by == "seconds" else "lower than with"
        return f"{relative:.3g} times {better}" if relative >= DISTINCT else "with little or no lead over"

    def costs(self) -> tuple[str, dict[str, tuple[float, float, float]]]:
        """Return seconds or error, and by the names of what is covered value and ends of it."""
        return self.by, {
            choice.name: (cost, *(choice.cost_between or (cost, cost)))
            for choice in self.ranking
            if choice.feasible
            for cost in (float(getattr(choice, self.by)),)
        }


def _digits(seconds: float) -> str:
    """Return four significant digits."""
    return number_text(float(f"{seconds:.4g}"))


# -- codec speed ---------------------------------------------------------------------------------------

SLOWER = 0.1
LEAD = 0.45  # of the seconds of what needs no codec


def with_coding(ranked: tuple[Choice, ...], d: int, by: str) -> tuple[Choice, ...]:
    """Return the same; the winner says how fast its codec has to be, if it has one and seconds count.

    Parameters
    ----------
    ranked : tuple of Choice
        Best first.
    d : int
        Number of coordinates.
    by : str
        What choices cost, "seconds" or "error".
    """
    first = ranked[0]
    if by != "seconds" or not first.feasible or not first.coded:
        return ranked
    uncoded_s = first.seconds - first.rounds * (first.encode_s + first.decode_s)
    work = first.rounds * first.coded * d
    pace = work / (SLOWER * uncoded_s)
    text = (
        f"codecs of {pace:.3g} coordinates/s, coding {first.coded:.3g} vectors a round, make it {SLOWER:.0%} slower "
        "than free ones"
    )
    rival = next((c for c in ranked[1:] if c.feasible and not c.coded), None)
    if rival is None or rival.seconds <= uncoded_s:
        return (replace(first, reasons=(*first.reasons, text)), *ranked[1:])
    even = work / (rival.seconds - uncoded_s)
    text += f"; above {_pace_text(even)} it leads {rival.operator}"
    kept = work / (LEAD * rival.seconds - uncoded_s) if uncoded_s < LEAD * rival.seconds else None
    if kept is not None:
        text += f", above {_pace_text(kept)} it takes at most {LEAD:.0%} of its seconds"
    winner = replace(first, reasons=(*first.reasons, text), break_even_coordinates_per_s=even)
    return (replace(winner, lead_coordinates_per_s=kept), *ranked[1:])


def _pace_text(coordinates_per_s: float) -> str:
    """Return a throughput in coordinates, bytes of binary32 and nanoseconds."""
    gigabytes_per_s, ns = 4e-9 * coordinates_per_s, 1e9 / coordinates_per_s
    return f"{coordinates_per_s:.3g} coordinates/s ({gigabytes_per_s:.3g} GB/s of binary32, {ns:.2g} ns each)"


# -- estimated constants -------------------------------------------------------------------------------


def of_estimates(
    choices: Sequence[Choice],
    choices_for: Callable[[planner.Smooth], list[Choice]],
    problem: planner.Smooth,
    uncertain: Mapping[str, Estimate],
    by: Literal["seconds", "error"],
) -> list[Choice]:
    """Return the choices at the values of estimates, with their cost at the ends of all intervals.

    Parameters
    ----------
    choices : sequence of Choice
        At the values.
    choices_for : callable
        From a problem to its choices.
    problem : Smooth
        At the values.
    uncertain : mapping of str to Estimate
        What is estimated.
    by : {"seconds", "error"}
        What choices cost.
    """
    costs = []
    for end in (_at_ends(problem, uncertain, "lo"), _at_ends(problem, uncertain, "hi")):
        costs.append([0.0] * len(choices) if end is None else [getattr(choice, by) for choice in choices_for(end)])
    names = ", ".join(uncertain)
    return [_of_uncertain(choice, cost, by, names) for choice, *cost in zip(choices, *costs, strict=True)]


def _at_ends(
    problem: planner.Smooth, uncertain: Mapping[str, Estimate], end: Literal["lo", "hi"]
) -> planner.Smooth | None:
    """Return the problem at one end of every estimate; None if L or gap is not positive there, so that nothing is to be
    done.

    Every theorem of the planner grows with L, sigma2 and gap, and so does the least over tau and eta.
    """
    ends: dict[str, Any] = {name: float(getattr(estimate.interval, end)) for name, estimate in uncertain.items()}
    if min(ends.get("L", 1.0), ends.get("gap", 1.0)) <= 0:
        return None
    return replace(problem, **ends | ({"sigma2": max(0.0, ends["sigma2"])} if "sigma2" in ends else {}))


def _of_uncertain(choice: Choice, between: Sequence[float], by: str, names: str) -> Choice:
    """Return the same, computed at the values of estimates: no theorem speaks for those.

    Parameters
    ----------
    between : sequence of float
        The cost at their ends, in what it is counted by.
    names : str
        Of what is estimated.
    """
    if not choice.feasible:
        return choice
    status = f"{choice.status} for true constants, not for assumed or estimated ones"
    first, *rest = choice.reasons
    low, high = between
    span = f"{by} from {low:.4g} to {high:.4g} over {names}, not known exactly"
    return replace(
        choice,
        status=status,
        cost_between=(low, high),
        reasons=(first.replace(f"({choice.status})", f"({status})", 1), span, *rest),
    )
