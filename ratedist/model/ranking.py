"""What a plan answers with: every operator with its cost or the reason why there is none, best first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from ..records import Answer, Table, number_text, plain
from .cluster import Cluster
from .constants import LEFT_OUT
from .limits import Limits
from .ranked import Ranked, way_text
from .turning import turns

DISTINCT = 1.005  # a smaller ratio would print as 1
LEAST_SHARE = 0.01  # of a round, that is worth a word


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
        Likewise to take at most .45 of the seconds of what needs no codec; None where even free codecs do not.
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
    """

    by: Literal["seconds", "error"] = "seconds"
    needs: tuple[str, ...] = ()
    cluster: Cluster | None = field(default=None, compare=False)
    cost_of: Callable[[Choice, float], float] | None = field(default=None, compare=False)

    @cached_property
    def turns(self) -> tuple[dict[str, Any], ...]:
        """Bandwidths ("bit_per_s") at which another choice ("rival") leads, "above" or "below" it; "words" say so."""
        if self.cluster is None or self.cost_of is None or self.cluster.workers == 1 or not self.ranking[0].feasible:
            return ()
        family = family_of(self.best)
        rivals: dict[str, Choice] = {}
        for choice in self.ranking[1:]:
            if choice.feasible and family_of(choice) != family:
                rivals.setdefault(family_of(choice), choice)
        named = {choice.operator: choice for choice in rivals.values()}
        try:
            return turns(self.best, named, self.cost_of, self.cluster)
        except ValueError:  # an operator of the caller's own cannot be made again from its name
            return ()

    def answer(self) -> Answer:
        """Return what to use, by how much it leads, and where the choice turns."""
        first = self.ranking[0]
        evidence = {
            "theorems": [f"{c.theorem}, {c.status}" for c in self.ranking if c.theorem],
            "needs": self.needs,
            "assuming": self.assumptions,
            **{choice.name: choice.reasons for choice in self.ranking},
        }
        rest: dict[str, Any] = {"assumed": self.assumed, "left_out": LEFT_OUT, "evidence": evidence}
        lost = next((c for c in self.ranking if not c.feasible), None)
        why = "" if lost is None else f"{lost.operator}: {lost.reasons[0]}"
        if not first.feasible:
            return Answer(self.verdict, {"why": why}, (self._table(),), **rest)
        facts = {
            "others": self._leads(),
            "theorem": f"{first.theorem}, {first.status}",
            "a round": self._round(),
            "turns": "; ".join(turn["words"] for turn in self.turns[:2]),
            "codec": self._codec(),
            "range": self._range(),
            "no guarantee": why,
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
        goal = " to the target" if self.by == "seconds" else ""
        return f"Use {first.name}, averaging {every}{rate}: {self.cost_text(first)}{goal}."

    def _leads(self) -> str:
        others = [c for c in self.ranking[1:] if c.feasible]
        plain = next((c for c in others if c.operator == "identity"), None)
        word, much = ("takes", "as long") if self.by == "seconds" else ("has", "the error")
        named = others[:1] + ([plain] if plain is not None and plain is not others[0] else [])
        worse = [c for c in named if c.relative_cost >= DISTINCT]
        lead = [f"{c.operator} {word} {c.relative_cost:.3g} times {much}" for c in worse[:1]]
        lead += [f"{c.operator} {c.relative_cost:.3g} times" for c in worse[1:]]
        alike = [f"{c.operator} is as good" for c in named if c.relative_cost < DISTINCT]
        return ", ".join((*alike, *lead))

    def _round(self) -> str:
        limits = self.ranking[0].limits
        if limits is None:
            return ""
        shares = sorted(limits.shares.items(), key=lambda each: -each[1])
        text = ", ".join(f"{share:.0%} {part}" for part, share in shares if share >= LEAST_SHARE)
        saved = limits.changes[:1]
        return text + "".join(f"; 2x better {each.part} would save {each.saved_share:.0%}" for each in saved)

    def _codec(self) -> str:
        """Return how fast the winner's codec has to be to lead what needs none."""
        even = self.ranking[0].break_even_coordinates_per_s
        rival = next((c.operator for c in self.ranking[1:] if c.feasible and not c.coded), "")
        if even is None:
            return ""
        return f"{rival} leads below {even:.3g} coded coordinates/s ({4e-9 * even:.3g} GB/s)"

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
            cost = choice.seconds if self.by == "seconds" else choice.error
            totals = (f"{cost:.6g}", f"{choice.relative_cost:.3g}", str(choice.tau), number_text(choice.rounds))
            without = "says nothing" if choice.vacuous else "not covered"
            rows.append((choice.name, *(totals if choice.feasible else (without, "", "", "")), *parts))
        cost_name = "time [s]" if self.by == "seconds" else "error"
        columns = ("compressor", cost_name, "x best", "tau", "rounds", "compute", "send", "code")
        return Table(columns, tuple(rows), note="compute, send, code: mean seconds of one round, one after the other")

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
