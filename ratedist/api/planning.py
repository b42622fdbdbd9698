"""Which compressor, and how many local steps: every operator asked for, ranked, with the reasons."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bounds import Unbiased
from bounds import plan as planner
from bounds.claims import Claim, Contractive

from ..numbers import real, refusal, whole
from ..records import number_text, plain
from .cluster import Cluster, Exchange, checked_cluster
from .operators import operator_of

if TYPE_CHECKING:
    from operators import Operator

DENSE_BITS = 32
MOST_OPERATORS = 64
CONDITION = 100
METHOD = "diana"


@dataclass(frozen=True)
class Choice:
    """What one operator would cost, or why it cannot be judged.

    operator : its specification.  feasible : whether a PROVED or VERIFIED theorem covers it.  reasons : in words.
    theorem, status : behind the numbers.  seconds, rounds, tau, eta, bits (sent by one worker) : of the whole run;
    tau local steps a round.  message_bits : of one message, on average at most.  error : certified, at most.
    relative_cost : seconds (or error, for a time budget) over the best choice's.
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

    @property
    def reason(self) -> str:
        """All reasons as one text."""
        return "; ".join(self.reasons)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {name: plain(getattr(self, name)) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Ranking:
    """Every operator asked for, best first; what no theorem covers comes last.

    assumptions : under which the numbers hold, in words.
    ranking : the choices in that order.
    """

    ranking: tuple[Choice, ...]
    assumptions: tuple[str, ...]

    @property
    def best(self) -> Choice:
        """The winner.  Raises ValueError if no operator is feasible."""
        if not self.ranking[0].feasible:
            raise ValueError(f"no operator is feasible; {self.explain()}")
        return self.ranking[0]

    def explain(self) -> str:
        """One line: what to use, and why."""
        first = self.ranking[0]
        if not first.feasible:
            return "No operator is covered: " + "; ".join(f"{c.operator}: {c.reason}" for c in self.ranking)
        after = next((c for c in self.ranking[1:] if c.feasible), None)
        lead = f", {after.relative_cost:.3g} times cheaper than {after.operator}" if after else ""
        steps = f", averaging every {first.tau} steps at eta = {first.eta:.3g}" if first.eta is not None else ""
        return f"Use {first.operator}{steps}: {first.seconds:.4g} s{lead} ({first.reason})"

    def to_dict(self) -> dict[str, Any]:
        """The ranking as plain values."""
        ranking = [choice.to_dict() for choice in self.ranking]
        return {"ranking": ranking, "assumptions": list(self.assumptions), "explanation": self.explain()}

    def __repr__(self) -> str:
        width = max(len(c.operator) for c in self.ranking)
        rows = (
            f"  {c.operator:{width}}  " + (f"{c.seconds:.6g} s  {c.relative_cost:.3g}x" if c.feasible else c.reason)
            for c in self.ranking
        )
        return "Ranking(\n" + "\n".join(rows) + "\n)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(c.operator)}</td><td>{c.seconds:.6g}</td><td>{c.relative_cost:.3g}</td>"
            f"<td style='text-align:left'>{html.escape(c.reason)}</td></tr>"
            for c in self.ranking
        )
        head = "<tr><th>operator</th><th>seconds</th><th>relative</th><th style='text-align:left'>reasons</th></tr>"
        return f"<table>{head}{rows}</table><p>{html.escape('; '.join(self.assumptions))}</p>"

    def plot(self, *, ax: Any = None) -> Any:
        """Bars of seconds, best first; returns the matplotlib axes."""
        from ..drawing import plot_ranking

        return plot_ranking(self, ax)


def plan(
    *,
    d: Any,
    cluster: Cluster,
    operators: Iterable[str | Operator],
    target: Any = None,
    time_s: Any = None,
    L: Any = None,
    sigma2: Any = None,
    gap: Any = None,
    G: Any = None,
    eta: Any = None,
    condition: Any = None,
) -> Ranking:
    """Rank compressors for a model of d parameters on a cluster.

    operators : specifications such as "qsgd:4" or "identity", or Operator instances.
    With L, sigma2 and gap (non-convex, averaging of local updates): reach E|grad F|^2 <= target soonest, or the least
    error within time_s; tau and the learning rate (unless eta fixes it) are chosen for each.  Biased operators need G
    too, the root of a bound on E|g|^2 of every worker's gradient.
    Without them: iterations of DIANA (strongly convex, condition number ``condition``, 100 unless given) to relative
    squared distance target < 1, times seconds per round.
    Dense messages are summed on their way, compressed ones gathered.  Raises ValueError for bad arguments; an operator
    that no PROVED or VERIFIED theorem covers is ranked last, with the reason.

    >>> import ratedist as rd
    >>> cluster = rd.Cluster(workers=16, bandwidth_bit_per_s=1e10, latency_s=50e-6, step_s=0.08, compute="exponential")
    >>> found = rd.plan(d=25_600_000, cluster=cluster, operators=["tcdq:omega=1", "qsgd:4", "topk:0.01"], target=0.1)
    >>> [(choice.operator, choice.feasible) for choice in found.ranking]
    [('tcdq:omega=1', True), ('qsgd:levels=4', True), ('topk:fraction=0.01', False)]
    """
    cluster, dimension = checked_cluster(cluster), whole("d", d)
    asked = [operators] if isinstance(operators, str) else list(operators)
    if not 1 <= len(asked) <= MOST_OPERATORS:
        raise ValueError(
            f"operators must name 1 to {MOST_OPERATORS} compressors; got {len(asked)}: "
            'give for example ["tcdq:omega=1", "identity"]'
        )
    known = {"L": L, "sigma2": sigma2, "gap": gap}
    problem, assumed = _problem(known, G=G, target=target, time_s=time_s, eta=eta, condition=condition)
    asked_for = {"target": target, "time_s": time_s, "eta": eta}
    goal = {name: None if value is None else real(name, value) for name, value in asked_for.items()}
    if (goal["target"] is None) == (goal["time_s"] is None):
        raise ValueError(f"give either target or time_s; got target = {target}, time_s = {time_s}: drop or add one")
    choices = [_choice(operator_of(one), dimension, cluster, problem, goal) for one in asked]
    return Ranking(_ranked(choices, goal), (assumed, cluster.in_words(), f"d = {dimension}"))


def _problem(known: dict[str, Any], **rest: Any) -> tuple[planner.Smooth | planner.Conditioned, str]:
    """The problem that the arguments describe, and its assumptions in words."""
    missing = [name for name, value in known.items() if value is None]
    if missing and len(missing) < len(known):
        raise ValueError(f"give all of L, sigma2 and gap, or none; missing: {', '.join(missing)}: add them")
    if missing:
        conditioned = _conditioned(rest["condition"], rest["target"], rest["time_s"], rest["eta"])
        return conditioned, (
            f"strongly convex, condition number {conditioned.kappa:g}; iterations of {METHOD} to relative squared "
            f"distance {rest['target']}, one averaging each"
        )
    if rest["condition"] is not None:
        raise ValueError(
            f"condition goes without L, sigma2 and gap; got condition = {rest['condition']}: drop one or the others"
        )
    root = None if rest["G"] is None else real("G", rest["G"])
    smooth = planner.Smooth(**{name: real(name, value) for name, value in known.items()}, G=root)
    return smooth, "L-smooth F, local updates of unbiased gradients, all workers sample the same F"


def _conditioned(condition: Any, target: Any, time_s: Any, eta: Any) -> planner.Conditioned:
    if time_s is not None or eta is not None:
        raise ValueError(
            f"without L, sigma2 and gap the plan takes target only; got time_s = {time_s}, eta = {eta}: add those three"
        )
    if target is None or not real("target", target) < 1:
        raise refusal("target", "0 < target < 1", target)
    return planner.Conditioned(kappa=CONDITION if condition is None else real("condition", condition), method=METHOD)


def _choice(
    operator: Operator,
    d: int,
    cluster: Cluster,
    problem: planner.Smooth | planner.Conditioned,
    goal: dict[str, float | None],
) -> Choice:
    from operators import specification

    name = specification(operator)
    try:
        claim, size = operator.claim(d), operator.bits(d)
    except ValueError as failure:
        return Choice(name, False, (f"not at d = {d}: {failure}",))
    bits = next((b for b in (size.exact, size.expected_upper, size.worst_case) if b is not None), None)
    if bits is None:
        return Choice(name, False, ("it states no message length",))
    exact = isinstance(claim, Contractive) and claim.alpha == 0
    claim = Unbiased(0.0) if exact else claim
    exchange: Exchange = "sum" if exact else "gather"
    candidate = planner.Candidate(name, claim, bits)
    try:
        found = planner.plan(
            [candidate],
            runtime=cluster.model(exchange),
            problem=problem,
            target=goal["target"],
            time_s=goal["time_s"],
            eta=goal["eta"],
        ).best
    except planner.Infeasible as failure:
        return Choice(name, False, (failure.reasons[name],), message_bits=bits)
    return _chosen(found, _reasons(found, claim, bits, d, cluster, exchange), bits)


def _chosen(found: planner.Option, reasons: tuple[str, ...], bits: float) -> Choice:
    return Choice(
        operator=found.name,
        feasible=True,
        reasons=reasons,
        theorem=found.theorem,
        status=found.status.value if found.status else "",
        seconds=found.seconds,
        rounds=found.rounds,
        tau=found.tau,
        eta=found.eta,
        bits=found.bits,
        message_bits=bits,
        error=found.error,
    )


def _reasons(
    found: planner.Option, claim: Claim, bits: float, d: int, cluster: Cluster, exchange: Exchange
) -> tuple[str, ...]:
    constant = f"omega = {claim.omega:.4g}" if isinstance(claim, Unbiased) else f"{claim}"
    compute = float(cluster.slowest_s(found.tau).midpoint) * found.tau
    averaging = cluster.averaging_s(bits, exchange).midpoint
    way = "summed on its way" if exchange == "sum" else "gathered"
    status = found.status.value if found.status else ""
    saved = f", {DENSE_BITS * d / bits:.4g} times fewer than binary32" if bits < DENSE_BITS * d else ""
    return (
        f"{found.theorem} ({status}): {number_text(found.rounds)} rounds with {constant}",
        f"a round computes {compute:.4g} s and communicates {averaging:.4g} s",
        f"a message has {number_text(math.ceil(bits))} bits{saved}, {way}",
    )


def _ranked(choices: Sequence[Choice], goal: dict[str, float | None]) -> tuple[Choice, ...]:
    from dataclasses import replace

    def cost(choice: Choice) -> tuple[float, float, float]:
        if goal["target"] is not None:
            return choice.seconds, choice.bits, choice.error
        return choice.error, choice.bits, choice.seconds

    feasible = sorted((c for c in choices if c.feasible), key=cost)
    least = cost(feasible[0])[0] if feasible else 0.0
    ranked = [replace(c, relative_cost=cost(c)[0] / least if least else 1.0) for c in feasible]
    return (*ranked, *(c for c in choices if not c.feasible))
